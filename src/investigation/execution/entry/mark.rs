//! What readers have to know of an analysis before they trust it.

use serde::{Deserialize, Deserializer, Serialize};

/// A mark on an analysis. A session with a marked analysis covers no later alert, unless it is the third in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A mark of a later version.
    Unknown,
    /// The last answer was cut off, and so was the one that was asked for instead.
    Incomplete,
}

impl Mark {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Unknown, Self::Incomplete];

    /// The word in the store, in the metadata of events and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Incomplete => "incomplete",
        }
    }

    /// The mark of a word.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|mark| mark.as_str() == word).unwrap_or(Self::Unknown)
    }

    /// The sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => "The analysis has a mark that this version of tarsy does not know.",
            Self::Incomplete => "The analysis is incomplete: the model's last answers were cut off.",
        }
    }
}

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::parse(&word))
    }
}
