//! Marks on an analysis: warnings for its readers.

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A mark on an analysis: why it proves less than it seems to, from the least serious reason to the most serious one.
/// It is decided once, with the end of the execution, and shown by its [`word`](Self::word) or its
/// [`sentence`](Self::sentence) wherever the analysis is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Mark {
    /// A mark of a later version.
    Unknown,
    /// The analysis names no cause.
    NoCause,
    /// The analysis has a number or a time that nothing it cites has.
    Unsupported,
    /// The analysis cites an event that is no result.
    UnknownSource,
    /// The analyses of several agents, because their synthesis failed.
    NotCombined,
    /// A review found the analysis less sure than it says.
    Weakened,
    /// A review refuted the analysis, and proved no other one.
    Disputed,
    /// A server of tools was unavailable when the investigation began.
    MissingServer,
    /// The findings of one stage, because the session was stopped before its end.
    OfStage,
    /// Every call of a tool ended with an error.
    CallsFailed,
    /// The analysis cites no result.
    NoSource,
    /// The last answer was cut off, and so was the one that was asked for instead.
    Incomplete,
    /// Tools were offered, and none was called.
    NotLooked,
    /// The agent had no tools.
    NoTools,
}

crate::words!(pub Mark, pub ALL);

impl Mark {
    /// The mark of a code.
    pub fn parse(code: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|mark| mark.as_str() == code)
            .unwrap_or(Self::Unknown)
    }

    /// The mark in one or two words, shown before a cause and instead of a status.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "marked",
            Self::NoCause => "no cause",
            Self::Unsupported
            | Self::UnknownSource
            | Self::NotCombined
            | Self::MissingServer
            | Self::OfStage => "partly proven",
            Self::Weakened => "weakened",
            Self::Disputed => "disputed",
            Self::Incomplete => "incomplete",
            Self::CallsFailed | Self::NoSource | Self::NotLooked | Self::NoTools => "unproven",
        }
    }

    /// The sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => "The analysis has a mark that this version of tarsy does not know.",
            Self::NoCause => "The analysis names no cause.",
            Self::Unsupported => {
                "Partly proven: the analysis has a number or a time that no result it cites has."
            }
            Self::UnknownSource => {
                "Partly proven: the analysis cites events that are no results, marked [42?]."
            }
            Self::NotCombined => {
                "Partly proven: these are the analyses of several agents, because their synthesis failed."
            }
            Self::Weakened => "Weakened: a second look found the analysis less sure than it was.",
            Self::Disputed => {
                "Disputed: a second look contradicts the analysis, and proves no other one."
            }
            Self::MissingServer => {
                "Partly proven: a tool server was unavailable, and its tools were not used."
            }
            Self::OfStage => {
                "Partly proven: these are the findings of one stage, because the investigation was stopped before its end."
            }
            Self::CallsFailed => "Unproven: every call of a tool ended with an error.",
            Self::NoSource => "Unproven: the analysis cites no result of a tool.",
            Self::Incomplete => {
                "The analysis is incomplete: the model's last answers were cut off."
            }
            Self::NotLooked => "Unproven: nothing was looked at, no tool was called.",
            Self::NoTools => "Unproven: nothing was looked at, the agent had no tools.",
        }
    }

    /// Whether a session with this mark covers later alerts as one without a mark does. `store/sql/open.sql` has them,
    /// too.
    pub fn covers(self) -> bool {
        matches!(
            self,
            Self::NoCause
                | Self::Unsupported
                | Self::UnknownSource
                | Self::NotCombined
                | Self::Weakened
                | Self::Disputed
        )
    }

    /// Whether it says something about the work of all stages. The others are about the sources of one analysis.
    pub fn is_of_session(self) -> bool {
        matches!(self, Self::Unknown | Self::Incomplete)
    }
}

/// Writes `mark` and `mark_text`, the code and the sentence, for `#[serde(flatten, serialize_with)]`.
///
/// # Errors
/// Those of the serializer.
pub fn with_text<S: Serializer>(mark: &Option<Mark>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut members = serializer.serialize_map(Some(2))?;
    members.serialize_entry("mark", &mark.map(Mark::as_str))?;
    members.serialize_entry("mark_text", &mark.map(Mark::sentence))?;
    members.end()
}

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|code| Self::parse(&code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_has_a_code_of_its_own_and_a_sentence() {
        for mark in Mark::ALL {
            assert_eq!(Mark::parse(mark.as_str()), mark);
            assert!(
                mark.sentence().ends_with('.') && !mark.word().is_empty(),
                "{mark:?}"
            );
        }
        assert_eq!(Mark::parse("of_a_later_version"), Mark::Unknown);
        assert!(
            Mark::ALL.is_sorted(),
            "from the least serious to the most serious one"
        );
    }

    #[test]
    fn the_statement_that_opens_a_session_knows_the_marks_that_cover() {
        let covering: Vec<String> = Mark::ALL
            .into_iter()
            .filter(|mark| mark.covers())
            .map(|mark| format!("'{}'", mark.as_str()))
            .collect();
        let sql = include_str!("../../../store/src/sql/open.sql");
        assert_eq!(
            sql.matches(&format!("IN ({})", covering.join(", ")))
                .count(),
            2
        );
    }
}
