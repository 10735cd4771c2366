//! Words of closed sets: the outcomes of statements and the status columns, parsed into enums. A word that this version
//! does not know is an error of its row, never a default.

use std::sync::{Mutex, PoisonError};

use diesel::sql_types::Uuid as SqlUuid;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::engine::ports::{DeadReason, RunStatus, ToolCallState};
use crate::investigation::alert::Severity;
use crate::investigation::chain::LaterWord;
use crate::investigation::execution::entry::{Mark, StopReason};
use crate::investigation::ids::{ExecutionId, SessionId};
use crate::reports::{DispositionKind, ShownStatus};

/// A word that its set does not contain.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {set} {word:?}")]
pub(crate) struct UnknownWord {
    set: &'static str,
    word: String,
}

/// Parses a word of a set that serde knows.
pub(crate) fn parse<T: DeserializeOwned>(word: String) -> Result<T, UnknownWord> {
    let parsed: Result<T, serde::de::value::Error> =
        T::deserialize(word.as_str().into_deserializer());
    let set = std::any::type_name::<T>();
    parsed.map_err(|_| UnknownWord {
        set: set.rsplit("::").next().unwrap_or(set),
        word,
    })
}

/// Words of later versions that are kept.
const MAX_KEPT: usize = 64;
/// Bytes of a word that is kept.
const MAX_KEPT_BYTES: usize = 40;

/// A word that no set contains, for the rest of the process. Only a few and short ones are kept: a column of statuses
/// has no more.
fn kept(word: &str) -> &'static str {
    static KEPT: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.iter().find(|known| **known == word) {
        Some(known) => known,
        None if kept.len() < MAX_KEPT && word.len() <= MAX_KEPT_BYTES => {
            let word: &'static str = word.to_owned().leak();
            kept.push(word);
            word
        }
        None => "unknown",
    }
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

/// Lets Diesel read a type that is a word in the database.
macro_rules! sql_word {
    ($type:ty) => {
        $crate::store::rows::words::from_sql!(diesel::sql_types::Text => $type, $crate::store::rows::words::parse);
    };
}

pub(crate) use {from_sql, sql_word};

sql_word!(DeadReason);
sql_word!(DispositionKind);
from_sql!(diesel::sql_types::Text => Mark, |word: String| Ok::<_, std::convert::Infallible>(Mark::parse(&word)));
sql_word!(RunStatus);
from_sql!(diesel::sql_types::Text => ShownStatus, |word: String| {
    Ok::<_, std::convert::Infallible>(ShownStatus(parse(word.clone()).unwrap_or_else(|_unknown| RunStatus::Unknown(LaterWord(kept(&word))))))
});
sql_word!(Severity);
sql_word!(StopReason);
sql_word!(ToolCallState);
from_sql!(SqlUuid => SessionId, |id| Ok::<_, std::convert::Infallible>(Self(id)));
from_sql!(SqlUuid => ExecutionId, |id| Ok::<_, std::convert::Infallible>(Self(id)));

#[cfg(test)]
mod tests {
    use std::fmt;

    use serde::Serialize;

    use super::*;

    fn read<T: DeserializeOwned>(word: &str) -> Result<T, String> {
        parse(word.to_owned()).map_err(|error: UnknownWord| error.to_string())
    }

    #[test]
    fn an_unknown_word_is_an_error_that_names_the_word() {
        assert_eq!(
            read::<DispositionKind>("lost"),
            Err("unknown DispositionKind \"lost\"".to_owned())
        );
        assert_eq!(
            read::<RunStatus>("paused"),
            Err("unknown RunStatus \"paused\"".to_owned())
        );
        assert_eq!(
            read::<DeadReason>(""),
            Err("unknown DeadReason \"\"".to_owned())
        );
        assert_eq!(
            read::<Severity>("HIGH"),
            Err("unknown Severity \"HIGH\"".to_owned())
        );
        assert_eq!(
            read::<ToolCallState>("done "),
            Err("unknown ToolCallState \"done \"".to_owned())
        );
    }

    #[test]
    fn a_known_word_is_read_and_shown_as_it_is_stored() {
        for word in ["undecided", "opened", "joined", "ended", "dead"] {
            let kind = read::<DispositionKind>(word).unwrap();
            assert_eq!(
                (kind.to_string().as_str(), serde_json::json!(kind)),
                (word, serde_json::json!(word))
            );
        }
        each_is_read(RunStatus::ALL, RunStatus::as_str);
        each_is_read(
            [
                ToolCallState::Done,
                ToolCallState::Failed,
                ToolCallState::Lost,
            ],
            ToolCallState::as_str,
        );
        each_is_read(DeadReason::ALL, DeadReason::as_str);
        each_is_read(Severity::ALL, Severity::as_str);
    }

    #[test]
    fn each_reason_for_a_stop_is_read_as_it_is_stored() {
        let all = [
            StopReason::FinalAnswer,
            StopReason::MaxIterations,
            StopReason::Timeouts,
            StopReason::Error,
            StopReason::RepeatedCalls,
            StopReason::Budget,
            StopReason::ContextWindow,
            StopReason::SynthesisFailed,
            StopReason::Deadline,
            StopReason::Cancelled,
            StopReason::AttemptsExhausted,
            StopReason::NotInvestigated,
            StopReason::AlertResolved,
        ];
        each_is_read(all, StopReason::as_str);
        assert_eq!(
            read::<StopReason>("bored"),
            Err("unknown StopReason \"bored\"".to_owned())
        );
    }

    fn each_is_read<T, const N: usize>(all: [T; N], as_str: fn(T) -> &'static str)
    where
        T: Copy + fmt::Debug + PartialEq + Serialize + DeserializeOwned,
    {
        for value in all {
            let word = as_str(value);
            assert_eq!(read::<T>(word), Ok(value));
            assert_eq!(serde_json::json!(value), serde_json::json!(word));
        }
    }
}
