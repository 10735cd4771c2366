//! The list of sessions: running ones and days, alike sessions as one row, tabs with counts, search, pages.

mod alike;
mod entry;

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use maud::{Markup, html};

use self::alike::{Group, each, groups};
use crate::investigation::chain::RunStatus;
use crate::investigation::ids::SessionId;
use crate::investigation::readable::text::short_id;
use crate::reports::{SessionEntry, StatusCounts};
use crate::web::pages::words::brief;

/// What the list shows.
#[derive(Debug)]
pub(in crate::web) struct List<'a> {
    pub(in crate::web) entries: &'a [SessionEntry],
    /// `None` while the counts cannot be read.
    pub(in crate::web) counts: Option<StatusCounts>,
    pub(in crate::web) query: &'a Query,
    pub(in crate::web) system: &'a System,
    /// The id that the next page begins after.
    pub(in crate::web) next: Option<String>,
    pub(in crate::web) now: DateTime<Utc>,
}

/// The parameters of the list, as they go into links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::web) struct Query {
    pub(in crate::web) status: String,
    pub(in crate::web) since: String,
    pub(in crate::web) q: String,
    /// The id that the page begins after, and its number of sessions, as they stand in the address.
    pub(in crate::web) before: String,
    pub(in crate::web) limit: String,
    pub(in crate::web) alike: Alike,
}

/// How alike sessions are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) enum Alike {
    /// As one row; those that have a session with one of these ids are open.
    Folded { open: Vec<String> },
    /// Each by itself.
    Each,
}

impl Default for Alike {
    fn default() -> Self {
        Self::Folded { open: Vec::new() }
    }
}

impl Alike {
    /// The parameter of an address: `0`, or ids with commas between them.
    pub(in crate::web) fn of(word: &str) -> Self {
        if word == "0" {
            return Self::Each;
        }
        let ids = word.split(',').map(str::trim).filter_map(SessionId::parse);
        Self::Folded { open: ids.take(MAX_OPEN).map(|id| id.to_string()).collect() }
    }

    fn word(&self) -> String {
        match self {
            Self::Folded { open } => open.join(","),
            Self::Each => "0".to_owned(),
        }
    }

    /// The parameter with which one more group is open, or one fewer.
    fn toggled(&self, group: &Group<'_>) -> String {
        let Self::Folded { open } = self else { return group.name() };
        if !group.is_one_of(open) {
            return open.iter().cloned().chain([group.name()]).collect::<Vec<_>>().join(",");
        }
        let is_of_group = |id: &&String| group.is_one_of(std::slice::from_ref(*id));
        open.iter().filter(|id| !is_of_group(id)).cloned().collect::<Vec<_>>().join(",")
    }

    fn is_open(&self, group: &Group<'_>) -> bool {
        matches!(self, Self::Folded { open } if group.is_one_of(open))
    }
}

/// Open groups of an address.
const MAX_OPEN: usize = 50;

/// The system in one line. Each part is absent while its source does not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::web) struct System {
    pub(in crate::web) waiting: Option<u64>,
    pub(in crate::web) workers: usize,
    pub(in crate::web) slots: u32,
    pub(in crate::web) busy: u32,
    pub(in crate::web) dead_letters: Option<usize>,
}

/// Most dead letters that are counted.
pub(in crate::web) const MAX_DEAD_LETTERS: u32 = 100;

/// The page below its bar.
pub(in crate::web) fn list(list: &List<'_>) -> Markup {
    let days = days(list);
    html! {
        (system(list.system))
        div.lh {
            h1 { "Sessions" }
            (tabs(list))
            (period(list.query))
        }
        @if list.entries.is_empty() { (empty(list.query)) }
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
    let more = if dead as u64 >= u64::from(MAX_DEAD_LETTERS) { "+" } else { "" };
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
    let all =
        counts.map(|counts| counts.running + counts.completed + counts.failed + counts.cancelled + counts.timed_out);
    let tab = |status: Option<RunStatus>, name: &str, count: Option<i64>| {
        let word = status.map_or("", RunStatus::as_str);
        let current = (list.query.status == word).then_some("true");
        html! {
            a aria-current=[current] href=(list.query.link(&[("status", word)])) {
                (name) @if let Some(count) = count { " " span { (count) } }
            }
        }
    };
    html! {
        nav.seg aria-label="Status" {
            (tab(None, "All", all))
            (tab(Some(RunStatus::Running), "Running", counts.map(|counts| counts.running)))
            (tab(Some(RunStatus::Completed), "Completed", counts.map(|counts| counts.completed)))
            (tab(Some(RunStatus::Failed), "Failed", counts.map(|counts| counts.failed)))
            (tab(Some(RunStatus::TimedOut), "Timed out", counts.map(|counts| counts.timed_out)))
            (tab(Some(RunStatus::Cancelled), "Cancelled", counts.map(|counts| counts.cancelled)))
        }
    }
}

/// The periods that the form offers: value, name, and its words behind a list.
const PERIODS: [(&str, &str); 4] =
    [("24h", "last 24 hours"), ("7d", "last 7 days"), ("30d", "last 30 days"), ("", "all times")];

fn period(query: &Query) -> Markup {
    html! {
        form.flt action="/" {
            @if !query.status.is_empty() { input type="hidden" name="status" value=(brief(&query.status, 40)); }
            @if !query.q.is_empty() { input type="hidden" name="q" value=(brief(&query.q, 200)); }
            label.vh for="since" { "Since" }
            select #since name="since" {
                @for (value, name) in PERIODS {
                    option value=(value) selected[query.since == value] { (name) }
                }
            }
            button { "Show" }
        }
    }
}

