//! `agent_chains`: the stages and agents that investigate each type of alert.

use std::collections::BTreeMap;

use super::settings::Settings;
use super::synthesis::Synthesis;
use super::trust::Questions;
use crate::config::read::reader::{Field, Map};
use crate::investigation::plan::SuccessPolicy;

/// More replicas of one agent cost more without further insight.
const MAX_REPLICAS: u32 = 10;

/// Stages that run one after another for certain types of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChain {
    /// Shown to people only.
    pub description: String,
    /// The types of alerts that choose this chain; no other chain has one of them.
    pub alert_types: Vec<String>,
    /// When a stage of the chain counts as completed.
    pub success_policy: Option<SuccessPolicy>,
    /// The chain's layer of the synthesis settings.
    pub synthesis: Synthesis,
    /// The rules for questions about its investigations.
    pub questions: Questions,
    /// The chain's layer of settings.
    pub settings: Settings,
    /// Never empty.
    pub stages: Vec<Stage>,
}

/// One or more agents that run in parallel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Shown on the timeline.
    pub name: String,
    /// When the stage counts as completed; by default when one agent has completed.
    pub success_policy: Option<SuccessPolicy>,
    /// The highest layer of the settings of the synthesis after the stage.
    pub synthesis: Synthesis,
    /// The stage's layer of settings.
    pub settings: Settings,
    /// Never empty.
    pub agents: Vec<StageAgent>,
    /// The number of copies of a single agent; 1 for several agents.
    pub replicas: u32,
}

/// An agent in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageAgent {
    /// The name of a defined agent.
    pub name: String,
    /// The highest layer of settings.
    pub settings: Settings,
}

/// The names that the configuration defines.
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

    /// The chain, and whether it is marked as the default.
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

/// The number of replicas; reports a fault if the stage has several agents.
fn replicas(field: &Field<'_>, agents: usize) -> Option<u32> {
    let replicas = field.number(1..=MAX_REPLICAS)?;
    if agents > 1 && replicas > 1 {
        field.fault(format!("this stage has {agents} agents; replicas are of a single one"));
        return None;
    }
    Some(replicas)
}

/// The success policy of a layer, if it has one.
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

/// All chains, and the name of the chain that is marked as the default.
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
