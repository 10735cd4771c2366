//! The settings that every level may have: defaults < agent < chain < stage < stage agent.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::native_tools::NativeTools;
use super::past::PastSettings;
use crate::declared::forms::{As, Secs, Word, tokens};
use crate::declared::texts::{
    ProviderName, ServerName, SkillName, SkillPattern, ToolPattern as ToolName,
};
use crate::read::reader::Field;
use crate::tool_pattern::ToolPattern;
use crate::write::is_default;
use tarsy_core::plan::Strategy;

/// One layer of an agent's settings; an absent value comes from the layer below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The way in which an agent works; by default `native-thinking`.
    #[serde(with = "As::<Word<Strategy>>", skip_serializing_if = "is_default")]
    pub iteration_strategy: Option<Strategy>,
    /// The name of a provider.
    #[serde(with = "As::<ProviderName>", skip_serializing_if = "is_default")]
    pub llm_provider: Option<String>,
    /// The names of the providers that take over, one after another, when `llm_provider` has failed; replaces the list
    /// of the layer below. By default none.
    #[serde(with = "As::<Vec<ProviderName>>", skip_serializing_if = "is_default")]
    pub fallback_providers: Option<Vec<String>>,
    /// Above the provider's own layer; without effect for providers that have no native tools.
    #[serde(skip_serializing_if = "is_default")]
    pub native_tools: NativeTools,
    /// The MCP servers whose tools the agent may call; replaces the list of the layer below. By default all servers.
    #[serde(with = "As::<Vec<ServerName>>", skip_serializing_if = "is_default")]
    pub mcp_servers: Option<Vec<String>>,
    /// The tools of these servers that the agent may call, as far as the servers' own keys permit; replaces the list of
    /// the layer below. By default all of them.
    #[serde(with = "As::<Vec<ToolName>>", skip_serializing_if = "is_default")]
    pub tools: Option<Vec<ToolPattern>>,
    /// The skills that the agent may load, as patterns of names; replaces the list of the layer below. By default all
    /// of them.
    #[serde(with = "As::<Vec<SkillPattern>>", skip_serializing_if = "is_default")]
    pub skills: Option<Vec<String>>,
    /// The names of the skills whose texts are a part of the agent's system message; those of all layers add up.
    #[serde(with = "As::<Vec<SkillName>>", skip_serializing_if = "is_default")]
    pub required_skills: Vec<String>,
    /// The number of model calls after which the conclusion is forced.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 1, max = 1_000))]
    pub max_iterations: Option<u32>,
    /// The time limit of one iteration, for its model call and its tool calls together.
    #[serde(with = "As::<Secs<1, 3_600>>", skip_serializing_if = "is_default")]
    pub iteration_timeout: Option<Duration>,
    /// The part of the session's time that is kept for the conclusion; 0 to keep none. By default that of
    /// `iteration_timeout`, but at least 30 s and at most 5 min.
    #[serde(with = "As::<Secs<0, 3_600>>", skip_serializing_if = "is_default")]
    pub wrap_up: Option<Duration>,
    /// The number of consecutive time-outs that ends the execution.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 1, max = 100))]
    pub max_timeouts: Option<u32>,
    /// The longest tool result that the model gets, in tokens.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_tool_result_tokens: Option<u32>,
    /// Whether the heading of a result has its length and the range of its times, and an empty result is stated.
    #[serde(skip_serializing_if = "is_default")]
    pub facts: Option<bool>,
    /// Whether the repeated records of a log are folded.
    #[serde(skip_serializing_if = "is_default")]
    pub fold: Option<bool>,
    /// Whether JSON is made compact, with tables in the place of arrays.
    #[serde(skip_serializing_if = "is_default")]
    pub tables: Option<bool>,
    /// A longer tool result is summarised by a model, in tokens; 0 for no summaries. A server may have its own value.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "tokens::<0, 1_000_000>")]
    pub summarize_over: Option<u32>,
    /// The name of the provider that summarises; by default the agent's own.
    #[serde(with = "As::<ProviderName>", skip_serializing_if = "is_default")]
    pub summarize_with: Option<String>,
    /// The total of tokens after which the conclusion is forced; 0 for no limit.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(max = 1_000_000_000))]
    pub max_tokens: Option<u32>,
    /// Whether each number and time in the lines Cause and Evidence has to occur in what they cite: by default true.
    /// An answer with others is asked for once more, and an analysis with others is marked.
    #[serde(skip_serializing_if = "is_default")]
    pub check_figures: Option<bool>,
    /// Whether an answer of the strategy `react` may have several actions, if all of them only read; by default false.
    #[serde(skip_serializing_if = "is_default")]
    pub several_actions: Option<bool>,
    /// The earlier investigations that the agent may know.
    #[serde(skip_serializing_if = "is_default")]
    pub past: PastSettings,
}

