//! `agent_chains`: which agents investigate which alerts, and in what order.

use std::collections::BTreeMap;

use super::reader::{Field, Map};
use super::settings::Settings;
use crate::investigation::plan::SuccessPolicy;

/// Stages in order, for some types of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChain {
    /// For people.
    pub description: String,
    /// What it is chosen by; no other chain has the same.
    pub alert_types: Vec<String>,
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
    /// When it counts as completed.
    pub success_policy: SuccessPolicy,
    /// Its layer of settings.
    pub settings: Settings,
    /// In order; never empty.
    pub agents: Vec<StageAgent>,
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
pub(super) struct Names {
    pub(super) providers: Vec<String>,
    pub(super) servers: Vec<String>,
    pub(super) agents: Vec<String>,
    pub(super) chains: Vec<String>,
}

impl AgentChain {
    /// One stage with one agent, for every type of alert.
    pub(super) fn of_agent(agent: &str) -> Self {
        let stage = Stage {
            name: "investigation".to_owned(),
            success_policy: SuccessPolicy::default(),
            settings: Settings::default(),
            agents: vec![StageAgent { name: agent.to_owned(), settings: Settings::default() }],
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
        let stage = Self {
            name: map.text("name").unwrap_or_else(|| format!("stage-{number}")),
            success_policy: match map.get("success_policy").and_then(|field| field.word(&["any", "all"])).as_deref() {
                Some("all") => SuccessPolicy::All,
                Some(_) | None => SuccessPolicy::Any,
            },
            settings: Settings::read(&mut map, names),
            agents: non_empty(&mut map, "agents", "a list of agents")
                .iter()
                .map(|field| StageAgent::read(field, names))
                .collect(),
        };
        map.finish();
        stage
    }
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
pub(super) fn read(map: &Map<'_>, names: &Names) -> (BTreeMap<String, AgentChain>, Option<String>) {
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
