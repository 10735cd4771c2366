//! Groups consecutive similar sessions into one row, so that a storm of alerts takes one line.

use tarsy_core::chain::RunStatus;
use tarsy_reports::SessionEntry;

/// The number of similar sessions that form one row.
const MIN_ALIKE: usize = 4;

/// A session, or several alike ones, the newest first.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) entries: Vec<&'a SessionEntry>,
}

impl Group<'_> {
    /// The id by which an address opens the group: that of its oldest session, which stays the same while new alike
    /// sessions begin.
    pub(super) fn name(&self) -> String {
        self.entries
            .last()
            .map(|entry| entry.line.session_id.to_string())
            .unwrap_or_default()
    }

    /// Whether one of these ids is that of a session in the group.
    pub(super) fn is_one_of(&self, ids: &[String]) -> bool {
        self.entries
            .iter()
            .any(|entry| ids.contains(&entry.line.session_id.to_string()))
    }

    /// The number of sessions with this status.
    pub(super) fn count(&self, status: RunStatus) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.line.status == status)
            .count()
    }
}

/// Each session by itself.
pub(super) fn each<'a>(entries: &[&'a SessionEntry]) -> Vec<Group<'a>> {
    entries
        .iter()
        .map(|entry| Group {
            entries: vec![entry],
        })
        .collect()
}

/// The sessions in groups.
pub(super) fn groups<'a>(entries: &[&'a SessionEntry]) -> Vec<Group<'a>> {
    let runs = entries.chunk_by(|a, b| is_alike(a, b));
    runs.flat_map(|run| match run.len() {
        MIN_ALIKE.. => vec![Group {
            entries: run.to_vec(),
        }],
        _ => each(run),
    })
    .collect()
}

fn is_alike(a: &SessionEntry, b: &SessionEntry) -> bool {
    let same_fingerprint = a.fingerprint.is_some() && a.fingerprint == b.fingerprint;
    let is_same = a.line.severity == b.line.severity
        && a.line.parent_id.is_none()
        && b.line.parent_id.is_none();
    is_same && (same_fingerprint || name(a).is_some_and(|name_of_a| Some(name_of_a) == name(b)))
}

/// The name of the alert.
fn name(entry: &SessionEntry) -> Option<&str> {
    entry.line.title.as_deref()?.split_whitespace().next()
}