impl Settings {
    /// Merges this layer with the absent values of a lower one.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            iteration_strategy: self.iteration_strategy.or(lower.iteration_strategy),
            llm_provider: self
                .llm_provider
                .clone()
                .or_else(|| lower.llm_provider.clone()),
            fallback_providers: self
                .fallback_providers
                .clone()
                .or_else(|| lower.fallback_providers.clone()),
            native_tools: self.native_tools.over(lower.native_tools),
            mcp_servers: self
                .mcp_servers
                .clone()
                .or_else(|| lower.mcp_servers.clone()),
            tools: self.tools.clone().or_else(|| lower.tools.clone()),
            skills: self.skills.clone().or_else(|| lower.skills.clone()),
            required_skills: joined(&lower.required_skills, &self.required_skills),
            max_iterations: self.max_iterations.or(lower.max_iterations),
            iteration_timeout: self.iteration_timeout.or(lower.iteration_timeout),
            wrap_up: self.wrap_up.or(lower.wrap_up),
            max_timeouts: self.max_timeouts.or(lower.max_timeouts),
            max_tool_result_tokens: self.max_tool_result_tokens.or(lower.max_tool_result_tokens),
            facts: self.facts.or(lower.facts),
            fold: self.fold.or(lower.fold),
            tables: self.tables.or(lower.tables),
            summarize_over: self.summarize_over.or(lower.summarize_over),
            summarize_with: self
                .summarize_with
                .clone()
                .or_else(|| lower.summarize_with.clone()),
            max_tokens: self.max_tokens.or(lower.max_tokens),
            check_figures: self.check_figures.or(lower.check_figures),
            several_actions: self.several_actions.or(lower.several_actions),
            past: self.past.over(lower.past),
        }
    }

    /// Reports a fallback provider that is repeated, and the one that the list is for: `llm_provider` of the same
    /// layer, or the only one.
    pub(crate) fn check(&self, field: &Field<'_>) {
        if self.fallback_providers.is_none() {
            return;
        }
        let known = &field.names().providers;
        let only = if let [only] = known.as_slice() {
            Some(only)
        } else {
            None
        };
        let main = self.llm_provider.as_ref().or(only);
        let mut read: Vec<String> = Vec::new();
        for item in field.items("fallback_providers") {
            let Some(name) = item.resolved().filter(|name| known.contains(name)) else {
                continue;
            };
            if main == Some(&name) {
                item.fault(format!(
                    "{name:?} is the llm_provider that the others take over from"
                ));
            } else if read.contains(&name) {
                item.fault(format!("{name:?} is in the list already"));
            } else {
                read.push(name);
            }
        }
    }
}

/// The names of both lists, each once.
fn joined(lower: &[String], upper: &[String]) -> Vec<String> {
    let mut joined = lower.to_vec();
    let new = upper.iter().filter(|name| !lower.contains(name));
    joined.extend(new.cloned());
    joined
}

#[cfg(test)]
mod tests {
    use crate::Config;

    /// The configuration of three providers, with `rest` from line 5.
    fn parsed(rest: &str) -> Result<Config, String> {
        let providers = "llm_providers:\n  a: {provider: scripted}\n  b: {provider: scripted}\n  c: {provider: scripted}\n";
        Config::parse("f", &format!("{providers}{rest}"), &|_| None)
            .map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_repeated_fallback_provider_is_a_fault_at_its_line() {
        let faults = parsed(
            "defaults:\n  llm_provider: a\n  fallback_providers:\n  - b\n  - a\n  - b\n  - d\nagents:\n  sre: {fallback_providers: b}\n",
        )
        .unwrap_err();
        let expected = "f: 4 faults
  defaults.fallback_providers[1]   line 9    \"a\" is the llm_provider that the others take over from
  defaults.fallback_providers[2]   line 10   \"b\" is in the list already
  defaults.fallback_providers[3]   line 11   \"d\" is not defined; defined: a, b, c (did you mean a?)
  agents.sre.fallback_providers    line 13   \"b\"; expected a list";
        assert_eq!(faults, expected);
    }

    #[test]
    fn the_only_provider_is_no_fallback_of_itself() {
        let text =
            "llm_providers: {a: {provider: scripted}}\nagents: {sre: {fallback_providers: [a]}}";
        let faults = Config::parse("f", text, &|_| None).unwrap_err().to_string();
        assert!(
            faults.contains("agents.sre.fallback_providers[0]"),
            "{faults}"
        );
    }

    #[test]
    fn the_nearest_list_of_fallback_providers_replaces_the_others() {
        let config =
            parsed("defaults: {llm_provider: a, fallback_providers: [b, c]}\nagents: {sre: {fallback_providers: []}}")
                .unwrap();
        let lower = &config.defaults.settings;
        let upper = &config.agents["sre"].settings;
        assert_eq!(upper.over(lower).fallback_providers, Some(vec![]));
        let names = ["b", "c"].map(str::to_owned).to_vec();
        assert_eq!(
            crate::Settings::default().over(lower).fallback_providers,
            Some(names)
        );
    }
}
