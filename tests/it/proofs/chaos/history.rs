//! The history of a session with a broken guarantee: all known facts in the order of time.

use std::fmt::Write as _;

use chrono::Duration;
use tarsy_core::ids::SessionId;

use super::facts::Facts;
use super::watchers::time;

/// The history also shows this time before the alert and after the end.
const AROUND: Duration = Duration::seconds(5);
const CONTENT_CHARS: usize = 60;

/// The history as text of several lines.
pub(super) fn of(facts: &Facts, id: SessionId) -> String {
    let mut text = format!("  session {id}\n");
    if let Some(sent) = facts.ledger.sent.get(&id) {
        writeln!(text, "    {}  acknowledged, {:?}", time(sent.at), sent.kind).unwrap();
    }
    if let Some(alert) = facts.alerts.get(&id) {
        let settled = alert.settled_at.map_or_else(|| "never".to_owned(), time);
        let dead = alert.dead_reason.as_deref().unwrap_or_default();
        writeln!(
            text,
            "    {}  received; {} {dead}, settled {settled}",
            time(alert.received_at),
            alert.place
        )
        .unwrap();
    }
    if let Some(session) = facts.sessions.get(&id) {
        let (finished, stop) = (
            session.finished_at.map_or_else(|| "never".to_owned(), time),
            &session.stop_reason,
        );
        let (status, epoch) = (&session.status, session.lease_epoch);
        writeln!(
            text,
            "    {status} ({stop:?}) at {finished}, deadline {}, epoch {epoch}",
            time(session.deadline_at)
        )
        .unwrap();
    }
    let mut lines = events(facts, id);
    lines.extend(entries(facts, id));
    let from = lines.iter().map(|(at, _)| *at).min();
    let until = lines.iter().map(|(at, _)| *at).max();
    if let Some((from, until)) = from.zip(until) {
        let near = facts
            .faults
            .iter()
            .filter(|one| one.from <= until + AROUND && one.until >= from - AROUND);
        lines.extend(near.map(|one| {
            (
                one.from,
                format!("FAULT {} until {}", one.fault, time(one.until)),
            )
        }));
    }
    lines.sort();
    for (at, line) in lines {
        writeln!(text, "    {}  {line}", time(at)).unwrap();
    }
    text + &counted(facts, id)
}

type Lines = Vec<(chrono::DateTime<chrono::Utc>, String)>;

fn events(facts: &Facts, id: SessionId) -> Lines {
    let line = |event: &super::facts::Event| {
        let (epoch, event) = (event.epoch, &event.event);
        let content: String = event
            .content
            .chars()
            .take(CONTENT_CHARS)
            .filter(|c| !c.is_control())
            .collect();
        let of = event
            .execution_id
            .map_or_else(String::new, |id| format!(" {}", &id.to_string()[..8]));
        let iteration = event
            .iteration
            .map_or_else(String::new, |iteration| format!(" i{iteration}"));
        (
            event.created_at,
            format!(
                "event {} epoch {epoch}{of}{iteration} {}: {content}",
                event.session_seq, event.event_type
            ),
        )
    };
    facts.events_of(id).iter().map(line).collect()
}

fn entries(facts: &Facts, id: SessionId) -> Lines {
    let line = |entry: &super::facts::Entry| {
        let call = entry.tool_call_id.as_deref().unwrap_or_default();
        let execution = &entry.execution_id.to_string()[..8];
        (
            entry.created_at,
            format!(
                "entry {execution} {} i{} {} {call}",
                entry.entry_no, entry.iteration, entry.kind
            ),
        )
    };
    facts
        .journals_of(id)
        .flat_map(|(_, entries)| entries)
        .map(line)
        .collect()
}

/// Adds the calls that the scripted services counted.
fn counted(facts: &Facts, id: SessionId) -> String {
    let mut text = String::new();
    for (execution, _) in facts.journals_of(id) {
        let models = facts
            .model_calls
            .iter()
            .filter(|((of, _), _)| of == execution);
        let models: Vec<String> = models
            .map(|((_, iteration), count)| format!("i{iteration} x{count}"))
            .collect();
        let tools = facts
            .tool_calls
            .iter()
            .filter(|(sent, _)| sent.execution == *execution);
        let tools: Vec<String> = tools
            .map(|(sent, count)| format!("{} {} x{count}", sent.tool, sent.step))
            .collect();
        let execution = &execution.to_string()[..8];
        writeln!(
            text,
            "    {execution} asked its model {}; its tools {}",
            models.join(", "),
            tools.join(", ")
        )
        .unwrap();
    }
    text
}
