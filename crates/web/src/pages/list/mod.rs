//! The list of sessions: running ones and days, groups of similar sessions, tabs with counts, search, pages.

mod query;
mod filters;
mod alike;
mod entry;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use maud::{Markup, html};

use self::alike::{Group, each, groups};
use crate::api::WAITING;
use crate::shell::words::brief;
use tarsy_core::chain::RunStatus;
use tarsy_reports::{Facets, SessionEntry, StatusCounts};

pub(crate) use self::filters::Hidden;
pub(crate) use self::query::{Alike, PERIOD, Query};

/// The content of the list.
#[derive(Clone, Debug)]
pub(crate) struct List<'a> {
    pub entries: &'a [SessionEntry],
    /// Questions about these investigations, the newest first.
    pub asked: &'a [SessionEntry],
    /// `None` while the counts cannot be read.
    pub counts: Option<StatusCounts>,
    pub query: &'a Query,
    pub system: &'a System,
    pub facets: &'a Facets,
    /// The faults in the query string; those parameters are ignored.
    pub faults: &'a [String],
    /// The sessions that each value of the filter hides, if the list is empty.
    pub hidden: &'a [Hidden],
    /// The id that the next page begins after.
    pub next: Option<String>,
    pub now: DateTime<Utc>,
}

/// The system in one line. Each part is absent while its source does not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct System {
    pub waiting: Option<u64>,
    pub workers: usize,
    pub slots: u32,
    pub busy: u32,
    pub dead_letters: Option<usize>,
}

/// Most dead letters that are counted.
pub(crate) const MAX_DEAD_LETTERS: u32 = 100;

/// The page below its bar.
pub(crate) fn list(list: &List<'_>) -> Markup {
    let days = days(list);
    html! {
        (system(list.system))
        div.lh {
            h1 { "Sessions" }
            (tabs(list))
            (period(list.query))
        }
        (filters::bar(list))
        @for fault in list.faults { p.banner { "Left out: " (brief(fault, 300)) } }
        @if list.entries.is_empty() { (empty(list)) }
        @for day in &days {
            h2.day { (day.name) }
            ol.srs { @for group in &day.groups { (entry::row(group, list)) } }
        }
        @if !list.entries.is_empty() {
            p.end {
                @match &list.next {
                    Some(next) => a href={ (list.query.link(&[("before", next.as_str())])) } rel="next" { "Earlier sessions" },
                    None => { (all_of(list.query)) }
                }
            }
        }
    }
}

fn system(system: &System) -> Markup {
    let dead = system.dead_letters.unwrap_or_default();
    let more = if dead as u64 >= u64::from(MAX_DEAD_LETTERS) {
        "+"
    } else {
        ""
    };
    html! {
        section.fleet aria-label="The system now" {
            @if let Some(waiting) = system.waiting { a href="/queue" { b { (waiting) } " waiting" } }
            a href="/queue" { b { (system.busy) } " of " (system.slots) " slots busy" }
            a class=[(system.workers == 0).then_some("warn")] href="/queue#workers" {
                b { (system.workers) } (if system.workers == 1 { " worker" } else { " workers" })
            }
            @if dead > 0 {
                a.warn href="/queue#dead" {
                    b { (dead) (more) } (if dead == 1 { " dead letter" } else { " dead letters" })
                }
            }
        }
    }
}

fn tabs(list: &List<'_>) -> Markup {
    let counts = list.counts;
    let all = counts.map(|counts| {
        let ended =
            counts.completed + counts.failed + counts.cancelled + counts.timed_out + counts.limited;
        counts.running + ended
    });
    let limited = counts
        .map(|counts| counts.limited)
        .filter(|limited| *limited > 0);
    let waiting = counts
        .map(|counts| counts.waiting_for_approval)
        .filter(|waiting| *waiting > 0);
    let tab = |word: &str, name: &str, count: Option<i64>| {
        let shown = list.query.filter.status.as_slice();
        let is_current = if word.is_empty() {
            shown.is_empty()
        } else {
            shown == [word]
        };
        let current = is_current.then_some("true");
        html! {
            a aria-current=[current] href=(list.query.link(&[("status", word)])) {
                (name) @if let Some(count) = count { " " span { (count) } }
            }
        }
    };
    html! {
        nav.seg aria-label="Status" {
            (tab("", "All", all))
            (tab(RunStatus::Running.as_str(), "Running", counts.map(|counts| counts.running)))
            @if waiting.is_some() { (tab(WAITING, "Waiting for approval", waiting)) }
            (tab(RunStatus::Completed.as_str(), "Completed", counts.map(|counts| counts.completed)))
            (tab(RunStatus::Failed.as_str(), "Failed", counts.map(|counts| counts.failed)))
            (tab(RunStatus::TimedOut.as_str(), "Timed out", counts.map(|counts| counts.timed_out)))
            (tab(RunStatus::Cancelled.as_str(), "Cancelled", counts.map(|counts| counts.cancelled)))
            @if limited.is_some() { (tab(RunStatus::Limited.as_str(), "Limited", limited)) }
        }
    }
}

