//! `tarsy sessions cancel`: asks by two ways at once, either of which suffices.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::bus::{Follower, Nats, TimelineUpdate};
use crate::cli::args::{GlobalArgs, SessionsCancelArgs};
use crate::cli::commands::addresses;
use crate::cli::commands::reach::{Database, note, print, print_json};
use crate::cli::commands::watch::follow::interrupted;
use crate::cli::exit::Exit;
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::EventType;
use crate::store::{AlertReport, CancelAnswer, Store};

/// What became of a request.
struct Asked {
    session: SessionId,
    outcome: &'static str,
    /// For people.
    said: String,
    joined: Option<SessionId>,
    /// What each way says when it fails.
    database: Option<String>,
    broker: Option<String>,
    exit: Exit,
}

pub(super) async fn run(global: &GlobalArgs, args: SessionsCancelArgs) -> anyhow::Result<Exit> {
    // Without a database there is still the broker, for who knows the whole id.
    let database = Database::of(global, "sessions");
    let session = match (args.session.whole(), &database) {
        (Some(session), _) => session,
        (None, Ok(database)) => database.find(&args.session).await?,
        (None, Err(error)) => bail!("only a whole id can be cancelled without the database: {error:#}"),
    };
    let addresses = addresses(global);
    let answers = async {
        match &database {
            Ok(database) => ask_database(database, session).await,
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        }
    };
    // Connecting changes nothing, so it need not wait for the database.
    let (answer, nats) = tokio::join!(answers, addresses.nats_for_command("cancel"));
    let asked = request(session, answer, nats.as_ref()).await?;
    for (way, error) in [("the database", &asked.database), ("the broker", &asked.broker)] {
        if let Some(error) = error {
            note(&format!("{way} did not take the request: {error}"))?;
        }
    }
    let waits = args.wait && asked.exit == Exit::Done && matches!(asked.outcome, "asked" | "queued");
    if args.json && !waits {
        print_json(&asked.json(None))?;
    } else if waits {
        note(&asked.said)?;
    } else {
        print(std::slice::from_ref(&asked.said))?;
    }
    if !waits {
        return Ok(asked.exit);
    }
    let nats = nats.context("only the broker tells when it is over")?;
    wait(&nats, database.ok(), asked, &args).await
}

impl Asked {
    fn json(&self, status: Option<&str>) -> serde_json::Value {
        json!({
            "session_id": self.session, "outcome": self.outcome, "status": status,
            "joined_session_id": self.joined, "database_error": self.database, "broker_error": self.broker,
        })
    }
}

async fn ask_database(
    database: &Database,
    session: SessionId,
) -> anyhow::Result<(CancelAnswer, Option<Box<AlertReport>>)> {
    let answer = database.ask(database.store.request_cancel(session)).await?;
    let report = match answer {
        CancelAnswer::Ended => database.ask(database.store.report(session)).await?,
        CancelAnswer::Requested | CancelAnswer::Joined(_) | CancelAnswer::Undecided | CancelAnswer::Unknown => None,
    };
    Ok((answer, report.map(Box::new)))
}

/// Publishes the request unless the database says that there is nothing to cancel.
async fn request(
    session: SessionId,
    answer: anyhow::Result<(CancelAnswer, Option<Box<AlertReport>>)>,
    nats: Result<&Nats, &anyhow::Error>,
) -> anyhow::Result<Asked> {
    let short = session.short();
    let nothing =
        |outcome, said, joined, exit| Asked { session, outcome, said, joined, database: None, broker: None, exit };
    let (known, database) = match answer {
        Ok((CancelAnswer::Joined(target), _)) => {
            let target_short = target.short();
            let said = format!(
                "alert {short} joined session {target_short}, which goes on: tarsy sessions cancel {target_short} ends it \
                 for every alert that it investigates"
            );
            return Ok(nothing("joined", said, Some(target), Exit::Failed));
        }
        Ok((CancelAnswer::Ended, report)) => {
            let status = report.and_then(|report| report.session).map_or_else(|| "ended".to_owned(), |s| s.status);
            let exit = if status == "cancelled" { Exit::Done } else { Exit::Failed };
            let said = format!("session {short} is over: {}", status.replace('_', " "));
            return Ok(nothing("over", said, None, exit));
        }
        Ok((answer, _)) => (Some(answer), None),
        Err(error) => (None, Some(crate::cli::commands::told(&error))),
    };
    if known == Some(CancelAnswer::Unknown) && is_queue_empty(nats).await {
        let said = format!("there is no session {session}, and nothing is queued");
        return Ok(nothing("unknown", said, None, Exit::Failed));
    }
    let broker = match nats {
        Ok(nats) => nats.request_cancel(session).await.err().map(|error| error.to_string()),
        Err(error) => Some(crate::cli::commands::told(error)),
    };
    if let (Some(database), Some(broker)) = (&database, &broker) {
        bail!("session {short} was not asked to cancel: {database}; {broker}");
    }
    // What is not opened yet has no row that could keep the request.
    let is_stored = matches!(known, Some(CancelAnswer::Requested)) || broker.is_none();
    if !is_stored {
        bail!(
            "alert {short} is still queued, and only the broker keeps a request to it: {}",
            broker.unwrap_or_default()
        );
    }
    let (outcome, said) = match known {
        Some(CancelAnswer::Undecided) => {
            ("queued", format!("alert {short} is still queued: the request is stored and holds when it is opened"))
        }
        Some(CancelAnswer::Unknown) => (
            "queued",
            format!("no worker has seen {short} yet: the request is stored and holds if it is opened within 24 hours"),
        ),
        _ => ("asked", format!("session {short} is asked to cancel: tarsy watch {short} shows its end")),
    };
    Ok(Asked { session, outcome, said, joined: None, database, broker, exit: Exit::Done })
}

async fn is_queue_empty(nats: Result<&Nats, &anyhow::Error>) -> bool {
    let Ok(nats) = nats else { return false };
    let backlog = nats.backlog().await.unwrap_or_default();
    !backlog.is_empty() && backlog.iter().all(|of| of.pending == 0 && of.in_progress == 0)
}

/// Follows the session to its end without showing it.
async fn wait(
    nats: &Nats,
    database: Option<Database>,
    asked: Asked,
    args: &SessionsCancelArgs,
) -> anyhow::Result<Exit> {
    let mut follower = Follower::start::<Store>(nats, asked.session, 0, database.map(|database| database.store));
    let end = async {
        while let Some(item) = follower.next().await {
            if let TimelineUpdate::Event(event) = item
                && event.event_type.is_end()
            {
                return Some(event.event_type);
            }
        }
        None
    };
    let timeout: Duration = args.timeout;
    let end = tokio::select! {
        () = interrupted() => {
            note("Interrupted: the request stays.")?;
            return Ok(Exit::Interrupted);
        }
        end = tokio::time::timeout(timeout, end) => end,
    };
    let Ok(end) = end else {
        note(&format!(
            "session {} is not over after {} s: the request stays",
            asked.session.short(),
            timeout.as_secs()
        ))?;
        return Ok(Exit::StillRunning);
    };
    let end = end.context("the timeline broke off before its end")?;
    let status = end.as_str().trim_start_matches("session_").to_owned();
    if args.json {
        print_json(&asked.json(Some(&status)))?;
    } else {
        print(&[format!("session {} is over: {}", asked.session.short(), status.replace('_', " "))])?;
    }
    Ok(if end == EventType::SessionCancelled { Exit::Done } else { Exit::Failed })
}
