//! Messages that several commands print.

use std::time::Duration;

use crate::cli::render::style::Charset;
use crate::cli::render::{format, text};
use tarsy_bus::{Priority, QueuePosition};
use tarsy_core::ids::SessionId;

pub use tarsy_core::readable::text::short_id as short;
pub use tarsy_reports::words::unavailable;

/// No session has begun; alerts may wait.
pub const NO_SESSION: &str = "there is no session yet; tarsy queue shows what waits";
/// Columns of a fingerprint in a sentence.
const FINGERPRINT_COLUMNS: usize = 60;

/// The remark with the page of a session.
pub fn link(url: &str) -> String {
    format!("Web: {url}")
}

/// The stream has stored the alert or question.
pub fn published(subject: &str, stream_sequence: u64, session: SessionId) -> String {
    format!(
        "published to {subject} (stream sequence {stream_sequence})   session {}",
        session.short()
    )
}

/// The session has no event; only a database could say whether it exists.
pub fn nothing_yet(session: SessionId) -> String {
    format!(
        "waiting: session {} has no event yet; it is in the queue, or there is no such session",
        session.short()
    )
}

/// The alert joined another session, which has been running for `running`.
pub fn joined(session: &str, fingerprint: Option<&str>, running: Option<Duration>) -> String {
    let fingerprint = fingerprint
        .map(|fingerprint| {
            let line = text::one_line(fingerprint, Charset::Unicode);
            let shown = text::cut(&line, FINGERPRINT_COLUMNS, Charset::Ascii);
            format!(" ({shown})")
        })
        .unwrap_or_default();
    let running = running
        .map(|running| format!(", running for {}", format::span(running)))
        .unwrap_or_default();
    format!(
        "joined session {}: same fingerprint{fingerprint}{running}. Following it.",
        short(session)
    )
}

/// The cooldown of another session covers the alert; that session completed `ago`.
pub fn covered_by_cooldown(session: &str, ago: Option<Duration>) -> String {
    let session = short(session);
    let ago = ago
        .map(|ago| format!(" {} ago", format::span(ago)))
        .unwrap_or_default();

    format!(
        "session {session} investigated the same fingerprint{ago} and completed (cooldown); \
         tarsy submit --force investigates again. Following it."
    )
}

/// The alert was above the limit of its route.
pub fn limited(session: &str, route: &str, max_per_hour: u64) -> String {
    let most = format::count(max_per_hour, "investigation");
    format!(
        "not investigated: route {route} opens at most {most} an hour. Session {} lists the alert.",
        short(session)
    )
}

/// The workers that have sent their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    pub count: usize,
    /// The number of sessions that all of them can run at the same time.
    pub slots: u64,
    /// The number of sessions that they run now.
    pub busy: usize,
    /// The number of workers that claim nothing because a service is unavailable.
    pub paused: usize,
}

/// `2 workers, 8 slots, 8 busy`, or how to start a worker if there is none.
pub fn workers(workers: Workers) -> String {
    if workers.count == 0 {
        return "no worker is running: tarsy worker starts one".to_owned();
    }
    let count = format::count(workers.count, "worker");
    let slots = format::count(workers.slots, "slot");
    let paused = if workers.paused > 0 {
        format!(", {} paused", workers.paused)
    } else {
        String::new()
    };
    format!("{count}, {slots}, {} busy{paused}", workers.busy)
}

/// ` (since 5 s)`, the end of a sentence about a state; empty for one that has just begun.
pub fn since(state_ms: u64) -> String {
    if state_ms == 0 {
        return String::new();
    }
    let span = format::span(Duration::from_millis(state_ms));
    format!(" (since {span})")
}

/// The message for an id that neither the queue nor the database knows.
pub fn unknown(session: SessionId) -> String {
    format!("no alert or session {session} is known: waiting until one is published (Ctrl-C ends)")
}

/// The position of an alert in the queue of its priority.
pub fn queue_position(position: &QueuePosition, priority: Priority) -> String {
    let priority = priority.as_str();
    match position {
        QueuePosition::Waiting { ahead: 0, .. } => {
            format!("queued: the next one of priority {priority}")
        }
        QueuePosition::Waiting { ahead, exact } => {
            let about = if *exact { "" } else { "about " };
            format!(
                "queued: {about}{} of priority {priority} before it",
                format::count(*ahead, "alert")
            )
        }
        QueuePosition::Claimed => "taken from the queue: a worker prepares it".to_owned(),
        QueuePosition::Gone => "no longer queued: its first event is not published yet".to_owned(),
    }
}

