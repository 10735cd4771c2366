//! `tarsy ask`: a question about an investigation that is over, answered by a session of its own.

use std::path::Path;

use anyhow::{bail, ensure};
use serde_json::json;
use uuid::Uuid;

use super::database::Database;
use super::publish::{Origin, PublishedSession};
use super::watch::follow::Sources;
use super::{addresses, load_config, sessions, submit};
use crate::bus::{CHAIN, NewAlert, PARENT_ID, Priority, SESSION_ID, TRACEPARENT};
use crate::cli::args::{AskArgs, GlobalArgs};
use crate::cli::exit::Exit;
use crate::investigation::alert::Severity;
use crate::investigation::follow_up::MAX_QUESTION_BYTES;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::{self, IntakeError};
use crate::store::{AlertReport, DispositionKind};

/// The last token of the subject; operators see it in the queue.
const SUFFIX: &str = "question";

pub(super) async fn run(global: &GlobalArgs, args: AskArgs) -> anyhow::Result<Exit> {
    let body = body(&args.question.join(" "))?;
    submit::check_chain(&load_config(global)?, args.chain.as_deref())?;
    let database = Database::of(global, "ask")?;
    let (_, report) = sessions::read(&database, &args.session).await?;
    let parent = may_ask(&report)?;
    let nats = addresses(global).nats_for_command("ask").await?;
    let session = SessionId(Uuid::now_v7());
    let (parent_id, caller) = (parent.to_string(), submit::caller());
    let headers =
        json!({SESSION_ID: session.to_string(), PARENT_ID: parent_id, CHAIN: args.chain, TRACEPARENT: caller});
    let priority = args.priority.map_or_else(|| urgency(&report), Priority::from);
    let question = NewAlert { priority, suffix: Some(SUFFIX.parse()?), body, headers };
    let published = nats.publish_question(question).await?;
    let origin = Some(Origin { key: "parent_id", session: parent, words: "asks about" });
    let sources = (!args.no_watch).then(|| Sources { nats, store: Some(database.store) });
    PublishedSession { session, published, priority, origin }.finish(sources, &args.view).await
}

/// The bytes of the question: the argument, or standard input.
fn body(question: &str) -> anyhow::Result<Vec<u8>> {
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

/// The investigation that a question about `report` belongs to: for a question, the one that it asks about.
fn may_ask(report: &AlertReport) -> anyhow::Result<SessionId> {
    let short = report.alert_id.short();
    if let Some(joined) = report.joined_session_id {
        let joined = joined.short();
        bail!("alert {short} joined session {joined}: tarsy ask {joined} asks about that one");
    }
    ensure!(
        report.disposition != DispositionKind::Dead,
        "alert {short} was given up and not investigated: tarsy dead-letters show {short} says why"
    );
    ensure!(
        report.disposition != DispositionKind::Ended,
        "alert {short} was not investigated: it was resolved before one began"
    );
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

/// A person waits, so a question precedes ordinary alerts; it precedes critical ones only if it is about one.
fn urgency(report: &AlertReport) -> Priority {
    if report.severity == Some(Severity::Critical) { Priority::Critical } else { Priority::High }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_question_is_refused_before_anything_is_published() {
        assert_eq!(body("why?").unwrap(), b"why?");
        for (wrong, why) in [("  \n", "is empty"), ("\u{7}", "is empty"), (&"a".repeat(20_000), "at most 16384")] {
            let error = format!("{:#}", body(wrong).unwrap_err());
            assert!(error.contains(why) && error.contains("nothing was published"), "{error}");
        }
    }
}
