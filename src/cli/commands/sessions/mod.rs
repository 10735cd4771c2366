//! `tarsy sessions`: what was investigated.

mod cancel;

use anyhow::{bail, ensure};
use chrono::Utc;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::reach::{Database, note, print, print_json};
use super::watch::follow::Sources;
use super::watch::waiting::QueueWatch;
use super::{addresses, submit};
use crate::bus::{self, NewAlert, Priority, Published};
use crate::cli::args::{GlobalArgs, SessionsCommand, SessionsListArgs, SessionsRerunArgs, SessionsShowArgs, Status};
use crate::cli::exit::Exit;
use crate::cli::render::report;
use crate::cli::render::tables::{list, show};
use crate::cli::session_ref::SessionRef;
use crate::cli::view::Surroundings;
use crate::investigation::ids::SessionId;
use crate::store::{AlertReport, SessionFilter};

pub(super) async fn run(global: &GlobalArgs, command: SessionsCommand) -> anyhow::Result<Exit> {
    match command {
        SessionsCommand::List(args) => list(global, args).await,
        SessionsCommand::Show(args) => show(global, args).await,
        SessionsCommand::Rerun(args) => rerun(global, args).await,
        SessionsCommand::Cancel(args) => cancel::run(global, args).await,
    }
}

async fn list(global: &GlobalArgs, args: SessionsListArgs) -> anyhow::Result<Exit> {
    let database = Database::of(global, "sessions")?;
    let is_filtered = args.status.is_some() || args.since.is_some() || args.search.is_some();
    let filter = SessionFilter {
        limit: args.limit,
        status: args.status.map(|status: Status| status.as_str().to_owned()),
        since: args.since,
        search: args.search,
    };
    let sessions = database.ask(database.store.list_sessions(filter)).await?;
    if sessions.is_empty() {
        note(if is_filtered { "no session fits" } else { "there is no session yet" })?;
    } else if args.json {
        for session in &sessions {
            print_json(session)?;
        }
    } else {
        print(&list::sessions(&sessions, Utc::now(), &Surroundings::of_process().style()))?;
    }
    Ok(Exit::Done)
}

async fn show(global: &GlobalArgs, args: SessionsShowArgs) -> anyhow::Result<Exit> {
    let database = Database::of(global, "sessions")?;
    let (_, found) = read(&database, &args.session).await?;
    if args.json {
        print_json(&found)?;
    } else if args.report {
        print(&report::report(&found, Utc::now()))?;
    } else {
        print(&show::show(&found, Utc::now(), &Surroundings::of_process().style()))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn read(database: &Database, wanted: &SessionRef) -> anyhow::Result<(SessionId, AlertReport)> {
    let session = database.find(wanted).await?;
    match database.ask(database.store.report(session)).await? {
        Some(report) => Ok((session, report)),
        None => bail!(
            "no worker has seen an alert or session {session}: it may be queued (tarsy watch {session}), or be deleted (tarsy prune)"
        ),
    }
}

async fn rerun(global: &GlobalArgs, args: SessionsRerunArgs) -> anyhow::Result<Exit> {
    let database = Database::of(global, "sessions")?;
    let (old, report) = read(&database, &args.session).await?;
    may_rerun(&report)?;
    let nats = addresses(global).nats_for_command("rerun").await?;
    let session = SessionId(Uuid::now_v7());
    let (priority, alert) = again(session, &report, args.chain.as_deref())?;
    let published = match report.parent_id {
        Some(_) => nats.publish_question(alert).await?,
        None => nats.publish_alert(alert).await?,
    };
    let Published { subject, sequence } = &published;
    note(&format!("{}; does {} again", crate::cli::messages::published(subject, *sequence, session), old.short()))?;
    if !args.watch {
        if args.view.json {
            print_json(&json!({
                "session_id": session, "retry_of": old, "subject": subject, "stream_sequence": sequence,
            }))?;
        } else {
            print(&[session.to_string()])?;
            note(&format!("Watch: tarsy watch {}", session.short()))?;
        }
        return Ok(Exit::Done);
    }
    let queue = QueueWatch::of_alert(&nats, priority, *sequence);
    let options = args.view.options(&Surroundings::of_process());
    Sources { nats, store: Some(database.store) }.show_from_queue((session, queue), options).await
}

fn may_rerun(report: &AlertReport) -> anyhow::Result<()> {
    let short = report.alert_id.short();
    if let Some(joined) = report.joined_session_id {
        let joined = joined.short();
        bail!("alert {short} joined session {joined}: tarsy sessions rerun {joined} does that one again");
    }
    ensure!(report.place != "dead", "alert {short} was given up: tarsy dead-letters retry {short} queues it again");
    let is_open = report.session.as_ref().is_some_and(|session| session.finished_at.is_none());
    ensure!(
        report.place != "undecided" && !is_open,
        "session {short} is not over yet: tarsy watch {short} follows it, tarsy sessions cancel {short} ends it"
    );
    Ok(())
}

/// The same alert as a new one: what was investigated (cleaned and masked), with what was read from its first form.
fn again(session: SessionId, old: &AlertReport, chain: Option<&str>) -> anyhow::Result<(Priority, NewAlert)> {
    let Some(body) = old.body.as_deref().filter(|body| !body.trim().is_empty()) else {
        bail!("the text of alert {} was not kept", old.alert_id.short());
    };
    let stored = |name: &str| old.headers.get(name).and_then(Value::as_str);
    let named = [
        (bus::ALERT_TYPE, old.alert_type.as_deref()),
        (bus::TITLE, old.title.as_deref()),
        (bus::FINGERPRINT, old.fingerprint.as_deref()),
        (bus::RUNBOOK_URL, stored(bus::RUNBOOK_URL)),
        (bus::CHAIN, chain.or_else(|| stored(bus::CHAIN))),
    ];
    let mut headers = Map::new();
    for (name, value) in named {
        // What is no header can still have been in a body.
        let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            headers.insert(name.to_owned(), value.into());
        }
    }
    if let Some(parent) = old.parent_id {
        headers.insert(bus::PARENT_ID.to_owned(), parent.to_string().into());
    }
    headers.insert(bus::SESSION_ID.to_owned(), session.to_string().into());
    headers.insert(bus::RETRY_OF.to_owned(), old.alert_id.to_string().into());
    headers.insert(bus::FORCE.to_owned(), "true".into());
    let (queue, suffix) = submit::queue_of(&old.subject);
    // The text that was kept does not say the severity any more: its queue does.
    let priority = old.severity.as_deref().and_then(Priority::parse).unwrap_or(queue);
    Ok((priority, NewAlert { priority, suffix, body: body.as_bytes().to_vec(), headers: Value::Object(headers) }))
}
