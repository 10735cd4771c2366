//! `synthesis`: the agent that combines the analyses of a stage. Part of `defaults`, of a chain or of a stage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, SynthesisStrategy, Word};
use crate::declared::texts::{AgentName, ProviderName};
use crate::write::is_default;
use tarsy_core::plan::Strategy;

/// One layer of the synthesis settings; an absent value comes from the layer below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Synthesis {
    /// The name of an agent; by default the built-in one.
    #[serde(with = "As::<AgentName>", skip_serializing_if = "is_default")]
    pub agent: Option<String>,
    /// The name of a provider.
    #[serde(with = "As::<ProviderName>", skip_serializing_if = "is_default")]
    pub llm_provider: Option<String>,
    /// One of the two strategies of a synthesis; by default the one that suits the provider.
    #[serde(
        with = "As::<Word<SynthesisStrategy>>",
        skip_serializing_if = "is_default"
    )]
    pub iteration_strategy: Option<Strategy>,
}

impl Synthesis {
    /// Merges this layer with the absent values of a lower one.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            agent: self.agent.clone().or_else(|| lower.agent.clone()),
            llm_provider: self
                .llm_provider
                .clone()
                .or_else(|| lower.llm_provider.clone()),
            iteration_strategy: self.iteration_strategy.or(lower.iteration_strategy),
        }
    }
}
