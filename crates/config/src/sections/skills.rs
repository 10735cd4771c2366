//! `skills`: the directories with texts of operators that agents load, and the skills of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::Settings;
use crate::declared::forms::{As, Bytes};
use crate::declared::texts::Text;
use crate::tool_pattern::matches;

const DEFAULT_MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The skills of this installation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Skills {
    /// Each has skills as `<name>/SKILL.md` or `<name>.md`; of two with the same name the first one counts.
    #[serde(with = "As::<Vec<Text>>")]
    pub directories: Vec<String>,
    /// The size of all skills with their files; those beyond it are left out.
    #[serde(with = "Bytes::<1_024, 67_108_864>")]
    pub max_bytes: u64,
}

impl Default for Skills {
    fn default() -> Self {
        Self {
            directories: Vec::new(),
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }
}

impl Settings {
    /// Whether an agent with these settings may load the skill of this name: by default each one.
    pub fn selects_skill(&self, name: &str) -> bool {
        self.skills
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, name)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Settings};

    fn config(text: &str) -> Result<Config, String> {
        let models = "llm_providers: {a: {provider: scripted}}\n";
        Config::parse("f", &format!("{models}{text}"), &|_| None)
            .map_err(|faults| faults.to_string())
    }

    #[test]
    fn an_agent_may_load_what_its_patterns_name_and_by_default_everything() {
        let of = |skills: Option<&[&str]>| Settings {
            skills: skills.map(|skills| skills.iter().map(|s| (*s).to_owned()).collect()),
            ..Settings::default()
        };
        assert!(of(None).selects_skill("pg-storage"));
        assert!(!of(Some(&[])).selects_skill("pg-storage"));
        let some = of(Some(&["pg-*", "house-rules"]));
        assert!(some.selects_skill("pg-storage") && some.selects_skill("house-rules"));
        assert!(!some.selects_skill("k8s-pods") && !some.selects_skill("my-pg-storage"));
    }

    #[test]
    fn required_skills_of_all_layers_add_up_and_the_nearest_list_of_others_counts() {
        let text = "defaults: {required_skills: [house-rules], skills: ['*']}\nagents: {sre: {required_skills: [pg, house-rules], skills: []}}";
        let config = config(text).unwrap();
        let merged = config.agents["sre"]
            .settings
            .over(&config.defaults.settings);
        assert_eq!(merged.required_skills, ["house-rules", "pg"]);
        assert_eq!(merged.skills, Some(vec![]));
    }

    #[test]
    fn a_default_runbook_is_a_skill_or_a_page_of_a_listed_host() {
        let text = "runbooks:
  hosts: [wiki.example.com]
  default:
  - {match: ['@type=~\"KubePod.*\"'], skill: k8s-pods}
  - {match: [], url: 'https://wiki.example.com/db'}
";
        let runbooks = config(text).unwrap().runbooks;
        let listed: Vec<_> = runbooks.default.iter().map(|d| d.skill.clone()).collect();
        assert_eq!(listed, [Some("k8s-pods".to_owned()), None]);

        let faults = config(
            "runbooks:
  hosts: [wiki.example.com]
  default:
  - {match: []}
  - {match: [], skill: a, url: 'https://wiki.example.com/db'}
  - {match: [], url: 'https://evil.example.com/db'}
  - {match: ['team'], skill: A_b}
  - {skill: a}
agents: {sre: {skills: [A], required_skills: ['pg-*']}}
",
        )
        .unwrap_err();
        insta::assert_snapshot!(faults);
    }
}
