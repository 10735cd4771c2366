//! The report of a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use tarsy_core::built_in::BuiltInTool;

use super::checker::{GUARANTEES, Violation, repeated, touched};
use super::facts::Facts;
use super::faults::InjectedFault;
use super::history;
use super::people;
use super::plan::Fault;
use crate::support::figures::Figures;

/// Maximum number of printed histories; others are only named.
const HISTORIES: usize = 3;

/// The figures of a run.
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) minutes: f64,
    /// The command that repeats the run.
    pub(super) command: String,
    pub(super) workers: usize,
    /// Time from the last fault to the end of the last investigation.
    pub(super) settled: Duration,
}

/// The report as text; ends with the command that repeats the run.
pub(super) fn page(run: &Run, facts: &Facts, violations: &[Violation]) -> String {
    let mut page = String::new();
    let Run {
        seed,
        minutes,
        command,
        workers,
        settled,
    } = run;
    writeln!(
        page,
        "\nchaos: {minutes:.2} minutes, seed {seed}, {workers} workers"
    )
    .unwrap();
    faults(&mut page, &facts.faults);
    alerts(&mut page, facts, *settled);
    touched_sessions(&mut page, facts);
    calls(&mut page, facts);
    agents(&mut page, facts);
    people::page(&mut page, facts);
    odd(&mut page, facts);
    page.push_str("\n  guarantees (README.md)\n");
    for (number, what) in GUARANTEES {
        let count = violations
            .iter()
            .filter(|violation| violation.guarantee == number)
            .count();
        let verdict = if count == 0 {
            "holds".to_owned()
        } else {
            format!("BROKEN {count}x")
        };
        writeln!(page, "    {number}  {verdict:<10}  {what}").unwrap();
    }
    for (shown, violation) in violations.iter().enumerate() {
        let of = violation
            .session
            .map_or_else(String::new, |session| format!(" {session}"));
        writeln!(
            page,
            "\n  BROKEN {}{of}: {}",
            violation.guarantee, violation.what
        )
        .unwrap();
        if let (true, Some(session)) = (shown < HISTORIES, violation.session) {
            page.push_str(&history::of(facts, session));
        }
    }
    writeln!(page, "\n  the same faults and alerts again: {command}").unwrap();
    page
}

fn faults(page: &mut String, faults: &[InjectedFault]) {
    let mut kinds: BTreeMap<&str, (usize, Vec<Duration>)> = BTreeMap::new();
    for one in faults {
        let (count, recoveries) = kinds.entry(one.fault.kind()).or_default();
        *count += 1;
        recoveries.extend(one.recovery);
    }
    let all: Vec<Duration> = faults.iter().filter_map(|one| one.recovery).collect();
    writeln!(
        page,
        "\n  {:<36} {:>5}  {:>9} {:>9} {:>9}  recovery",
        "faults", "count", "p50", "p99", "worst"
    )
    .unwrap();
    for (kind, (count, recoveries)) in kinds {
        writeln!(page, "  {kind:<36} {count:>5}  {}", recovery(recoveries)).unwrap();
    }
    writeln!(
        page,
        "  {:<36} {:>5}  {}",
        "all",
        faults.len(),
        recovery(all)
    )
    .unwrap();
    let open = faults.iter().filter(|one| one.recovery.is_none()).count();
    if open > 0 {
        writeln!(
            page,
            "  {open} without a proof of recovery: nothing was left to do, or not within a minute"
        )
        .unwrap();
    }
}

fn recovery(recoveries: Vec<Duration>) -> String {
    if recoveries.is_empty() {
        return String::new();
    }
    let figures: Figures = recoveries.into_iter().collect();
    let seconds = |duration: Duration| format!("{:.2} s", duration.as_secs_f64());
    let [median, most, worst] =
        [figures.median(), figures.quantile(0.99), figures.worst()].map(seconds);
    format!("{median:>9} {most:>9} {worst:>9}")
}

