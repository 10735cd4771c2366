//! Alert updates: what a later alert of a group adds to the investigation that it joins.
//!
//! An update is decided once, from what the investigation knows and what the alert reports. Agents get it in one
//! message before their next model call, and people in one event.

use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::alert::aggregate::Aggregate;
use super::alert::{AlertStatus, MemberReport, Severity};
use super::execution::entry::{AlertUpdated, Entry};

mod resized;

pub use resized::Resized;

/// Further updates of a session are counted as joins only.
pub const MAX_UPDATES: u32 = 50;
/// Alerts of a group that an investigation distinguishes; further ones are counted.
pub const MAX_KNOWN: usize = 512;
/// Alerts that one update describes; further ones are counted.
const MAX_DESCRIBED: usize = 10;
/// Updates that one message describes, the newest ones; earlier ones are summed up.
const MAX_SHOWN: usize = 5;
/// Maximum size of the part of a message that quotes alerts.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The knowledge of an investigation about its alert: the alert that opened it, and each update since.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KnownAlert {
    /// Number of the last update; 0 before the first.
    pub updates: u32,
    /// Members that fire.
    pub firing: Vec<Uuid>,
    /// Members that fired and are resolved.
    pub resolved: Vec<Uuid>,
    /// The worst one so far.
    pub severity: Severity,
    pub status: AlertStatus,
}

/// The report of an alert about its group.
#[derive(Clone, Copy, Debug)]
pub struct ReportedAlert<'a> {
    pub status: AlertStatus,
    /// The time when the status changed, by the clock of the sender.
    pub at: Option<DateTime<Utc>>,
    pub severity: Severity,
    /// Members that fire.
    pub members: &'a [Uuid],
    /// Members that are resolved: [`resolved_members`].
    pub resolved: &'a [Uuid],
    pub reports: &'a [MemberReport],
}

/// The change that one alert makes to an investigation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertUpdate {
    /// The severity, if it is worse than any before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The status, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AlertStatus>,
    /// The time at which the whole alert was resolved, by the clock of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<DateTime<Utc>>,
    /// Alerts that fire and did not before.
    #[serde(default)]
    pub firing: Described,
    /// Alerts that fired and are resolved.
    #[serde(default)]
    pub resolved: Described,
    /// The number of alerts that are not known one by one, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized: Option<Resized>,
}

/// Alerts, the first ones with their descriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    pub count: u32,
    /// Clean and masked lines.
    pub lines: Vec<String>,
}

/// An update with its number within the session, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedUpdate {
    pub number: u32,
    pub update: AlertUpdate,
}

/// The words of an update in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Change {
    /// More of the group fires, or it fires again.
    Firing,
    Severity,
    /// Some or all of the group is resolved, or the group is smaller.
    Resolved,
}

crate::words!(pub Change, pub ALL);

impl KnownAlert {
    /// The update that `alert` makes, with the knowledge after it; `None` if nothing is new, or after [`MAX_UPDATES`].
    ///
    /// `store/sql/open.sql` asks for this only when there may be something new, by the same comparison.
    pub fn update(&self, alert: &ReportedAlert<'_>) -> Option<(Self, AlertUpdate)> {
        if self.updates >= MAX_UPDATES {
            return None;
        }
        let mut after = Self {
            updates: self.updates + 1,
            ..self.clone()
        };
        let mut update = AlertUpdate {
            status: (alert.status != self.status).then_some(alert.status),
            ..<_>::default()
        };
        after.status = alert.status;
        match alert.status {
            // The model investigates the condition. Whether a person works on it, too, changes nothing about it.
            AlertStatus::Acknowledged | AlertStatus::Test | AlertStatus::Ignored => return None,
            AlertStatus::Resolved => {
                update.resolved_at = update.status.and(alert.at);
                update.resolved = Described::new(&self.firing, alert.reports);
                after.resolved.append(&mut after.firing);
            }
            AlertStatus::Firing => {
                let over = alert
                    .resolved
                    .iter()
                    .filter(|member| self.firing.contains(member));
                let over: Vec<Uuid> = over.copied().collect();
                if resized::is_large(&self.firing, alert.members) {
                    update.resized = Resized::of_group(&self.firing, alert.members);
                    after.firing = alert.members.to_vec();
                    after
                        .resolved
                        .retain(|member| !alert.members.contains(member));
                } else {
                    update.resized = Resized::of_left_out(&self.firing, alert.members);
                    let begun = self.begin(&mut after, alert.members);
                    after.firing.retain(|member| !over.contains(member));
                    update.firing = Described::new(&begun, alert.reports);
                }
                after.resolved.extend(&over);
                update.resolved = Described::new(&over, alert.reports);
                update.severity = (alert.severity > self.severity).then_some(alert.severity);
                after.severity = self.severity.max(alert.severity);
            }
        }
        (!update.is_empty()).then_some((after, update))
    }

    /// Adds members that begin to fire, and returns them. The number of alerts that the sender leaves out is replaced.
    fn begin(&self, after: &mut Self, members: &[Uuid]) -> Vec<Uuid> {
        let room = MAX_KNOWN.saturating_sub(self.firing.len() + self.resolved.len());
        let is_single = |member: &Uuid| Aggregate::containing(member).is_none();
        let begun = members
            .iter()
            .filter(|member| is_single(member) && !self.firing.contains(member));
        let (again, new): (Vec<Uuid>, Vec<Uuid>) = begun
            .copied()
            .partition(|member| self.resolved.contains(member));
        after.resolved.retain(|member| !again.contains(member));
        after.firing.retain(is_single);
        after
            .firing
            .extend(again.iter().chain(new.iter().take(room)));
        after
            .firing
            .extend(members.iter().filter(|member| !is_single(member)));
        if room == 0 {
            again
        } else {
            again.into_iter().chain(new).collect()
        }
    }
}

