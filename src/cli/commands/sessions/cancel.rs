//! `tarsy sessions cancel`: requests the end of a session in the database and over the broker; either one suffices.

use anyhow::{Context as _, bail};
use serde_json::json;

use crate::bus::{Follower, Nats, TimelineUpdate};
use crate::cli::args::{GlobalArgs, SessionsCancelArgs};
use crate::cli::commands::database::Database;
use crate::cli::commands::output::{json_line, note, print};
use crate::cli::commands::watch::follow::interrupted;
use crate::cli::commands::{addresses, one_line_error};
use crate::cli::exit::Exit;
use crate::cli::render::tables::table::status_word;
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::EventType;
use crate::store::{CancelAnswer, Store};

/// The outcome of a cancel request.
enum CancelState {
    /// The session runs and will end.
    Requested,
    /// The alert is queued; its session will end when it is opened.
    Queued,
    /// No worker has seen the alert; the request waits for it.
    Unseen,
    /// The session ended earlier, with this status.
    Over(String),
    /// The alert belongs to this session, which continues.
    Joined(SessionId),
    /// Neither the database nor the queue knows the session.
    Unknown,
}

struct CancelRequest {
    session: SessionId,
    state: CancelState,
    /// The reason why the database did not store the request.
    database_error: Option<String>,
    /// The reason why the broker did not store the request.
    broker_error: Option<String>,
}

pub(super) async fn run(global: &GlobalArgs, args: SessionsCancelArgs) -> anyhow::Result<Exit> {
    // Without a database the broker can still take a request for a whole id.
    let database = Database::of(global, "sessions");
    let session = match (args.session.whole(), &database) {
        (Some(session), _) => session,
        (None, Ok(database)) => database.find(&args.session).await?,
        (None, Err(error)) => bail!("only a whole id can be cancelled without the database: {error:#}"),
    };
    let addresses = addresses(global);
    let state = async {
        match &database {
            Ok(database) => request_in_database(database, session).await,
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        }
    };
    // Connecting changes nothing, so it need not wait for the database.
    let (state, nats) = tokio::join!(state, addresses.nats_for_command("cancel"));
    let request = request(session, state, nats.as_ref()).await?;
    for (way, error) in [("the database", &request.database_error), ("the broker", &request.broker_error)] {
        if let Some(error) = error {
            note(&format!("{way} did not store the request: {error}"))?;
        }
    }
    if !args.wait || !request.state.is_stored() {
        let described = request.state.describe(session);
        print(&[if args.json { json_line(&request.json(None))? } else { described }])?;
        return Ok(request.state.exit());
    }
    note(&request.state.describe(session))?;
    let nats = nats.context("without the broker the end of the session cannot be followed")?;
    wait(&nats, database.ok(), &request, &args).await
}

impl CancelState {
    /// Whether a request is stored and has not been carried out.
    fn is_stored(&self) -> bool {
        matches!(self, Self::Requested | Self::Queued | Self::Unseen)
    }

    /// The word in the JSON output.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Requested => "asked",
            Self::Queued | Self::Unseen => "queued",
            Self::Over(_) => "over",
            Self::Joined(_) => "joined",
            Self::Unknown => "unknown",
        }
    }

    fn describe(&self, session: SessionId) -> String {
        let short = session.short();
        match self {
            Self::Requested => format!("session {short} is asked to cancel: tarsy watch {short} shows its end"),
            Self::Queued => {
                format!("alert {short} is still queued: the request is stored and takes effect when it is opened")
            }
            Self::Unseen => format!(
                "no worker has seen {short} yet: the request is stored and takes effect if it is opened within 24 hours"
            ),
            Self::Over(status) => over(session, status),
            Self::Joined(target) => {
                let target = target.short();
                format!(
                    "alert {short} joined session {target}, which continues: tarsy sessions cancel {target} ends it for \
                     every alert that it investigates"
                )
            }
            Self::Unknown => format!("there is no session {session}, and nothing is queued"),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Requested | Self::Queued | Self::Unseen => Exit::Done,
            Self::Over(status) if status == "cancelled" => Exit::Done,
            Self::Over(_) | Self::Joined(_) | Self::Unknown => Exit::Failed,
        }
    }
}