fn alerts(page: &mut String, facts: &Facts, settled: Duration) {
    let (mut places, mut statuses, mut takeovers) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for alert in facts.alerts.values() {
        *places.entry(alert.place.clone()).or_default() += 1;
    }
    for session in facts.sessions.values() {
        *statuses.entry(session.status.clone()).or_default() += 1;
    }
    for event in facts.events.values().flatten() {
        let metadata = &event.event.metadata;
        if let (Some(_), Some(reason)) = (
            metadata["previous_worker"].as_str(),
            metadata["reason"].as_str(),
        ) {
            *takeovers.entry(reason.replace('_', " ")).or_default() += 1;
        }
    }
    let over = facts
        .alerts
        .values()
        .filter(|alert| alert.settled_at.is_some())
        .count();
    let sent = facts.ledger.sent.len();
    let lost = facts
        .ledger
        .lost_with_the_stream
        .iter()
        .filter(|id| !facts.alerts.contains_key(id))
        .count();
    let share = 100.0 * over as f64 / facts.alerts.len().max(1) as f64;
    writeln!(
        page,
        "\n  alerts     {sent} acknowledged, {share:.1} % of {} over: {}",
        facts.alerts.len(),
        count(places)
    )
    .unwrap();
    if lost > 0 {
        writeln!(
            page,
            "             {lost} went with an emptied stream before a worker had written them down"
        )
        .unwrap();
    }
    let failed_over = facts.faults.iter().any(|one| one.fault == Fault::FailOver);
    let unknown = facts.ledger.sent.keys().filter(|id| {
        !facts.alerts.contains_key(id) && !facts.ledger.lost_with_the_stream.contains(id)
    });
    let unknown = unknown.count();
    if failed_over && unknown > 0 {
        writeln!(
            page,
            "             {unknown} went with a failover, with all rows that a worker had written"
        )
        .unwrap();
    }
    writeln!(
        page,
        "  sessions   {}; the last one {:.1} s behind the last fault",
        count(statuses),
        settled.as_secs_f64()
    )
    .unwrap();
    writeln!(
        page,
        "  takeovers  {}; {} deaths by poison",
        count(takeovers),
        facts.deaths.len()
    )
    .unwrap();
}

/// The sessions whose history a failover may have cut.
fn touched_sessions(page: &mut String, facts: &Facts) {
    let number = touched(facts);
    let all = facts.sessions.len();
    if number > 0 {
        writeln!(
            page,
            "  lossy      {number} of {all} sessions were judged by the rules for lost commits"
        )
        .unwrap();
    }
}

/// The uses of the parts of an agent that are switches of its plan.
fn agents(page: &mut String, facts: &Facts) {
    let calls_of = |tool: BuiltInTool| {
        let answers = facts.entries.values().flatten();
        let calls = answers
            .filter(|entry| entry.kind == "answer")
            .filter_map(|answer| answer.body["calls"].as_array())
            .flatten();
        calls.filter(|call| call["tool"] == tool.name()).count()
    };
    let dispatched = facts
        .entries
        .values()
        .flatten()
        .filter(|entry| entry.kind == "dispatched");
    let mut stops: BTreeMap<String, usize> = BTreeMap::new();
    let mut reviews: BTreeMap<String, usize> = BTreeMap::new();
    let events = facts.events.values().flatten();
    for end in events.filter(|one| one.event.event_type.is_end()) {
        let metadata = &end.event.metadata;
        let add = |to: &mut BTreeMap<String, usize>, word: &Value| {
            if let Some(word) = word.as_str() {
                *to.entry(word.replace('_', " ")).or_default() += 1;
            }
        };
        add(&mut stops, &metadata["stop_reason"]);
        add(&mut reviews, &metadata["review"]["verdict"]);
    }
    writeln!(
        page,
        "  agents     {} sub-agents, {} loads of skills, {} searches of earlier investigations",
        dispatched.count(),
        calls_of(BuiltInTool::LoadSkill),
        calls_of(BuiltInTool::PastInvestigations),
    )
    .unwrap();
    writeln!(page, "  reviews    {}", count(reviews)).unwrap();
    writeln!(page, "  ends       {}", count(stops)).unwrap();
}

fn count(of: BTreeMap<String, usize>) -> String {
    let words: Vec<String> = of
        .into_iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    words.join(", ")
}

/// The odd messages of external systems, and their outcomes.
fn odd(page: &mut String, facts: &Facts) {
    let shapes: Vec<String> = facts
        .odd
        .shapes
        .iter()
        .map(|(shape, count)| format!("{count} {shape}"))
        .collect();
    let odd: Vec<_> = facts
        .sessions
        .iter()
        .filter(|(id, _)| facts.is_odd(**id))
        .map(|(_, session)| session)
        .collect();
    let completed = odd.iter().filter(|session| session.status == "completed");
    let marked = completed
        .clone()
        .filter(|session| session.mark.is_some())
        .count();
    let (performed, again): (u32, u32) = facts
        .odd
        .performed
        .values()
        .fold((0, 0), |(a, b), n| (a + n, b + n - 1));
    let (sessions, completed) = (odd.len(), completed.count());
    writeln!(page, "  odd        {sessions} sessions, {completed} completed, {marked} of them marked as incomplete")
        .unwrap();
    writeln!(
        page,
        "             {performed} tool calls performed, {again} repeated; answers:"
    )
    .unwrap();
    for line in shapes.chunks(6) {
        writeln!(page, "             {}", line.join(", ")).unwrap();
    }
}

fn calls(page: &mut String, facts: &Facts) {
    let calls = repeated(facts);
    writeln!(
        page,
        "  repeated   {} of {} model calls, {} of {} read-only tool calls, {} of {} that change something ({} lost)",
        calls.model_repeats,
        calls.model_calls,
        calls.read_only_repeats,
        calls.read_only_calls,
        calls.changing_repeats,
        calls.changing_calls,
        calls.lost,
    )
    .unwrap();
}