/// The members that an alert reports as resolved and not as firing, too.
pub fn resolved_members(firing: &[Uuid], reports: &[MemberReport]) -> Vec<Uuid> {
    let resolved = reports
        .iter()
        .filter(|report| report.status == AlertStatus::Resolved);
    let mut members: Vec<Uuid> = resolved.map(|report| report.member).collect();
    members.sort_unstable();
    members.dedup();
    members.retain(|member| !firing.contains(member));
    members
}

impl Described {
    fn new(members: &[Uuid], reports: &[MemberReport]) -> Self {
        let described = reports
            .iter()
            .filter(|report| members.contains(&report.member));
        let lines = described
            .map(|report| report.text.clone())
            .take(MAX_DESCRIBED)
            .collect();
        Self {
            count: Aggregate::total(members),
            lines,
        }
    }
}

impl AlertUpdate {
    fn is_empty(&self) -> bool {
        self.changes().next().is_none()
    }

    /// The changes of this update.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        Change::ALL
            .into_iter()
            .filter(|change: &Change| match change {
                Change::Firing => {
                    self.firing.count > 0
                        || self.status == Some(AlertStatus::Firing)
                        || self.resized.is_some_and(Resized::has_more)
                }
                Change::Severity => self.severity.is_some(),
                Change::Resolved => {
                    let is_smaller = self.resized.is_some_and(|resized| !resized.has_more());
                    self.resolved.count > 0
                        || self.status == Some(AlertStatus::Resolved)
                        || is_smaller
                }
            })
    }

    /// The update in one line: `3 more alerts fire; the severity is now critical`.
    pub fn headline(&self) -> String {
        let fires = match (self.firing.count, self.status) {
            (0, Some(AlertStatus::Firing)) => Some("the alert fires again".to_owned()),
            (0, _) => None,
            (1, _) => Some("1 more alert fires".to_owned()),
            (count, _) => Some(format!("{count} more alerts fire")),
        };
        let resolved = match (self.resolved.count, self.status) {
            (_, Some(AlertStatus::Resolved)) => {
                let since = self
                    .resolved_at
                    .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
                Some(format!(
                    "the alert is resolved{}",
                    since.map(|at| format!(" since {at}")).unwrap_or_default()
                ))
            }
            (0, _) => None,
            (1, _) => Some("1 alert is resolved".to_owned()),
            (count, _) => Some(format!("{count} alerts are resolved")),
        };
        let worse = self
            .severity
            .map(|severity| format!("the severity is now {}", severity.as_str()));
        let resized = self.resized.map(Resized::headline);
        [fires, resized, resolved, worse]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Alerts that began to fire.
    fn begun(&self) -> u32 {
        self.firing
            .count
            .saturating_add(self.resized.map(Resized::growth).unwrap_or_default())
    }

    fn write(&self, text: &mut String) {
        text.push_str(&self.headline());
        text.push('\n');
        for (what, described) in [("fires", &self.firing), ("resolved", &self.resolved)] {
            for line in &described.lines {
                writeln!(text, "- {what}: {line}").ok();
            }
            let more = usize::try_from(described.count)
                .unwrap_or(usize::MAX)
                .saturating_sub(described.lines.len());
            if more > 0 && !described.lines.is_empty() {
                writeln!(text, "- and {more} more").ok();
            }
        }
    }
}

/// The entry that reports these updates to an agent, in the order of their numbers; `None` without any.
pub fn entry(updates: &[NumberedUpdate]) -> Option<Entry> {
    let upto = updates.last()?.number;
    let (earlier, shown) = updates.split_at(updates.len().saturating_sub(MAX_SHOWN));
    let sum = |updates: &[NumberedUpdate], of: fn(&AlertUpdate) -> u32| {
        updates
            .iter()
            .map(|numbered| of(&numbered.update))
            .fold(0, u32::saturating_add)
    };
    let resolved: fn(&AlertUpdate) -> u32 = |update| update.resolved.count;
    let mut content = String::new();
    if !earlier.is_empty() {
        let [firing, over] = [AlertUpdate::begun, resolved].map(|of| sum(earlier, of));
        let count = earlier.len();
        writeln!(
            content,
            "{count} earlier changes: {firing} alerts began to fire, {over} were resolved"
        )
        .ok();
    }
    for NumberedUpdate { update, .. } in shown {
        update.write(&mut content);
    }
    if content.len() > MAX_TEXT_BYTES {
        content.truncate(content.floor_char_boundary(MAX_TEXT_BYTES));
        content.push_str("…\n");
    }
    content.truncate(content.trim_end().len());
    Some(Entry::AlertUpdated(AlertUpdated {
        upto,
        severity: updates
            .iter()
            .filter_map(|numbered| numbered.update.severity)
            .max(),
        status: updates
            .iter()
            .rev()
            .find_map(|numbered| numbered.update.status),
        firing: sum(updates, AlertUpdate::begun),
        resolved: sum(updates, resolved),
        content,
    }))
}

#[cfg(test)]
mod tests;