impl CancelRequest {
    /// `status` is the final status of the session, if the command has waited for it.
    fn json(&self, status: Option<&str>) -> serde_json::Value {
        let joined = if let CancelState::Joined(target) = &self.state { Some(target) } else { None };
        json!({
            "session_id": self.session, "outcome": self.state.as_str(), "status": status,
            "joined_session_id": joined, "database_error": self.database_error, "broker_error": self.broker_error,
        })
    }
}

fn over(session: SessionId, status: &str) -> String {
    format!("session {} is over: {}", session.short(), status_word(status))
}

/// Stores the request in the database; a queued or unknown alert has no row that could keep it.
async fn request_in_database(database: &Database, session: SessionId) -> anyhow::Result<CancelState> {
    Ok(match database.call(database.store.request_cancel(session)).await? {
        CancelAnswer::Requested => CancelState::Requested,
        CancelAnswer::Joined(target) => CancelState::Joined(target),
        CancelAnswer::Undecided => CancelState::Queued,
        CancelAnswer::Unknown => CancelState::Unseen,
        CancelAnswer::Ended => {
            let report = database.call(database.store.report(session)).await?;
            let ended = report.and_then(|report| report.session);
            CancelState::Over(ended.map_or_else(|| "ended", |session| session.status.as_str()).to_owned())
        }
    })
}

/// Publishes the request, unless the database knows that there is nothing to cancel.
async fn request(
    session: SessionId,
    state: anyhow::Result<CancelState>,
    nats: Result<&Nats, &anyhow::Error>,
) -> anyhow::Result<CancelRequest> {
    let (state, database_error) = match state {
        Ok(CancelState::Unseen) if is_queue_empty(nats).await => (CancelState::Unknown, None),
        Ok(state) => (state, None),
        Err(error) => (CancelState::Requested, Some(one_line_error(&error))),
    };
    let mut request = CancelRequest { session, state, database_error, broker_error: None };
    if !request.state.is_stored() {
        return Ok(request);
    }
    request.broker_error = match nats {
        Ok(nats) => nats.request_cancel(session).await.err().map(|error| error.to_string()),
        Err(error) => Some(one_line_error(error)),
    };
    let short = session.short();
    match (&request.state, &request.database_error, &request.broker_error) {
        (_, Some(database), Some(broker)) => bail!("session {short} was not asked to cancel: {database}; {broker}"),
        (CancelState::Queued | CancelState::Unseen, _, Some(broker)) => {
            bail!("alert {short} is still queued, and only the broker can store a request for it: {broker}")
        }
        (_, _, _) => Ok(request),
    }
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
    request: &CancelRequest,
    args: &SessionsCancelArgs,
) -> anyhow::Result<Exit> {
    let session = request.session;
    let mut follower = Follower::start::<Store>(nats, session, 0, database.map(|database| database.store));
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
    let end = tokio::select! {
        () = interrupted() => {
            note("Interrupted: the request remains stored.")?;
            return Ok(Exit::Interrupted);
        }
        end = tokio::time::timeout(args.timeout, end) => end,
    };
    let Ok(end) = end else {
        let seconds = args.timeout.as_secs();
        note(&format!("session {} is not over after {seconds} s: the request remains stored", session.short()))?;
        return Ok(Exit::StillRunning);
    };
    let end = end.context("the timeline broke off before its end")?;
    let status = end.as_str().trim_start_matches("session_");
    print(&[if args.json { json_line(&request.json(Some(status)))? } else { over(session, status) }])?;
    Ok(if end == EventType::SessionCancelled { Exit::Done } else { Exit::Failed })
}
