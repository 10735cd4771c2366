//! Words of closed sets: the outcomes of statements and the status columns, parsed into enums. A word that this version
//! does not know is an error of its row, never a default.

use diesel::sql_types::{Text, Uuid as SqlUuid};

use crate::engine::ports::{DeadReason, RunStatus, ToolCallState};
use crate::investigation::alert::Severity;
use crate::investigation::ids::{ExecutionId, SessionId};

/// A word that its set does not contain.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {set} {word:?}")]
pub(crate) struct UnknownWord {
    set: &'static str,
    word: String,
}

/// A type whose values are words in the database.
pub(crate) trait SqlWord: Sized {
    /// The value of a word; `None` for one that this version does not know.
    fn of_word(word: &str) -> Option<Self>;
}

pub(crate) fn parse<T: SqlWord>(word: String) -> Result<T, UnknownWord> {
    let set = std::any::type_name::<T>();
    T::of_word(&word).ok_or_else(|| UnknownWord { set: set.rsplit("::").next().unwrap_or(set), word })
}

/// Makes an enum of the words that a statement returns or a column holds.
macro_rules! sql_enum {
    ($(#[$meta:meta])* $vis:vis $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $variant,)+ }

        impl $crate::store::rows::words::SqlWord for $name {
            fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)+ })
            }
        }

        $crate::store::rows::words::from_sql!(diesel::sql_types::Text => $name, $crate::store::rows::words::parse);
    };
}

/// Lets Diesel read a type from a column: `from_sql!(SqlType => Type, |value| Result)`.
macro_rules! from_sql {
    ($sql:ty => $type:ty, $read:expr) => {
        impl diesel::deserialize::FromSql<$sql, diesel::pg::Pg> for $type {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                let value = diesel::deserialize::FromSql::<$sql, diesel::pg::Pg>::from_sql(value)?;
                Ok(($read)(value)?)
            }
        }

        impl diesel::prelude::Queryable<$sql, diesel::pg::Pg> for $type {
            type Row = Self;

            fn build(row: Self) -> diesel::deserialize::Result<Self> {
                Ok(row)
            }
        }
    };
}

pub(crate) use {from_sql, sql_enum};

/// Reads a type that has a parser of its own.
macro_rules! parsed_word {
    ($type:ty, $of_word:expr) => {
        impl SqlWord for $type {
            fn of_word(word: &str) -> Option<Self> {
                ($of_word)(word)
            }
        }

        from_sql!(Text => $type, parse);
    };
}

parsed_word!(RunStatus, Self::parse);
parsed_word!(DeadReason, Self::parse);
parsed_word!(Severity, |word: &str| word.parse().ok());
parsed_word!(ToolCallState, |word| [Self::Done, Self::Failed, Self::Lost].into_iter().find(|s| s.as_str() == word));
from_sql!(SqlUuid => SessionId, |id| Ok::<_, std::convert::Infallible>(Self(id)));
from_sql!(SqlUuid => ExecutionId, |id| Ok::<_, std::convert::Infallible>(Self(id)));

sql_enum! {
    /// Where an alert ended up, as the column `alerts.place` has it. [`Disposition`](crate::engine::ports::Disposition)
    /// is the same with its details.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub DispositionKind {
        /// No worker has decided yet.
        Undecided = "undecided",
        /// The alert opened the session that has its id.
        Opened = "opened",
        /// Another session covers the alert.
        Joined = "joined",
        /// The alert ended without an investigation.
        Ended = "ended",
        /// The alert is a dead letter.
        Dead = "dead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: SqlWord>(word: &str) -> Result<T, String> {
        parse(word.to_owned()).map_err(|error: UnknownWord| error.to_string())
    }

    #[test]
    fn an_unknown_word_is_an_error_that_names_the_word() {
        assert_eq!(read::<DispositionKind>("lost"), Err("unknown DispositionKind \"lost\"".to_owned()));
        assert_eq!(read::<RunStatus>("paused"), Err("unknown RunStatus \"paused\"".to_owned()));
        assert_eq!(read::<DeadReason>(""), Err("unknown DeadReason \"\"".to_owned()));
        assert_eq!(read::<Severity>("HIGH"), Err("unknown Severity \"HIGH\"".to_owned()));
        assert_eq!(read::<ToolCallState>("done "), Err("unknown ToolCallState \"done \"".to_owned()));
    }

    #[test]
    fn a_known_word_is_read_and_shown_as_it_is_stored() {
        for word in ["undecided", "opened", "joined", "ended", "dead"] {
            let kind = read::<DispositionKind>(word).unwrap();
            assert_eq!((kind.to_string().as_str(), serde_json::json!(kind)), (word, serde_json::json!(word)));
        }
        for status in RunStatus::ALL {
            assert_eq!(read::<RunStatus>(status.as_str()), Ok(status));
            assert_eq!(serde_json::json!(status), serde_json::json!(status.as_str()));
        }
        for state in [ToolCallState::Done, ToolCallState::Failed, ToolCallState::Lost] {
            assert_eq!(read::<ToolCallState>(state.as_str()), Ok(state));
            assert_eq!(serde_json::json!(state), serde_json::json!(state.as_str()));
        }
    }
}
