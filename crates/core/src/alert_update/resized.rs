//! Alerts that are compared by their number, because they are not known one by one.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::alert::aggregate::{Aggregate, AggregateKind};
use crate::readable::format;

/// The number of alerts that are not known one by one, before and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resized {
    pub kind: AggregateKind,
    pub before: u32,
    /// The same as before for a group of which other alerts fire now.
    pub now: u32,
}

/// Whether one of both is a group that is too large: then only the numbers are comparable.
pub(super) fn is_large(known: &[Uuid], reported: &[Uuid]) -> bool {
    [known, reported]
        .iter()
        .any(|members| Aggregate::find(members, AggregateKind::Group).is_some())
}

impl Resized {
    /// The size of the whole group; `None` if it has not changed.
    pub(super) fn of_group(known: &[Uuid], reported: &[Uuid]) -> Option<Self> {
        let [before, now] = [known, reported].map(Aggregate::total);
        let is_changed = before != now || known.len() == reported.len() && known != reported;
        is_changed.then_some(Self {
            kind: AggregateKind::Group,
            before,
            now,
        })
    }

    /// The alerts that the sender leaves out; `None` if their number has not changed, or none is left out.
    pub(super) fn of_left_out(known: &[Uuid], reported: &[Uuid]) -> Option<Self> {
        let kind = AggregateKind::LeftOut;
        let now = Aggregate::find(reported, kind)?.count;
        let before = Aggregate::find(known, kind).map_or(0, |known| known.count);
        (before != now).then_some(Self { kind, before, now })
    }

    /// Whether there are alerts that did not fire before.
    pub(super) fn has_more(self) -> bool {
        self.now > self.before || self.has_others()
    }

    /// Alerts by which there are more.
    pub(super) fn growth(self) -> u32 {
        self.now.saturating_sub(self.before)
    }

    fn has_others(self) -> bool {
        self.now == self.before
    }

    pub(super) fn headline(self) -> String {
        let Self { kind, before, now } = self;
        let before = if before == 0 {
            "none".to_owned()
        } else {
            before.to_string()
        };
        match kind {
            AggregateKind::Group if self.has_others() => {
                format!("the group still has {now} firing alerts, but other ones")
            }
            AggregateKind::Group => format!(
                "the group now has {} ({before} before)",
                format::count(now, "firing alert")
            ),
            AggregateKind::LeftOut => format!(
                "the sender now leaves out {} ({before} before)",
                format::count(now, "alert")
            ),
        }
    }
}
