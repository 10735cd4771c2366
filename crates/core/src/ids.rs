//! The ids of the domain, one type for each kind.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id! {
    /// An alert and the session that it opens. A UUIDv7: the order of ids is the order of time.
    SessionId
}
id! {
    /// One agent's run in one stage of a session. Derived from session, stage and agent; that of a sub-agent from its
    /// parent's and the call.
    ExecutionId
}
id! {
    /// A worker process. A restarted process is another worker.
    WorkerId
}

impl SessionId {
    /// Parses an id of a producer; `None` unless it is a UUIDv7.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Uuid::try_parse(text.trim()).ok()?;
        (id.get_version_num() == 7).then_some(Self(id))
    }

    /// The id of an alert that was published without one: the same for every delivery of the message.
    ///
    /// `stored_at_ms` is the stream's timestamp in Unix milliseconds.
    pub fn of_delivery(stream: &str, sequence: u64, stored_at_ms: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(stream.as_bytes());
        hash.update(sequence.to_be_bytes());
        hash.update(stored_at_ms.to_be_bytes());
        let random = hash.finalize().first_chunk().copied().unwrap_or_default();
        Self(uuid::Builder::from_unix_timestamp_millis(stored_at_ms, &random).into_uuid())
    }

    /// The id of a message that its sender may repeat: the same for every repetition.
    ///
    /// `parts` identify the message; `sent_at_ms` is the sender's time in Unix milliseconds.
    pub fn of_message(parts: &[&[u8]], sent_at_ms: u64) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.update(sent_at_ms.to_be_bytes());
        let random = hash.finalize().first_chunk().copied().unwrap_or_default();
        Self(uuid::Builder::from_unix_timestamp_millis(sent_at_ms, &random).into_uuid())
    }

    /// The id of one alert (index from 0) of a body with several alerts. `self` is the id of the body; both have the
    /// same time.
    pub fn of_part(&self, part: u32) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0.as_bytes());
        hash.update(part.to_be_bytes());
        let random = hash.finalize().first_chunk().copied().unwrap_or_default();
        let [a, b, c, d, e, f, ..] = *self.0.as_bytes();
        let time_ms = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        Self(uuid::Builder::from_unix_timestamp_millis(time_ms, &random).into_uuid())
    }

    /// The last eight characters, for people.
    pub fn short(&self) -> String {
        let hex = self.0.simple().to_string();
        hex.chars().skip(24).collect()
    }
}

impl ExecutionId {
    /// The execution of agent `agent_no` (from 1) in stage `stage_no` (from 1) of a session.
    pub fn derive(session: SessionId, stage_no: u32, agent_no: u32) -> Self {
        Self(Uuid::new_v5(
            &session.0,
            format!("{stage_no}/{agent_no}").as_bytes(),
        ))
    }

    /// The execution of the sub-agent that a call of this execution asks for.
    #[must_use]
    pub fn of_sub_agent(self, call_id: &str) -> Self {
        Self(Uuid::new_v5(&self.0, call_id.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delivery_of_one_message_has_the_same_time_ordered_id() {
        let first = SessionId::of_delivery("TARSY_ALERTS", 7, 1_790_000_000_000);
        assert_eq!(
            first,
            SessionId::of_delivery("TARSY_ALERTS", 7, 1_790_000_000_000)
        );
        assert_ne!(
            first,
            SessionId::of_delivery("TARSY_ALERTS", 8, 1_790_000_000_000)
        );
        assert_eq!(SessionId::parse(&first.to_string()), Some(first));
        assert!(first < SessionId::of_delivery("TARSY_ALERTS", 1, 1_790_000_000_001));
    }

    #[test]
    fn every_repetition_of_a_message_has_the_same_id_and_each_part_its_own() {
        let first = SessionId::of_message(&[b"a", b"bc"], 1_790_000_000_000);
        assert_eq!(
            first,
            SessionId::of_message(&[b"a", b"bc"], 1_790_000_000_000)
        );
        assert_ne!(
            first,
            SessionId::of_message(&[b"ab", b"c"], 1_790_000_000_000)
        );
        assert_ne!(
            first,
            SessionId::of_message(&[b"a", b"bc"], 1_790_000_000_001)
        );
        let parts = [0, 1, 2].map(|part| first.of_part(part));
        assert_eq!(parts, [0, 1, 2].map(|part| first.of_part(part)));
        assert!(parts[0] != first && parts[0] != parts[1] && parts[1] != parts[2]);
        for part in parts {
            assert_eq!(SessionId::parse(&part.to_string()), Some(part));
            assert_eq!(
                part.0.get_timestamp(),
                first.0.get_timestamp(),
                "the order of ids is the order of time"
            );
        }
    }

    #[test]
    fn each_call_of_each_execution_has_a_sub_agent_of_its_own() {
        let session = SessionId(Uuid::from_u128(7));
        let parents = [1, 2].map(|agent_no| ExecutionId::derive(session, 1, agent_no));
        let ids: std::collections::BTreeSet<_> = parents
            .iter()
            .flat_map(|parent| ["a", "b"].map(|call| parent.of_sub_agent(call)))
            .chain(parents)
            .collect();
        assert_eq!(ids.len(), 6);
        assert_eq!(
            parents.map(|parent| parent.of_sub_agent("a").0.get_version_num()),
            [5, 5]
        );
    }

    #[test]
    fn only_a_version_seven_uuid_is_a_session_id() {
        assert_eq!(SessionId::parse("c0ffee"), None);
        assert_eq!(
            SessionId::parse("9b2f7c1e-3a4d-4f60-8f2a-0123456789ab"),
            None
        );
    }
}
