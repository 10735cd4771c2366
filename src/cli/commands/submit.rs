//! `tarsy submit`: publishes an alert.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::json;
use uuid::Uuid;

use super::addresses;
use super::reach::{Database, note, print_json};
use super::watch::follow::Sources;
use super::watch::waiting::QueueWatch;
use crate::bus::{FORCE, NewAlert, Priority, SESSION_ID, Subject, SubjectSuffix};
use crate::cli::args::{GlobalArgs, SubmitArgs};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::view::Surroundings;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::{Hints, normalise};

pub(super) async fn run(global: &GlobalArgs, args: SubmitArgs) -> anyhow::Result<Exit> {
    let body = read(&args.file)?;
    ensure!(!body.trim_ascii().is_empty(), "{} is empty: nothing was published", named(&args.file));
    let session = args.session_id.unwrap_or_else(|| SessionId(Uuid::now_v7()));
    let addresses = addresses(global);
    let nats = addresses.nats_for_command("submit").await?;
    // Chosen here, so that the session can be watched before it is claimed.
    let headers = json!({SESSION_ID: session.to_string(), FORCE: args.force.then_some("true")});
    let priority = args.priority.map_or_else(|| said(&body), Priority::from);
    let published = nats.publish_alert(NewAlert { priority, suffix: args.suffix, body, headers }).await?;
    note(&messages::published(&published.subject, published.sequence, session))?;
    if !args.watch {
        if args.view.json {
            let (subject, sequence) = (published.subject, published.sequence);
            print_json(&json!({"session_id": session, "subject": subject, "stream_sequence": sequence}))?;
        } else {
            writeln!(std::io::stdout(), "{session}")?;
        }
        return Ok(Exit::Done);
    }
    // Where there is no database, the stream has to do.
    let store = addresses.database_url.is_some().then(|| Database::of(global, "submit")).transpose()?;
    let queue = QueueWatch::of_alert(&nats, priority, published.sequence);
    let options = args.view.options(&Surroundings::of_process());
    Sources { nats, store: store.map(|database| database.store) }.show_from_queue((session, queue), options).await
}

/// The bytes of a file or of standard input.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut body)
    } else {
        File::open(file).and_then(|mut file| file.read_to_end(&mut body))
    };
    read.with_context(|| format!("cannot read {}", named(file)))?;
    Ok(body)
}

/// What a person calls it.
pub(super) fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// The severity that the body names. What is no alert is for a worker to refuse, with a reason that is kept.
fn said(body: &[u8]) -> Priority {
    normalise(body, &Hints::default()).map_or(Priority::Normal, |alert| alert.severity.into())
}

/// Priority and suffix of a subject that an alert or a question came on. A suffix that cannot be published here is left
/// out.
pub(super) fn queue_of(subject: &str) -> (Priority, Option<SubjectSuffix>) {
    let Some(Subject { priority, suffix, .. }) = Subject::parse(subject) else {
        return (Priority::Normal, None);
    };
    (priority, suffix.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_waits_in_the_queue_of_the_severity_that_it_names() {
        let of = |body: &[u8]| said(body).as_str();
        assert_eq!(of(br#"{"alertname": "DiskFull", "severity": "critical"}"#), "critical");
        assert_eq!([of(b"disk full on db-3"), of(b"\xff")], ["normal", "normal"]);
    }

    #[test]
    fn an_alert_goes_back_to_the_queue_that_it_came_from() {
        let of = |subject: &str| {
            let (priority, suffix) = queue_of(subject);
            (priority.as_str(), suffix.map(|suffix| suffix.to_string()))
        };
        assert_eq!(of("tarsy.alerts.critical"), ("critical", None));
        assert_eq!(of("tarsy.alerts.low.disk-full.eu"), ("low", Some("disk-full.eu".to_owned())));
        assert_eq!(of("tarsy.alerts.high.a:b"), ("high", None));
        assert_eq!(of("tarsy.questions.high.question"), ("high", Some("question".to_owned())));
        assert_eq!(of("anything"), ("normal", None));
    }
}
