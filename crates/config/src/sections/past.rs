//! `past`: the earlier investigations that an agent may know. Part of every layer of settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, Word};
use crate::write::is_default;
use tarsy_core::plan::PastScope;

/// One layer; an absent value comes from the layer below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct PastSettings {
    /// The number of earlier investigations of the same alert in the first message; 0 for none. By default 3.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(max = 10))]
    pub given: Option<u32>,
    /// The age in days up to which an investigation counts. By default 30.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 1, max = 365))]
    pub days: Option<u32>,
    /// The investigations that the tool finds: those of the session's chain, or of all. By default `chain`.
    #[serde(with = "As::<Word<PastScope>>", skip_serializing_if = "is_default")]
    pub scope: Option<PastScope>,
    /// Whether the agent may search in earlier investigations with `tarsy.past_investigations`. By default true.
    #[serde(skip_serializing_if = "is_default")]
    pub tool: Option<bool>,
}

impl PastSettings {
    /// Merges this layer with the absent values of a lower one.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            given: self.given.or(lower.given),
            days: self.days.or(lower.days),
            scope: self.scope.or(lower.scope),
            tool: self.tool.or(lower.tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_higher_layer_replaces_only_the_same_value() {
        let lower = PastSettings {
            given: Some(3),
            tool: Some(true),
            ..PastSettings::default()
        };
        let upper = PastSettings {
            given: Some(0),
            scope: Some(PastScope::All),
            ..PastSettings::default()
        };
        let expected = PastSettings {
            given: Some(0),
            days: None,
            scope: Some(PastScope::All),
            tool: Some(true),
        };
        assert_eq!(upper.over(lower), expected);
    }
}
