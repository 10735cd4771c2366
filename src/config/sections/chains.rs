//! `agent_chains`: which agents investigate which alerts, and in what order.

use std::collections::BTreeMap;

use super::settings::Settings;
use super::synthesis::Synthesis;
use super::trust::Questions;
use crate::config::read::reader::{Field, Map};
use crate::investigation::plan::SuccessPolicy;

/// More of one agent would say the same and cost more.
const MAX_REPLICAS: u32 = 10;

/// Stages in order, for some types of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChain {
    /// For people.
    pub description: String,
    /// What it is chosen by; no other chain has the same.
    pub alert_types: Vec<String>,
    /// When its stages count as completed.
    pub success_policy: Option<SuccessPolicy>,
    /// Its layer of every synthesis.
    pub synthesis: Synthesis,
    /// What questions about its investigations may do.
    pub questions: Questions,
    /// Its layer of settings.
    pub settings: Settings,
    /// In order; never empty.
    pub stages: Vec<Stage>,
}

/// Agents that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Shown on the timeline.
    pub name: String,
    /// When it counts as completed; said by nobody: when one agent has.
    pub success_policy: Option<SuccessPolicy>,
    /// The highest layer of the synthesis that follows it.
    pub synthesis: Synthesis,
    /// Its layer of settings.
    pub settings: Settings,
    /// In order; never empty.
    pub agents: Vec<StageAgent>,
    /// How often the only agent runs; 1 where several are named.
    pub replicas: u32,
}

/// An agent in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageAgent {
    /// Which agent; always defined.
    pub name: String,
    /// The highest layer of settings.
    pub settings: Settings,
}

/// What can be referred to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) providers: Vec<String>,
    pub(crate) servers: Vec<String>,
    pub(crate) agents: Vec<String>,
    pub(crate) chains: Vec<String>,
}

impl AgentChain {
    /// One stage with one agent, for every type of alert.
    pub(crate) fn of_agent(agent: &str) -> Self {
        let stage = Stage {
            name: "investigation".to_owned(),
            success_policy: None,
            synthesis: Synthesis::default(),
            settings: Settings::default(),
            agents: vec![StageAgent { name: agent.to_owned(), settings: Settings::default() }],
            replicas: 1,
        };
        Self { stages: vec![stage], ..Self::default() }
    }

    /// The chain, and whether it says that it is the default.
    fn read(field: &Field<'_>, names: &Names) -> (Self, bool) {
        let mut map = field.map();
        let is_default = map.get("default").and_then(|field| field.flag()).unwrap_or_default();
        let chain = Self {
            description: map.text("description").unwrap_or_default(),
            alert_types: map.texts("alert_types"),
            success_policy: success_policy(&mut map),
            synthesis: Synthesis::read(&mut map, names),
            questions: Questions::read(&mut map),
            settings: Settings::read(&mut map, names),
            stages: non_empty(&mut map, "stages", "a list of stages with their agents")
                .iter()
                .enumerate()
                .map(|(index, field)| Stage::read(index + 1, field, names))
                .collect(),
        };
        map.finish();
        (chain, is_default)
    }
}

impl Stage {
    fn read(number: usize, field: &Field<'_>, names: &Names) -> Self {
        let mut map = field.map();
        let name = map.text("name").unwrap_or_else(|| format!("stage-{number}"));
        let success_policy = success_policy(&mut map);
        let settings = Settings::read(&mut map, names);
        let agents: Vec<StageAgent> = non_empty(&mut map, "agents", "a list of agents")
            .iter()
            .map(|field| StageAgent::read(field, names))
            .collect();
        let replicas = map.get("replicas").and_then(|field| replicas(&field, agents.len()));
        let replicas = replicas.unwrap_or(1);
        let synthesis = map.get("synthesis").map(|field| {
            if agents.len() == 1 && replicas == 1 {
                field.fault("this stage has one agent; a synthesis follows several agents or replicas".to_owned());
            }
            Synthesis::of(&field, names)
        });
        map.finish();
        Self { name, success_policy, synthesis: synthesis.unwrap_or_default(), settings, agents, replicas }
    }
}

/// So many at the same time of one agent.
fn replicas(field: &Field<'_>, agents: usize) -> Option<u32> {
    let replicas = field.number(1, MAX_REPLICAS)?;
    if agents > 1 && replicas > 1 {
        field.fault(format!("this stage has {agents} agents; replicas are of a single one"));
        return None;
    }
    Some(replicas)
}

/// The policy that a layer names.
pub(crate) fn success_policy(map: &mut Map<'_>) -> Option<SuccessPolicy> {
    let words = SuccessPolicy::ALL.map(SuccessPolicy::as_str);
    let word = map.get("success_policy")?.word(&words)?;
    SuccessPolicy::ALL.into_iter().find(|policy| policy.as_str() == word)
}

impl StageAgent {
    fn read(field: &Field<'_>, names: &Names) -> Self {
        let mut map = field.map();
        let name = map.get("name").and_then(|field| field.reference(&names.agents));
        if !map.has("name") {
            map.missing("name", &names.agents.join(", "));
        }
        let agent = Self { name: name.unwrap_or_default(), settings: Settings::read(&mut map, names) };
        map.finish();
        agent
    }
}

fn non_empty<'c>(map: &mut Map<'c>, key: &'static str, accepted: &str) -> Vec<Field<'c>> {
    if !map.has(key) {
        map.missing(key, accepted);
    }
    let Some(field) = map.get(key) else {
        return Vec::new();
    };
    let items = field.list();
    if items.as_ref().is_some_and(Vec::is_empty) {
        field.fault(format!("an empty list; accepted: {accepted}"));
    }
    items.unwrap_or_default()
}

/// All chains, and the one that says it is the default.
pub(crate) fn read(map: &Map<'_>, names: &Names) -> (BTreeMap<String, AgentChain>, Option<String>) {
    let mut chains = BTreeMap::new();
    let mut default: Option<String> = None;
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (name, field) in map.entries() {
        let (chain, is_default) = AgentChain::read(&field, names);
        if is_default && let Some(other) = &default {
            field.fault(format!("a second default chain; {other} is one already"));
        } else if is_default {
            default = Some(name.clone());
        }
        for alert_type in &chain.alert_types {
            if let Some(other) = owners.insert(alert_type.clone(), name.clone()) {
                field.fault(format!("alert type {alert_type:?} belongs to the chain {other} already"));
            }
        }
        chains.insert(name, chain);
    }
    (chains, default)
}
