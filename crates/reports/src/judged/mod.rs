//! Judged sessions as records for evaluations: the alert, the plan, the analysis, and what a person said about it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::{Mark, with_text};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::PersonVerdict;
use tarsy_engine::ports::RunStatus;

/// A session with its newest verdict. Every text is masked as it was when it was stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedSession {
    pub session_id: SessionId,
    pub created_at: DateTime<Utc>,
    pub chain: String,
    pub alert: JudgedAlert,
    /// The providers of all agents, each once.
    pub providers: Vec<JudgedProvider>,
    /// The frozen plan, with the prompts; null if it is not kept.
    pub plan: Option<Value>,
    pub status: RunStatus,
    /// The mark on the analysis.
    #[serde(flatten, serialize_with = "with_text")]
    pub mark: Option<Mark>,
    pub summary: Option<String>,
    pub analysis: Option<String>,
    pub verdict: PersonVerdict,
}

/// The alert of a judged session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedAlert {
    #[serde(rename = "type")]
    pub alert_type: String,
    pub title: String,
    pub severity: Option<Severity>,
    pub body: String,
}

/// A provider of the plan of a judged session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedProvider {
    pub name: String,
    pub model: String,
}

impl JudgedProvider {
    /// The providers that a stored plan names, in order of their first agent. A plan of a later version may have more.
    pub fn all_of(plan: &Value) -> Vec<Self> {
        let stages = list(plan, "stages");
        let agents = stages.iter().flat_map(|stage| list(stage, "agents"));
        let named = agents.flat_map(|agent| {
            let own = list(agent, "providers").iter();
            let sub_agents = list(agent, "sub_agents").iter();
            own.chain(sub_agents.flat_map(|sub_agent| {
                sub_agent
                    .pointer("/plan/providers")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
            }))
        });
        let mut providers = Vec::new();
        for provider in named {
            let text = |key: &str| {
                let text = provider.get(key).and_then(Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            let provider = Self {
                name: text("name"),
                model: text("model"),
            };
            if !providers.contains(&provider) {
                providers.push(provider);
            }
        }
        providers
    }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_providers_of_a_plan_are_those_of_all_agents_each_once() {
        let provider =
            |name: &str, model: &str| json!({"name": name, "model": model, "api_key_env": "K"});
        let plan = json!({"stages": [
            {"agents": [{"providers": [provider("a", "m1"), provider("b", "m2")],
                         "sub_agents": [{"name": "s", "plan": {"providers": [provider("c", "m3")]}}]}]},
            {"agents": [{"providers": [provider("a", "m1")]}, {"providers": "of a later version"}]}
        ]});
        let named = |name: &str, model: &str| JudgedProvider {
            name: name.to_owned(),
            model: model.to_owned(),
        };
        assert_eq!(
            JudgedProvider::all_of(&plan),
            [named("a", "m1"), named("b", "m2"), named("c", "m3")]
        );
        assert_eq!(JudgedProvider::all_of(&json!("no plan")), []);
    }
}
