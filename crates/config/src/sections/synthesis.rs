//! `synthesis`: the agent that combines the analyses of a stage. Part of `defaults`, of a chain or of a stage.

use serde::Serialize;

use super::names::Names;
use crate::read::reader::Map;
use crate::write::{is_default, written};
use tarsy_core::plan::Strategy;

/// One layer of the synthesis settings; an absent value comes from the layer below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Synthesis {
    /// The name of an agent; by default the built-in one.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub agent: Option<String>,
    /// The name of a provider.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub llm_provider: Option<String>,
    /// One of the two strategies of a synthesis; by default the one that suits the provider.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
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

    pub(crate) fn read(map: &mut Map<'_>, names: &Names) -> Self {
        map.section("synthesis", |map| Self::of(map, names))
    }

    pub(super) fn of(map: &mut Map<'_>, names: &Names) -> Self {
        let mut strategies = Strategy::ALL.to_vec();
        strategies.retain(|strategy| strategy.synthesises());
        Self {
            agent: map.reference("agent", &names.agents),
            llm_provider: map.reference("llm_provider", &names.providers),
            iteration_strategy: map
                .get("iteration_strategy")
                .and_then(|field| field.choice(&strategies, Strategy::as_str)),
        }
    }
}