/// The command that watches the rest of a running session.
pub fn continues(session: SessionId) -> String {
    format!(
        "The investigation continues: tarsy watch {}",
        session.short()
    )
}

/// The command that watches a session without an event again. Its short id cannot be found before the first event.
pub fn watch_again(session: SessionId) -> String {
    format!("To watch it again: tarsy watch {session}")
}

/// The command that watches a session that has ended again, in lines of at most `columns`.
pub fn watch_ended_again(session: SessionId, columns: usize) -> String {
    hints(
        &format!("To watch again: tarsy watch {}", session.short()),
        columns,
    )
}

/// The command that watches an investigation and its questions again, in lines of at most `columns`.
pub fn watch_thread_again(session: SessionId, columns: usize) -> String {
    hints(
        &format!("To watch again: tarsy watch {} --thread", session.short()),
        columns,
    )
}

fn hints(command: &str, columns: usize) -> String {
    text::flow(
        &[command, "all thinking: -t", "for programs: --json"],
        "   ",
        columns,
    )
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa";

    #[test]
    fn a_submitted_alert_names_its_subject_and_the_command_to_watch_it() {
        let session = SessionId::parse(SESSION).unwrap();
        assert_eq!(
            published("tarsy.alerts.normal.alertmanager", 18, session),
            "published to tarsy.alerts.normal.alertmanager (stream sequence 18)   session 77d0b3aa"
        );
        assert_eq!(
            continues(session),
            "The investigation continues: tarsy watch 77d0b3aa"
        );
        assert_eq!(
            watch_again(session),
            format!("To watch it again: tarsy watch {SESSION}")
        );
    }

    #[test]
    fn hints_do_not_wrap_at_eighty_columns() {
        let session = SessionId::parse(SESSION).unwrap();
        let lines = watch_thread_again(session, 80);
        assert_eq!(
            lines,
            "To watch again: tarsy watch 77d0b3aa --thread   all thinking: -t\nfor programs: --json"
        );
        assert_eq!(watch_ended_again(session, 80).lines().count(), 1);
        assert!(
            watch_thread_again(session, 47)
                .lines()
                .all(|line| line.len() <= 47)
        );
    }

    #[test]
    fn a_joined_alert_names_the_session_that_it_joined_and_the_reason() {
        assert_eq!(
            joined(
                SESSION,
                Some("groupKey {}:{alertname=\"DiskFull\"}"),
                Some(Duration::from_secs(134))
            ),
            "joined session 77d0b3aa: same fingerprint (groupKey {}:{alertname=\"DiskFull\"}), running for 2 min 14 s. \
             Following it."
        );
        assert_eq!(
            covered_by_cooldown(SESSION, Some(Duration::from_secs(720))),
            "session 77d0b3aa investigated the same fingerprint 12 min ago and completed (cooldown); \
             tarsy submit --force investigates again. Following it."
        );
        assert_eq!(
            joined(SESSION, None, None),
            "joined session 77d0b3aa: same fingerprint. Following it."
        );
    }

    #[test]
    fn a_queued_alert_names_its_position_and_the_workers() {
        let queued =
            |ahead, exact| queue_position(&QueuePosition::Waiting { ahead, exact }, Priority::Low);
        assert_eq!(
            queued(3, true),
            "queued: 3 alerts of priority low before it"
        );
        assert_eq!(
            queued(1, false),
            "queued: about 1 alert of priority low before it"
        );
        assert_eq!(queued(0, true), "queued: the next one of priority low");
        assert_eq!(
            workers(Workers {
                count: 2,
                slots: 8,
                busy: 8,
                paused: 1
            }),
            "2 workers, 8 slots, 8 busy, 1 paused"
        );
        assert_eq!(
            workers(Workers {
                count: 1,
                slots: 1,
                ..Workers::default()
            }),
            "1 worker, 1 slot, 0 busy"
        );
        assert_eq!(
            workers(Workers::default()),
            "no worker is running: tarsy worker starts one"
        );
    }
}
