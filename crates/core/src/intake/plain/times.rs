//! The time at which a problem ended, as a body of no known form has it.

use chrono::{DateTime, Utc};

use super::facts::Fact;
use crate::sources::{WordList, parse_time};

/// Keys of the end of a problem.
const ENDS: WordList = WordList::new(
    "resolvedat resolvedon resolvedtime resolveddate resolvedtimestamp resolutiontime recoveredat recoverytime \
     clearedat cleartime closedat closedtime closedon endedat endedon endsat canceldate canceledat cancelledat \
     dateresolved",
);
/// Keys of an end that may be that of a measured period. They count beside a beginning.
const PERIODS: [&str; 4] = ["endtime", "enddate", "endtimestamp", "enddatetime"];
/// Words that show that a beginning and an end are a measured period.
const WINDOWS: WordList = WordList::new("window interval period query timerange aggregation");

/// The time of an end; `None` for any other field, and for a time that was not set.
pub(super) fn ended_at(fact: &Fact<'_>) -> Option<DateTime<Utc>> {
    let word = fact.word();
    let is_period = PERIODS.contains(&word.as_str());
    if !(ENDS.contains(word.as_str()) || is_period && has_beginning(fact)) {
        return None;
    }
    parse_time(&fact.written())
}

fn has_beginning(fact: &Fact<'_>) -> bool {
    let plain = |key: &String| key.to_lowercase().replace(['_', '-'], "");
    let begins = fact
        .object
        .iter()
        .any(|(key, value)| plain(key).starts_with("start") && !value.is_null());
    let in_window = fact.owner.iter().any(|piece| WINDOWS.is_in(piece));
    begins && !in_window && !fact.object.keys().any(|key| WINDOWS.is_in(&plain(key)))
}
