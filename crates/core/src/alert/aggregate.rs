//! Aggregate members: one hash for several alerts of a group that are not known one by one.
//!
//! The hash contains their number, so that it is stored and compared where the hashes of single alerts are.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The first half of a hash: this and the number of the kind.
const MARK: u64 = u64::from_be_bytes(*b"tarsyag\0");

/// Several alerts with one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    pub kind: AggregateKind,
    /// The number of alerts that it represents.
    pub count: u32,
}

/// The reason why alerts are not known one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AggregateKind {
    /// All firing alerts of a group that is too large to compare them one by one.
    Group,
    /// Alerts that the sender has left out of its message.
    LeftOut,
}

impl AggregateKind {
    const ALL: [Self; 2] = [Self::Group, Self::LeftOut];

    fn mark(self) -> u64 {
        match self {
            Self::Group => MARK + 1,
            Self::LeftOut => MARK + 2,
        }
    }
}

impl Aggregate {
    /// The hash of alerts that the sender has left out: only their number is known.
    pub fn left_out(count: u64) -> Uuid {
        Self {
            kind: AggregateKind::LeftOut,
            count: u32::try_from(count).unwrap_or(u32::MAX),
        }
        .member(0)
    }

    /// The hash of a whole group; `digest` distinguishes groups of the same size.
    pub fn group(members: &[Uuid], digest: u32) -> Uuid {
        Self {
            kind: AggregateKind::Group,
            count: Self::total(members),
        }
        .member(digest)
    }

    fn member(self, digest: u32) -> Uuid {
        Uuid::from_u64_pair(
            self.kind.mark(),
            u64::from(self.count) << 32 | u64::from(digest),
        )
    }

    /// `None` for the hash of a single alert.
    pub fn containing(member: &Uuid) -> Option<Self> {
        let (mark, rest) = member.as_u64_pair();
        let kind = AggregateKind::ALL
            .into_iter()
            .find(|kind| kind.mark() == mark)?;
        Some(Self {
            kind,
            count: u32::try_from(rest >> 32).ok()?,
        })
    }

    /// The aggregate of this kind among the members.
    pub fn find(members: &[Uuid], kind: AggregateKind) -> Option<Self> {
        members
            .iter()
            .filter_map(Self::containing)
            .find(|aggregate| aggregate.kind == kind)
    }

    /// The number of alerts that the members represent.
    pub fn total(members: &[Uuid]) -> u32 {
        members
            .iter()
            .map(|member| Self::containing(member).map_or(1, |aggregate| aggregate.count))
            .fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aggregate_is_read_from_its_hash_and_a_single_alert_is_none() {
        let single = Uuid::from_u128(7);
        let group = Aggregate::group(&[single, Aggregate::left_out(299)], 5);
        let of = |kind, count| Some(Aggregate { kind, count });
        assert_eq!(Aggregate::containing(&group), of(AggregateKind::Group, 300));
        assert_eq!(
            Aggregate::containing(&Aggregate::left_out(u64::MAX)),
            of(AggregateKind::LeftOut, u32::MAX)
        );
        assert_eq!(Aggregate::containing(&single), None);
        assert_ne!(group, Aggregate::group(&[Aggregate::left_out(300)], 6));
    }
}
