//! Records as text. The words of tarsy begin a line; the words of an earlier alert and its analysis are indented, each
//! field in one line, so none of them can look like a line of tarsy.

use chrono::{DateTime, Utc};

use super::{Past, PastSession, Relation};
use crate::alert::Severity;
use crate::clock::in_words;
use crate::readable::bounded::{cut, line};
use crate::summary::{Sure, fields};
use crate::verdicts::{PersonVerdict, Rating};

/// Characters of the text of one record.
pub(super) const MAX_RECORD: usize = 600;
/// Bytes of the text of all records.
pub(super) const MAX_BYTES: usize = 8 * 1024;
/// Characters of each field.
const MAX_TITLE: usize = 100;
const MAX_CAUSE: usize = 220;
const MAX_NEXT: usize = 140;
/// Characters of the words of a person.
const MAX_SAID: usize = 120;
const MAX_DID: usize = 60;
/// Characters of a cause beside these words.
const MAX_JUDGED_CAUSE: usize = 100;
/// Before each line of text from outside.
const INDENT: &str = "    ";

/// The part of a record that its reader knows already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// All records are of the same alert.
    Alert,
    Nothing,
}

/// A record as a block of at most 600 characters. `shown` is its time and `now` the present, by the clock of a plan.
pub(super) fn block(
    past: &PastSession,
    shown: DateTime<Utc>,
    now: DateTime<Utc>,
    known: Known,
) -> String {
    let fields = past.summary.as_deref().map(fields).unwrap_or_default();
    let alert = match known {
        Known::Alert => Vec::new(),
        Known::Nothing => vec![
            Some(past.severity.map_or("unknown", Severity::as_str)),
            Some(match past.relation {
                Relation::SameAlert => "same alert",
                Relation::OtherAlert => "other alert",
            }),
        ],
    };
    let facts = [
        Some(shown.format("%Y-%m-%d %H:%M UTC").to_string()),
        Some(age(shown, now)),
        Some(format!("session {}", past.session.short())),
    ]
    .into_iter()
    .chain(alert.into_iter().map(|word| word.map(str::to_owned)))
    .chain([
        fields.sure.map(|sure: Sure| sure.as_str().to_owned()),
        past.mark.map(|mark| mark.word().to_owned()),
    ]);
    let head = facts.flatten().collect::<Vec<_>>().join(", ");
    let title = match known {
        Known::Alert => None,
        Known::Nothing => Some(line(&past.title, MAX_TITLE)),
    };
    let labelled = |label: &str, text: Option<&String>, max: usize| {
        text.map(|text| format!("{label}: {}", line(text, max)))
    };
    let max_cause = match past.verdict {
        Some(_) => MAX_JUDGED_CAUSE,
        None => MAX_CAUSE,
    };
    let cause = labelled("Cause", fields.cause.as_ref(), max_cause)
        .unwrap_or_else(|| "It names no cause.".to_owned());
    let next = labelled("Do next", fields.next.as_ref(), MAX_NEXT);
    let below = title
        .into_iter()
        .chain(past.verdict.iter().flat_map(judged))
        .chain([cause])
        .chain(next);
    // A line that does not fit is left out: one that is cut could lose its indentation.
    let text = below.fold(head, |text, line| {
        let longer = format!("{text}\n{INDENT}{line}");
        if longer.chars().count() > MAX_RECORD {
            text
        } else {
            longer
        }
    });
    cut(text, MAX_RECORD)
}

/// The words of a person about the analysis, before those of the analysis: a wrong one is marked, not hidden.
fn judged(verdict: &PersonVerdict) -> Vec<String> {
    let rating = match verdict.rating {
        Rating::Right => "A person judged this right.",
        Rating::Partly => "A person judged this partly right.",
        Rating::Wrong => "A person judged this wrong.",
    };
    let cause = verdict.cause.as_ref();
    let cause = cause.map(|cause| format!(" The cause, in their words: {}", line(cause, MAX_SAID)));
    let action = verdict.action.as_ref();
    let action = action.map(|action| format!("They did: {}", line(action, MAX_DID)));
    let mut lines = vec![format!("{rating}{}", cause.unwrap_or_default())];
    lines.extend(action);
    lines
}

/// The records below a heading, as many as fit.
pub(super) fn list(heading: &str, blocks: impl IntoIterator<Item = String>) -> String {
    let mut text = heading.to_owned();
    let mut left_out = 0_u32;
    for block in blocks {
        if left_out > 0 || text.len() + block.len() >= MAX_BYTES {
            left_out += 1;
            continue;
        }
        text.push('\n');
        text.push_str(&block);
    }
    if left_out > 0 {
        text.push_str(&format!("\n{left_out} more do not fit here."));
    }
    text
}

/// `4 times in 30 days. The newest:`.
pub(super) fn times(past: &Past) -> String {
    let days = days(past.days);
    let shown = u32::try_from(past.sessions.len()).unwrap_or(u32::MAX);
    match past.total {
        0 | 1 => format!("Once in {days}:"),
        total if total > shown => format!("{total} times in {days}. The newest:"),
        total => format!("{total} times in {days}:"),
    }
}

/// `1 day`, `30 days`.
pub(super) fn days(days: u32) -> String {
    if days == 1 {
        "1 day".to_owned()
    } else {
        format!("{days} days")
    }
}

fn age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = now - at;
    if age < chrono::TimeDelta::minutes(1) {
        return "just now".to_owned();
    }
    let spelled = in_words(age);
    // Hours beside days are noise, and so are minutes beside many hours.
    let coarse = match spelled.split_once(" day") {
        Some((number, _)) if age >= chrono::TimeDelta::days(2) => format!("{number} days"),
        Some(_) | None => spelled,
    };
    format!("{coarse} ago")
}