fn all_of(query: &Query) -> String {
    let period = PERIODS.iter().find(|(value, _)| *value == query.since && !value.is_empty());
    let period = period.map(|(_, name)| format!(" of the {name}")).unwrap_or_default();
    let words = if query.q.is_empty() { "" } else { " with these words" };
    format!("No more sessions{words}{period}.")
}

fn empty(query: &Query) -> Markup {
    let has_words = !query.q.is_empty();
    let shown = PERIODS.iter().position(|(value, _)| *value == query.since);
    let of = match PERIODS.iter().find(|(value, _)| *value == query.since) {
        Some(("", _)) => String::new(),
        Some((_, name)) => format!(" of the {name}"),
        None => " of this period".to_owned(),
    };
    let longer: Vec<_> =
        PERIODS.iter().skip(shown.map_or(0, |at| at + 1)).filter(|(value, _)| *value != "30d").collect();
    let verb = if has_words { "Search" } else { "Show" };
    html! {
        div.empty {
            @if has_words {
                p { b { "“" (brief(&query.q, 100)) "”" } " is in no alert and no analysis" (of) "." }
            } @else if !query.status.is_empty() {
                p { "No session" (of) " has this status." }
            } @else {
                p { "No session" (of) ". Publish an alert:" }
                p { code { "echo 'disk full on db-3' | tarsy submit -" } }
            }
            @if !longer.is_empty() {
                p { (verb) " "
                    @for (index, (value, name)) in longer.iter().enumerate() {
                        @if index > 0 { " or " } @if name.starts_with("last") { "the " }
                        a href=(query.link(&[("since", value)])) { (name) }
                    }
                }
            }
            @if !query.status.is_empty() { p { a href=(query.link(&[("status", "")])) { (verb) " every status" } } }
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
    let is_running = |entry: &&SessionEntry| entry.line.status == RunStatus::Running;
    let (running, ended): (Vec<_>, Vec<_>) = list.entries.iter().partition(is_running);
    let of = |entries: &[&'a SessionEntry]| match list.query.alike {
        Alike::Each => each(entries),
        Alike::Folded { .. } => groups(entries),
    };
    let mut days = Vec::new();
    if !running.is_empty() {
        days.push(Day { name: "Running".to_owned(), groups: of(&running) });
    }
    for of_day in ended.chunk_by(|a, b| a.line.created_at.date_naive() == b.line.created_at.date_naive()) {
        let Some(first) = of_day.first() else { continue };
        let name = day_name(first.line.created_at.date_naive(), list.now.date_naive());
        days.push(Day { name, groups: of(of_day) });
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
    let year = if day.year() == today.year() { String::new() } else { format!(" {}", day.year()) };
    format!("{near}{}{year}", day.format("%A %-d %B"))
}

impl Query {
    /// The address of this page with a group of alike sessions opened or folded, at the place of the group.
    fn toggle(&self, group: &Group<'_>) -> String {
        let alike = self.alike.toggled(group);
        let place = group.name();
        format!("{}#g-{}", self.link(&[("alike", &alike), ("before", &self.before)]), short_id(&place))
    }

    /// The address of the list with other parameters, from its first page on.
    pub(in crate::web) fn link(&self, other: &[(&str, &str)]) -> String {
        let alike = self.alike.word();
        let own = [
            ("status", self.status.as_str()),
            ("since", self.since.as_str()),
            ("q", self.q.as_str()),
            ("limit", self.limit.as_str()),
            ("alike", alike.as_str()),
        ];
        let is_other = |name: &str| other.iter().any(|(key, _)| *key == name);
        let mut parameters = url::form_urlencoded::Serializer::new(String::new());
        // An empty period differs from none.
        let kept = own.iter().filter(|(name, value)| !is_other(name) && (!value.is_empty() || *name == "since"));
        let other = other.iter().filter(|(name, value)| !value.is_empty() || *name == "since");
        kept.chain(other).for_each(|(name, value)| {
            parameters.append_pair(name, value);
        });
        format!("/?{}", parameters.finish())
    }
}
