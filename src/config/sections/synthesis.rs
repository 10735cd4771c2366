//! `synthesis`: who puts together what the agents of a stage found. Said in `defaults`, on a chain or on a stage.

use super::chains::Names;
use crate::config::read::reader::{Field, Map};
use crate::investigation::plan::Strategy;

/// One layer of it; what a layer does not say comes from the one below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synthesis {
    /// Which agent; said nowhere: the built-in one.
    pub agent: Option<String>,
    /// Name of the provider.
    pub llm_provider: Option<String>,
    /// One of the two strategies of a synthesis; said nowhere: the one that fits the provider.
    pub iteration_strategy: Option<Strategy>,
}

impl Synthesis {
    /// This layer on top of a lower one.
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
