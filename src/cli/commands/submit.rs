//! `tarsy submit`: publishes an alert.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::json;
use uuid::Uuid;

use super::addresses;
use super::database::Database;
use super::publish::PublishedSession;
use super::watch::follow::Sources;
use crate::bus::{FORCE, NewAlert, Priority, SESSION_ID, Subject, SubjectSuffix, TRACEPARENT};
use crate::cli::args::{GlobalArgs, SubmitArgs};
use crate::cli::exit::Exit;
use crate::config::process_env;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::{Hints, normalise};
use crate::investigation::trace_context::TraceContext;

/// The trace of the program that runs the command, in the variable `TRACEPARENT`. An invalid one counts as none.
pub(super) fn caller() -> Option<String> {
    TraceContext::parse(&process_env("TRACEPARENT")?).map(|context| context.to_string())
}

pub(super) async fn run(global: &GlobalArgs, args: SubmitArgs) -> anyhow::Result<Exit> {
    let body = read(&args.file)?;
    ensure!(!body.trim_ascii().is_empty(), "{} is empty: nothing was published", named(&args.file));
    let session = args.session_id.unwrap_or_else(|| SessionId(Uuid::now_v7()));
    let addresses = addresses(global);
    let nats = addresses.nats_for_command("submit").await?;
    // The id is chosen here, so that the session can be watched before a worker claims it.
    let force = args.force.then_some("true");
    let headers = json!({SESSION_ID: session.to_string(), FORCE: force, TRACEPARENT: caller()});
    let priority = args.priority.map_or_else(|| severity_in(&body), Priority::from);
    let published = nats.publish_alert(NewAlert { priority, suffix: args.suffix, body, headers }).await?;
    // Without a database the timeline comes from the stream alone.
    let has_database = args.watch && addresses.database_url.is_some();
    let database = has_database.then(|| Database::of(global, "submit")).transpose()?;
    let sources = args.watch.then(|| Sources { nats, store: database.map(|database| database.store) });
    PublishedSession { session, published, priority, origin: None }.finish(sources, &args.view).await
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

/// The name of the input in messages.
pub(super) fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// The priority of the severity in the body. A body that is no alert is published too: a worker turns it into a dead
/// letter with the reason.
fn severity_in(body: &[u8]) -> Priority {
    normalise(body, &Hints::default()).map_or(Priority::Normal, |alert| alert.severity.into())
}

/// Priority and suffix of the subject of an alert or a question. A suffix that cannot be published is left out.
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
        let of = |body: &[u8]| severity_in(body).as_str();
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
