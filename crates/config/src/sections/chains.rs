//! `agent_chains`: the stages and agents that investigate each type of alert.

use std::collections::BTreeMap;

use serde::Serialize;

use super::settings::Settings;
use super::synthesis::Synthesis;
use super::trust::Questions;
use crate::read::reader::{Field, Map};
use crate::write::{is_default, written};
use tarsy_core::plan::SuccessPolicy;

/// More replicas of one agent cost more without further insight.
const MAX_REPLICAS: u32 = 10;

/// Stages that run one after another for certain types of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentChain {
    /// Shown to people only.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub description: String,
    /// The types of alerts that choose this chain; no other chain has one of them.
    #[serde(serialize_with = "written")]
    pub alert_types: Vec<String>,
    /// The condition for a stage of the chain to count as completed.
    #[serde(skip_serializing_if = "is_default")]
    pub success_policy: Option<SuccessPolicy>,
    /// The chain's layer of the synthesis settings.
    #[serde(skip_serializing_if = "is_default")]
    pub synthesis: Synthesis,
    /// The rules for questions about its investigations.
    #[serde(skip_serializing_if = "is_default")]
    pub questions: Questions,
    /// Never empty.
    pub stages: Vec<Stage>,
    /// The chain's layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
}

/// One or more agents that run in parallel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Shown on the timeline.
    #[serde(serialize_with = "written")]
    pub name: String,
    /// The condition for the stage to count as completed; by default when one agent has completed.
    #[serde(skip_serializing_if = "is_default")]
    pub success_policy: Option<SuccessPolicy>,
    /// The number of copies of a single agent; 1 for several agents.
    #[serde(skip_serializing_if = "is_one")]
    pub replicas: u32,
    /// Never empty.
    pub agents: Vec<StageAgent>,
    /// The highest layer of the settings of the synthesis after the stage.
    #[serde(skip_serializing_if = "is_default")]
    pub synthesis: Synthesis,
    /// The stage's layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
}

/// An agent in a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageAgent {
    /// The name of a defined agent.
    #[serde(serialize_with = "written")]
    pub name: String,
    /// The highest layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
}

impl AgentChain {
    /// One stage with one agent, for every type of alert.
    pub(crate) fn of_agent(agent: &str) -> Self {
        let stage = Stage {
            name: "investigation".to_owned(),
            success_policy: None,
            synthesis: Synthesis::default(),
            settings: Settings::default(),
            agents: vec![StageAgent {
                name: agent.to_owned(),
                settings: Settings::default(),
            }],
            replicas: 1,
        };
        Self {
            stages: vec![stage],
            ..Self::default()
        }
    }

    /// The chain, and whether it is marked as the default.
    fn read(map: &mut Map<'_>) -> (Self, bool) {
        let is_default = map.flag("default").unwrap_or_default();
        let chain = Self {
            description: map.text("description").unwrap_or_default(),
            alert_types: map.texts("alert_types"),
            success_policy: success_policy(map),
            synthesis: map.declared("synthesis"),
            questions: map.declared("questions"),
            settings: Settings::read(map),
            stages: non_empty(map, "stages", "a list of stages with their agents")
                .iter()
                .zip(1..)
                .map(|(field, number)| field.section(|map| Stage::read(number, map)))
                .collect(),
        };
        (chain, is_default)
    }
}

impl Stage {
    fn read(number: u32, map: &mut Map<'_>) -> Self {
        let name = map
            .text("name")
            .unwrap_or_else(|| format!("stage-{number}"));
        let success_policy = success_policy(map);
        let settings = Settings::read(map);
        let agents: Vec<StageAgent> = non_empty(map, "agents", "a list of agents")
            .iter()
            .map(StageAgent::item)
            .collect();
        let replicas = map
            .get("replicas")
            .and_then(|field| replicas(&field, agents.len()))
            .unwrap_or(1);
        let synthesis = map.get("synthesis").map(|field| {
            if agents.len() == 1 && replicas == 1 {
                field.fault(
                    "this stage has one agent; a synthesis follows several agents or replicas"
                        .to_owned(),
                );
            }
            field.declared()
        });
        Self {
            name,
            success_policy,
            synthesis: synthesis.unwrap_or_default(),
            settings,
            agents,
            replicas,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_one(replicas: &u32) -> bool {
    *replicas == 1
}

/// The number of replicas; reports a fault if the stage has several agents.
fn replicas(field: &Field<'_>, agents: usize) -> Option<u32> {
    let replicas = field.number(1..=MAX_REPLICAS)?;
    if agents > 1 && replicas > 1 {
        field.fault(format!(
            "this stage has {agents} agents; replicas are of a single one"
        ));
        return None;
    }
    Some(replicas)
}

/// The success policy of a layer, if it has one.
pub(crate) fn success_policy(map: &mut Map<'_>) -> Option<SuccessPolicy> {
    map.get("success_policy")?
        .choice(&SuccessPolicy::ALL, SuccessPolicy::as_str)
}

impl StageAgent {
    /// An item of the list of agents; a plain name is a frequent mistake.
    fn item(field: &Field<'_>) -> Self {
        if !field.is_text() {
            return field.section(Self::read);
        }
        if let Some(name) = field.text() {
            field.wrong_kind(&format!("a mapping, written as \"- name: {name}\""));
        }
        Self {
            name: String::new(),
            settings: Settings::default(),
        }
    }

    fn read(map: &mut Map<'_>) -> Self {
        let names = map.field().names();
        let name = map
            .required("name", &names.agents.join(", "))
            .and_then(|field| field.reference(&names.agents));
        Self {
            name: name.unwrap_or_default(),
            settings: Settings::read(map),
        }
    }
}

fn non_empty<'c>(map: &mut Map<'c>, key: &'static str, accepted: &str) -> Vec<Field<'c>> {
    let Some(field) = map.required(key, accepted) else {
        return Vec::new();
    };
    let items = field.list();
    if items.as_ref().is_some_and(Vec::is_empty) {
        field.fault(format!("an empty list; accepted: {accepted}"));
    }
    items.unwrap_or_default()
}

/// All chains, and the name of the chain that is marked as the default.
pub(crate) fn read(section: &Field<'_>) -> (BTreeMap<String, AgentChain>, Option<String>) {
    let mut chains = BTreeMap::new();
    let mut default: Option<String> = None;
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (name, field) in section.entries() {
        let (chain, is_default) = field.section(AgentChain::read);
        if is_default && let Some(other) = &default {
            field.fault(format!("a second default chain; {other} is one already"));
        } else if is_default {
            default = Some(name.clone());
        }
        for alert_type in &chain.alert_types {
            if let Some(other) = owners.insert(alert_type.clone(), name.clone()) {
                field.fault(format!(
                    "alert type {alert_type:?} belongs to the chain {other} already"
                ));
            }
        }
        chains.insert(name, chain);
    }
    (chains, default)
}
