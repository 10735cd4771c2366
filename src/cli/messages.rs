//! Sentences that several commands say.

use std::time::Duration;

use crate::cli::render::{format, text};
use crate::investigation::ids::SessionId;

/// Columns of a fingerprint in a sentence.
const FINGERPRINT: usize = 60;

/// The alert is in the stream.
pub fn published(subject: &str, stream_sequence: u64, session: SessionId) -> String {
    format!("published to {subject} (stream sequence {stream_sequence})   session {}", session.short())
}

/// Nobody has begun, and it cannot be told from here whether somebody will.
pub fn nothing_yet(session: SessionId) -> String {
    format!("waiting: session {} has no event yet; it is in the queue, or there is no such session", session.short())
}

/// The alert's session is another one's, which has been running for `running`.
pub fn joined(session: &str, fingerprint: Option<&str>, running: Option<Duration>) -> String {
    let fingerprint = fingerprint.map(|f| format!(" ({})", text::cut(&text::one_line(f, false), FINGERPRINT, true)));
    let running = running.map(|running| format!(", running for {}", format::span(running)));
    format!(
        "joined session {}: same fingerprint{}{}. Following that one.",
        short(session),
        fingerprint.unwrap_or_default(),
        running.unwrap_or_default()
    )
}

/// The alert's session is another one's, which completed `ago`.
pub fn cooled(session: &str, ago: Option<Duration>) -> String {
    let ago = ago.map(|ago| format!(" {} ago", format::span(ago)));
    format!(
        "session {} investigated the same{} and completed (cooldown); --force investigates again. Following that one.",
        short(session),
        ago.unwrap_or_default()
    )
}

/// The workers that were heard of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workers {
    /// Processes.
    pub count: u64,
    /// Investigations that they can own at once.
    pub slots: u64,
    /// Those that they own now.
    pub busy: u64,
}

/// `2 workers, 8 slots, 8 busy`, or that nobody is there.
pub fn workers(workers: Workers) -> String {
    if workers.count == 0 {
        return "no worker is there: tarsy worker starts one".to_owned();
    }
    let (count, slots) = (format::count(workers.count, "worker"), format::count(workers.slots, "slot"));
    format!("{count}, {slots}, {} busy", workers.busy)
}

/// An alert waits behind `ahead` others of its priority.
pub fn queued(ahead: u64, exact: bool, priority: &str) -> String {
    let about = if exact { "" } else { "about " };
    match ahead {
        0 => format!("queued: the next one of priority {priority}"),
        _ => format!("queued: {about}{} of priority {priority} before it", format::count(ahead, "alert")),
    }
}

/// How to see the rest of a session that goes on.
pub fn go_on(session: SessionId) -> String {
    format!("The investigation goes on: tarsy watch {}", session.short())
}

/// How to see a session that nothing has been seen of.
pub fn once_more(session: SessionId) -> String {
    format!("To watch it again: tarsy watch {}", session.short())
}

/// How to see an investigation and the questions about it again.
pub fn thread_again(session: SessionId) -> String {
    format!("Again: tarsy watch {} --thread      all thinking: -t      for programs: --json", session.short())
}

/// The last eight characters of an id that may be none.
pub fn short(id: &str) -> String {
    let id = text::one_line(id, false);
    let skipped = id.chars().count().saturating_sub(8);
    id.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa";

    #[test]
    fn a_submitted_alert_says_where_it_went_and_what_to_watch() {
        let session = SessionId::parse(SESSION).unwrap();
        assert_eq!(
            published("tarsy.alerts.normal.alertmanager", 18, session),
            "published to tarsy.alerts.normal.alertmanager (stream sequence 18)   session 77d0b3aa"
        );
        assert_eq!(go_on(session), "The investigation goes on: tarsy watch 77d0b3aa");
    }

    #[test]
    fn a_joined_alert_says_whom_it_joined_and_why() {
        assert_eq!(
            joined(SESSION, Some("groupKey {}:{alertname=\"DiskFull\"}"), Some(Duration::from_secs(134))),
            "joined session 77d0b3aa: same fingerprint (groupKey {}:{alertname=\"DiskFull\"}), running for 2m14s. \
             Following that one."
        );
        assert_eq!(
            cooled(SESSION, Some(Duration::from_secs(720))),
            "session 77d0b3aa investigated the same 12m00s ago and completed (cooldown); --force investigates again. \
             Following that one."
        );
        assert_eq!(joined(SESSION, None, None), "joined session 77d0b3aa: same fingerprint. Following that one.");
    }

    #[test]
    fn who_waits_learns_what_is_before_it_and_who_works() {
        assert_eq!(queued(3, true, "normal"), "queued: 3 alerts of priority normal before it");
        assert_eq!(queued(1, false, "low"), "queued: about 1 alert of priority low before it");
        assert_eq!(queued(0, true, "high"), "queued: the next one of priority high");
        assert_eq!(workers(Workers { count: 2, slots: 8, busy: 8 }), "2 workers, 8 slots, 8 busy");
        assert_eq!(workers(Workers { count: 1, slots: 1, busy: 0 }), "1 worker, 1 slot, 0 busy");
        assert_eq!(workers(Workers::default()), "no worker is there: tarsy worker starts one");
    }
}
