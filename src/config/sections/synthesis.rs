//! `synthesis`: the agent that combines the analyses of a stage. Part of `defaults`, of a chain or of a stage.

use super::chains::Names;
use crate::config::read::reader::{Field, Map};
use crate::investigation::plan::Strategy;

/// One layer of the synthesis settings; an absent value comes from the layer below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synthesis {
    /// The name of an agent; by default the built-in one.
    pub agent: Option<String>,
    /// The name of a provider.
    pub llm_provider: Option<String>,
    /// One of the two strategies of a synthesis; by default the one that suits the provider.
    pub iteration_strategy: Option<Strategy>,
}

impl Synthesis {
    /// This layer with absent values from a lower one.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            agent: self.agent.clone().or_else(|| lower.agent.clone()),
            llm_provider: self.llm_provider.clone().or_else(|| lower.llm_provider.clone()),
            iteration_strategy: self.iteration_strategy.or(lower.iteration_strategy),
        }
    }

    pub(crate) fn read(map: &mut Map<'_>, names: &Names) -> Self {
        map.get("synthesis").map(|field| Self::of(&field, names)).unwrap_or_default()
    }

    pub(super) fn of(field: &Field<'_>, names: &Names) -> Self {
        let mut map = field.map();
        let synthesis = Self {
            agent: map.get("agent").and_then(|field| field.reference(&names.agents)),
            llm_provider: map.get("llm_provider").and_then(|field| field.reference(&names.providers)),
            iteration_strategy: map.get("iteration_strategy").and_then(|field| strategy(&field)),
        };
        map.finish();
        synthesis
    }
}

fn strategy(field: &Field<'_>) -> Option<Strategy> {
    let accepted = Strategy::ALL.into_iter().filter(|strategy| strategy.synthesises()).collect::<Vec<_>>();
    let words: Vec<&str> = accepted.iter().map(|strategy| strategy.as_str()).collect();
    let word = field.word(&words)?;
    accepted.into_iter().find(|strategy| strategy.as_str() == word)
}
