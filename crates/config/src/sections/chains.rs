//! `agent_chains`: the stages and agents that investigate each type of alert.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::review::Review;
use super::settings::Settings;
use super::synthesis::Synthesis;
use super::trust::Questions;
use crate::declared::forms::{As, words};
use crate::declared::texts::{AgentName, Text};
use crate::read::reader::Field;
use crate::write::is_default;
use tarsy_core::plan::SuccessPolicy;

/// More replicas of one agent cost more without further insight.
const MAX_REPLICAS: u32 = 10;

/// Stages that run one after another for certain types of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct AgentChain {
    /// Shown to people only.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub description: String,
    /// The types of alerts that choose this chain; no other chain has one of them.
    #[serde(with = "As::<Vec<Text>>")]
    pub alert_types: Vec<String>,
    /// The condition for a stage of the chain to count as completed.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "words::<SuccessPolicy>")]
    pub success_policy: Option<SuccessPolicy>,
    /// The chain's layer of the synthesis settings.
    #[serde(skip_serializing_if = "is_default")]
    pub synthesis: Synthesis,
    /// A second look at the analysis before the session ends; none by default.
    #[serde(skip_serializing_if = "is_default")]
    pub review: Review,
    /// The rules for questions about its investigations.
    #[serde(skip_serializing_if = "is_default")]
    pub questions: Questions,
    /// The chain's layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// The stages in their order, at least one.
    #[schemars(length(min = 1), extend("x-required" = "a list of stages with their agents"))]
    pub stages: Vec<Stage>,
}

/// A chain as a file has it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct WrittenChain {
    /// Whether it is the chain for alert types that no chain lists, as `defaults.chain` names it.
    default: bool,
    #[serde(flatten)]
    chain: AgentChain,
}

/// One or more agents that run in parallel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Stage {
    /// Shown on the timeline.
    #[serde(with = "As::<Text>")]
    pub name: String,
    /// The condition for the stage to count as completed; by default when one agent has completed.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "words::<SuccessPolicy>")]
    pub success_policy: Option<SuccessPolicy>,
    /// The stage's layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// The agents of the stage, at least one.
    #[schemars(length(min = 1), extend("x-required" = "a list of agents"))]
    pub agents: Vec<StageAgent>,
    /// The number of copies of a single agent; 1 for several agents.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = MAX_REPLICAS))]
    pub replicas: u32,
    /// The highest layer of the settings of the synthesis after the stage.
    #[serde(skip_serializing_if = "is_default")]
    pub synthesis: Synthesis,
}

impl Default for Stage {
    fn default() -> Self {
        Self {
            name: "investigation".to_owned(),
            success_policy: None,
            settings: Settings::default(),
            agents: Vec::new(),
            replicas: 1,
            synthesis: Synthesis::default(),
        }
    }
}

/// An agent in a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct StageAgent {
    /// The name of a defined agent.
    #[serde(with = "As::<AgentName>")]
    #[schemars(extend("x-required" = ""))]
    pub name: String,
    /// The highest layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
}

impl AgentChain {
    /// One stage with one agent, for every type of alert.
    pub(crate) fn of_agent(agent: &str) -> Self {
        let agent = StageAgent {
            name: agent.to_owned(),
            settings: Settings::default(),
        };
        let stage = Stage {
            agents: vec![agent],
            ..Stage::default()
        };
        Self {
            stages: vec![stage],
            ..Self::default()
        }
    }
}

impl WrittenChain {
    fn check(&mut self, field: &Field<'_>) {
        self.chain.settings.check(field);
        let stages = self.chain.stages.iter_mut().zip(field.items("stages"));
        for ((stage, field), number) in stages.zip(1..) {
            stage.check(number, &field);
        }
    }
}

impl Stage {
    fn check(&mut self, number: u32, field: &Field<'_>) {
        self.settings.check(field);
        if !field.has("name") {
            self.name = format!("stage-{number}");
        }
        let agents = self.agents.len();
        for (agent, field) in self.agents.iter().zip(field.items("agents")) {
            agent.settings.check(&field);
        }
        if agents > 1 && self.replicas > 1 {
            field.at("replicas").fault(format!(
                "this stage has {agents} agents; replicas are of a single one"
            ));
        }
        if agents == 1
            && self.replicas == 1
            && let Some(field) = field.get("synthesis")
        {
            field.fault(
                "this stage has one agent; a synthesis follows several agents or replicas"
                    .to_owned(),
            );
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_one(replicas: &u32) -> bool {
    *replicas == 1
}

/// All chains, and the name of the chain that is marked as the default.
pub(crate) fn read(section: &Field<'_>) -> (BTreeMap<String, AgentChain>, Option<String>) {
    let mut chains = BTreeMap::new();
    let mut default: Option<String> = None;
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (name, field) in section.entries() {
        let written = field.declared_and_checked(WrittenChain::check);
        let WrittenChain {
            default: is_default,
            chain,
        } = written;
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
