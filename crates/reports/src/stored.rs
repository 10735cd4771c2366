//! Diesel conversions for the types of other rings. Words of closed sets, such as those of the status columns, become
//! enums: an unknown word is an error of its row, never a default.

use parking_lot::Mutex;
use std::convert::Infallible;

use diesel::deserialize::{self, FromSql};
use diesel::pg::{Pg, PgValue};
use diesel::prelude::Queryable;
use diesel::sql_types::{Binary, Nullable, SingleValue, Text, Uuid as SqlUuid};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::{DispositionKind, RequestState, ShownStatus};
use tarsy_core::alert::Severity;
use tarsy_core::approvals::{CallHash, Channel, Refusal};
use tarsy_core::chain::LaterWord;
use tarsy_core::execution::entry::{ApprovalOutcome, Mark, StopReason};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::verdicts::Rating;
use tarsy_engine::ports::{DeadReason, RunStatus, ToolCallState, WakeCause};

/// A word that its set does not contain.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {set} {word:?}")]
pub struct UnknownWord {
    set: &'static str,
    word: String,
}

/// Bytes that are no hash of a call.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash of a call has 32 bytes, not {0}")]
pub struct NoHash(usize);

/// Parses a word of a set that serde knows.
///
/// # Errors
/// When the set does not contain it.
pub fn parse<T: DeserializeOwned>(word: String) -> Result<T, UnknownWord> {
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
    let mut kept = KEPT.lock();
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

/// A type of another ring as Diesel reads it from a column: only this crate may implement Diesel's traits for it. A
/// field names it in `deserialize_as` and has the type itself.
#[derive(Debug)]
pub struct Stored<T>(pub T);

/// The same for a column that may be null.
#[derive(Debug)]
pub struct StoredOption<T>(pub Option<T>);

impl<T, S> FromSql<Nullable<S>, Pg> for StoredOption<T>
where
    Stored<T>: FromSql<S, Pg>,
    S: SingleValue,
{
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Stored::from_sql(value).map(|Stored(value)| Self(Some(value)))
    }

    fn from_nullable_sql(value: Option<PgValue<'_>>) -> deserialize::Result<Self> {
        value.map_or(Ok(Self(None)), Self::from_sql)
    }
}

impl<T, S> Queryable<Nullable<S>, Pg> for StoredOption<T>
where
    Self: FromSql<Nullable<S>, Pg>,
    S: SingleValue,
{
    type Row = Self;

    fn build(row: Self) -> deserialize::Result<Self> {
        Ok(row)
    }
}

/// Lets Diesel read a type of this crate, or a [`Stored`] one, from a column:
/// `from_sql!(SqlType => Type, |value| Result)`.
macro_rules! from_sql {
    ($sql:ty => $type:ty, $read:expr) => {
        impl FromSql<$sql, Pg> for $type {
            fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
                let value = FromSql::<$sql, Pg>::from_sql(value)?;
                Ok(($read)(value)?)
            }
        }

        impl Queryable<$sql, Pg> for $type {
            type Row = Self;

            fn build(row: Self) -> deserialize::Result<Self> {
                Ok(row)
            }
        }
    };
}

/// Lets Diesel read a type of another ring: `stored!(SqlType => Type, |value| Result)`.
macro_rules! stored {
    ($sql:ty => $type:ty, $read:expr) => {
        from_sql!($sql => Stored<$type>, |value| ($read)(value).map(Stored));

        impl From<Stored<$type>> for $type {
            fn from(Stored(value): Stored<$type>) -> Self {
                value
            }
        }

        impl From<StoredOption<$type>> for Option<$type> {
            fn from(StoredOption(value): StoredOption<$type>) -> Self {
                value
            }
        }
    };
}

from_sql!(Text => DispositionKind, parse);
from_sql!(Text => ShownStatus, |word: String| {
    Ok::<_, Infallible>(ShownStatus(parse(word.clone()).unwrap_or_else(|_unknown| RunStatus::Unknown(LaterWord(kept(&word))))))
});
stored!(Text => DeadReason, parse);
stored!(Text => Mark, |word: String| Ok::<_, Infallible>(Mark::parse(&word)));
stored!(Text => RunStatus, parse);
stored!(Text => Severity, parse);
stored!(Text => StopReason, parse);
stored!(Text => ToolCallState, parse);
stored!(Text => WakeCause, parse);
stored!(Text => Rating, parse);
stored!(Text => RequestState, parse);
stored!(Text => ApprovalOutcome, parse);
stored!(Text => Channel, parse);
stored!(Text => Refusal, parse);
stored!(Binary => CallHash, |bytes: Vec<u8>| {
    <[u8; 32]>::try_from(bytes).map(CallHash).map_err(|bytes| NoHash(bytes.len()))
});
stored!(SqlUuid => SessionId, |id| Ok::<_, Infallible>(SessionId(id)));
stored!(SqlUuid => ExecutionId, |id| Ok::<_, Infallible>(ExecutionId(id)));

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
        each_is_read(WakeCause::ALL, WakeCause::as_str);
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
            StopReason::CutAnswers,
            StopReason::TimeBudget,
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
