//! `tarsy ask`: a question about an investigation that is over, answered by a session of its own.

use std::path::Path;

use anyhow::{bail, ensure};
use serde_json::json;
use uuid::Uuid;

use super::reach::{Database, note, print, print_json};
use super::watch::follow::Sources;
use super::watch::waiting::QueueWatch;
use super::{addresses, sessions, submit};
use crate::bus::{CHAIN, NewAlert, PARENT_ID, Priority, Published, SESSION_ID};
use crate::cli::args::{AskArgs, GlobalArgs};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::view::Surroundings;
use crate::investigation::follow_up::MAX_QUESTION_BYTES;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::{self, IntakeError};
use crate::store::AlertReport;

/// The rest of the subject, for whoever looks at the queue.
const SUFFIX: &str = "question";

pub(super) async fn run(global: &GlobalArgs, args: AskArgs) -> anyhow::Result<Exit> {
    let body = words(&args.question)?;
    let database = Database::of(global, "ask")?;
    let (_, asked) = sessions::read(&database, &args.session).await?;
    let parent = may_ask(&asked)?;
    let nats = addresses(global).nats_for_command("ask").await?;
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string(), PARENT_ID: parent.to_string(), CHAIN: args.chain});
    let priority = args.priority.map_or_else(|| urgency(&asked), Priority::from);
    let question = NewAlert { priority, suffix: Some(SUFFIX.parse()?), body, headers };
    let Published { subject, sequence } = nats.publish_question(question).await?;
    note(&format!("{}; asks about {}", messages::published(&subject, sequence, session), parent.short()))?;
    if args.no_watch {
        if args.view.json {
            print_json(&json!({
                "session_id": session, "parent_id": parent, "subject": subject, "stream_sequence": sequence,
            }))?;
        } else {
            print(&[session.to_string()])?;
            note(&format!("Watch: tarsy watch {}", session.short()))?;
        }
        return Ok(Exit::Done);
    }
    let queue = QueueWatch::of_alert(&nats, priority, sequence);
    let options = args.view.options(&Surroundings::of_process());
    Sources { nats, store: Some(database.store) }.show_from_queue((session, queue), options).await
}

/// The question in bytes: what was typed, or standard input.
fn words(question: &str) -> anyhow::Result<Vec<u8>> {
    let body = if question == "-" { submit::read(Path::new("-"))? } else { question.as_bytes().to_vec() };
    let bytes = body.len();
    ensure!(
        bytes <= MAX_QUESTION_BYTES,
        "a question has at most {MAX_QUESTION_BYTES} bytes, this one {bytes}: nothing was published"
    );
    match intake::question(&body, "", None) {
        Ok(_) => Ok(body),
        Err(IntakeError::Empty) => bail!("the question is empty: nothing was published"),
        Err(IntakeError::Undecodable) => bail!("the question is not UTF-8 text: nothing was published"),
    }
}

/// The investigation that a question about `report` belongs to: of a question, the one that it asks about.
fn may_ask(report: &AlertReport) -> anyhow::Result<SessionId> {
    let short = report.alert_id.short();
    if let Some(joined) = report.joined_session_id {
        let joined = joined.short();
        bail!("alert {short} joined session {joined}: tarsy ask {joined} asks about that one");
    }
    ensure!(
        report.place != "dead",
        "alert {short} was given up, nobody investigated it: tarsy dead-letters show {short} says why"
    );
    ensure!(report.place != "ended", "alert {short} was not investigated: it was resolved before one began");
    if let Some(root) = report.parent_id {
        return Ok(root);
    }
    let is_over = report.session.as_ref().is_some_and(|session| session.finished_at.is_some());
    ensure!(
        is_over,
        "session {short} is not over yet: tarsy watch {short} follows it, tarsy sessions cancel {short} ends it"
    );
    Ok(report.alert_id)
}

/// A person waits, so a question goes before ordinary alerts; before critical ones only if it is about one.
fn urgency(report: &AlertReport) -> Priority {
    match report.severity.as_deref().and_then(Priority::parse) {
        Some(Priority::Critical) => Priority::Critical,
        Some(Priority::High | Priority::Normal | Priority::Low) | None => Priority::High,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_before_anything_is_published() {
        assert_eq!(words("why?").unwrap(), b"why?");
        for (wrong, why) in [("  \n", "is empty"), ("\u{7}", "is empty"), (&"a".repeat(20_000), "at most 16384")] {
            let error = format!("{:#}", words(wrong).unwrap_err());
            assert!(error.contains(why) && error.contains("nothing was published"), "{error}");
        }
    }
}