/// The periods that the form offers: value, name, and its words after a list.
const PERIODS: [(&str, &str); 4] = [
    ("24h", "last 24 hours"),
    ("7d", "last 7 days"),
    ("30d", "last 30 days"),
    ("", "all times"),
];

fn period(query: &Query) -> Markup {
    let is_offered =
        query.filter.until.is_empty() && PERIODS.iter().any(|(value, _)| *value == query.since());
    html! {
        form.flt action="/" {
            (filters::kept(query, &["since", "until"]))
            label.vh for="since" { "Since" }
            select #since name="since" {
                @for (value, name) in PERIODS {
                    option value=(value) selected[is_offered && query.since() == value] { (name) }
                }
                @if !is_offered { option value=(brief(query.since(), 40)) selected { "another period" } }
            }
            button { "Show" }
        }
    }
}

fn all_of(query: &Query) -> String {
    let is_open = query.filter.until.is_empty();
    let period = PERIODS
        .iter()
        .find(|(value, _)| is_open && *value == query.since() && !value.is_empty());
    let period = period
        .map(|(_, name)| format!(" of the {name}"))
        .unwrap_or_default();
    let words = if query.filter.q.is_empty() {
        ""
    } else {
        " with these words"
    };
    format!("No more sessions{words}{period}.")
}

fn empty(list: &List<'_>) -> Markup {
    let query = list.query;
    let q = query.filter.q.as_str();
    let has_words = !q.is_empty();
    let shown = PERIODS
        .iter()
        .position(|(value, _)| query.filter.until.is_empty() && *value == query.since());
    let of = match shown.and_then(|at| PERIODS.get(at)) {
        Some(("", _)) => String::new(),
        Some((_, name)) => format!(" of the {name}"),
        None => " of this period".to_owned(),
    };
    let longer: Vec<_> = PERIODS
        .iter()
        .skip(shown.map_or(0, |at| at + 1))
        .filter(|(value, _)| *value != "30d")
        .collect();
    let verb = if has_words { "Search" } else { "Show" };
    let has_others = query
        .filter
        .parts()
        .iter()
        .any(|part| part.name != "since" && part.name != "words");
    html! {
        div.empty {
            @if has_words {
                p { b { "“" (brief(q, 100)) "”" } " is in no alert and no analysis" (of)
                    @if has_others { " with these filters" } "." }
            } @else if has_others {
                p { "No session" (of) " has all of these filters." }
            } @else {
                p { "No session" (of) ". Publish an alert:" }
                p { code { "echo 'disk full on db-3' | tarsy submit -" } }
            }
            (filters::hidden(list))
            @if !longer.is_empty() {
                p { (verb) " "
                    @for (index, (value, name)) in longer.iter().enumerate() {
                        @if index > 0 { " or " } @if name.starts_with("last") { "the " }
                        a href=(query.link(&[("since", value), ("until", "")])) { (name) }
                    }
                }
            }
            @if has_words { p.muted { "An id is found by six or more characters of its beginning or its end." } }
        }
    }
}

/// The sessions of a day; running ones precede all days.
struct Day<'a> {
    name: String,
    groups: Vec<Group<'a>>,
}

fn days<'a>(list: &List<'a>) -> Vec<Day<'a>> {
    let (running, ended): (Vec<_>, Vec<_>) = list
        .entries
        .iter()
        .partition(|entry| entry.line.status == RunStatus::Running);
    let of = |entries: &[&'a SessionEntry]| match list.query.alike {
        Alike::Each => each(entries),
        Alike::Folded { .. } => groups(entries),
    };
    let mut days = Vec::new();
    if !running.is_empty() {
        days.push(Day {
            name: "Running".to_owned(),
            groups: of(&running),
        });
    }
    for of_day in
        ended.chunk_by(|a, b| a.line.created_at.date_naive() == b.line.created_at.date_naive())
    {
        let Some(first) = of_day.first() else {
            continue;
        };
        let name = day_name(first.line.created_at.date_naive(), list.now.date_naive());
        days.push(Day {
            name,
            groups: of(of_day),
        });
    }
    days
}

/// `Today, Sunday 22 November`
fn day_name(day: NaiveDate, today: NaiveDate) -> String {
    let near = match (today - day).num_days() {
        0 => "Today, ",
        1 => "Yesterday, ",
        _ => "",
    };
    let year = if day.year() == today.year() {
        String::new()
    } else {
        format!(" {}", day.year())
    };
    format!("{near}{}{year}", day.format("%A %-d %B"))
}
