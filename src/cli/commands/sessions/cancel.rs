//! `tarsy sessions cancel`: requests the end of a session in the database and over the broker; either one suffices. A
//! session or alert that no worker has ends in the database at once.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::{MAX_SEARCHED, find};
use crate::cli::args::{GlobalArgs, SessionsCancelArgs};
use crate::cli::commands::database::{Database, with_cause};
use crate::cli::commands::output::{add, json_line, note, print};
use crate::cli::commands::watch::follow::interrupted;
use crate::cli::commands::{addresses, link, one_line_error};
use crate::cli::exit::Exit;
use tarsy_bus::{Follower, Nats, TimelineUpdate};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::{Disposition, Sessions as _};
use tarsy_reports::words::status_word;
use tarsy_store::{CancelAnswer, Store};

/// Time for the owner of a session to end it. It needs milliseconds, so one that takes longer has died, or is cut off.
const OWNER_TIMEOUT: Duration = Duration::from_secs(2);
/// The time between two reads of a session that its owner has to end.
const OWNER_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The outcome of a cancel request.
#[derive(Debug, PartialEq, Eq)]
enum CancelState {
    /// The session runs and will end.
    Requested,
    /// The session or alert has ended with this request.
    Cancelled,
    /// No worker has seen the alert; the request waits for it.
    Unseen,
    /// The session ended earlier, with this status.
    Over(String),
    /// The alert belongs to this session, which may have ended.
    Joined(SessionId),
    /// Neither the database nor the queue knows the session.
    Unknown,
}

struct CancelRequest {
    session: SessionId,
    /// The page of the session.
    url: Option<String>,
    state: CancelState,
    /// The reason why the database did not store the request.
    database_error: Option<String>,
    /// The reason why the broker did not store the request.
    broker_error: Option<String>,
}

pub(super) async fn run(global: &GlobalArgs, args: SessionsCancelArgs) -> anyhow::Result<Exit> {
    // Without a database the broker can still take a request for a whole id.
    let database = Database::new(global, "sessions");
    let session = match (args.session.whole(), &database) {
        (Some(session), _) => session,
        (None, Ok(database)) => find(global, "cancel", database, &args.session).await?,
        (None, Err(error)) => {
            bail!("only a whole id can be cancelled without the database: {error:#}")
        }
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
    let state = match (state, &database, &nats) {
        (Ok(CancelState::Unseen), Ok(database), Ok(nats)) => {
            cancel_unread(database, nats, session).await
        }
        (state, _, _) => state,
    };
    let mut request = request(session, state, nats.as_ref()).await?;
    request.url = link(global, session);
    if let (CancelState::Requested, None, Ok(database)) =
        (&request.state, &request.database_error, &database)
    {
        await_owner(database, nats.as_ref().ok(), &mut request).await?;
    }
    for (way, error) in [
        ("the database", &request.database_error),
        ("the broker", &request.broker_error),
    ] {
        if let Some(error) = error {
            note(&format!("{way} did not store the request: {error}"))?;
        }
    }
    if !args.wait || !request.state.is_stored() {
        print(&[if args.json {
            json_line(&request.json(None))?
        } else {
            request.state.describe(session)
        }])?;
        return Ok(request.state.exit());
    }
    note(&request.state.describe(session))?;
    let nats = nats.context("without the broker the end of the session cannot be followed")?;
    wait(&nats, database.ok(), &request, &args).await
}

impl CancelState {
    /// Whether a request is stored and has not been carried out.
    fn is_stored(&self) -> bool {
        matches!(self, Self::Requested | Self::Unseen)
    }

    /// The word in the JSON output.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Requested | Self::Cancelled => "asked",
            Self::Unseen => "queued",
            Self::Over(_) => "over",
            Self::Joined(_) => "joined",
            Self::Unknown => "unknown",
        }
    }

    fn describe(&self, session: SessionId) -> String {
        let short = session.short();
        match self {
            Self::Requested => {
                format!("session {short} is asked to cancel: tarsy watch {short} shows its end")
            }
            Self::Cancelled => format!("session {short} is cancelled"),
            Self::Unseen => format!(
                "no worker has seen {short} yet: the request is stored and takes effect if it is opened within 24 hours"
            ),
            Self::Over(status) => over(session, status),
            Self::Joined(target) => {
                let target = target.short();
                format!(
                    "alert {short} has no session of its own, it belongs to {target}: if that one still runs, tarsy sessions \
                     cancel {target} ends it for every alert that it investigates"
                )
            }
            Self::Unknown => format!("there is no session {session}, and nothing is queued"),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Requested | Self::Cancelled | Self::Unseen => Exit::Done,
            Self::Over(status) if status == "cancelled" => Exit::Done,
            Self::Over(_) | Self::Joined(_) | Self::Unknown => Exit::Failed,
        }
    }
}

impl CancelRequest {
    /// `status` is the final status of the session, if the command has waited for it.
    fn json(&self, status: Option<&str>) -> serde_json::Value {
        let (status, joined) = match &self.state {
            CancelState::Cancelled => (status.or(Some("cancelled")), None),
            CancelState::Joined(target) => (status, Some(target)),
            CancelState::Requested
            | CancelState::Unseen
            | CancelState::Over(_)
            | CancelState::Unknown => (status, None),
        };
        let mut json = json!({
            "session_id": self.session, "outcome": self.state.as_str(), "status": status,
            "joined_session_id": joined, "database_error": self.database_error, "broker_error": self.broker_error,
        });
        if let Some(url) = &self.url {
            add(&mut json, "url", url.as_str());
        }
        json
    }
}

fn over(session: SessionId, status: &str) -> String {
    format!(
        "session {} is over: {}",
        session.short(),
        status_word(status)
    )
}

/// Ends an alert that no worker has seen: records it as a worker would, so that its message finds it cancelled.
async fn cancel_unread(
    database: &Database,
    nats: &Nats,
    session: SessionId,
) -> anyhow::Result<CancelState> {
    let Ok(search) = nats
        .search_queue(|alert| alert == session, MAX_SEARCHED)
        .await
    else {
        return Ok(CancelState::Unseen);
    };
    match search.found.into_iter().next() {
        Some(message) => {
            let disposition = database
                .call_port(database.store.receive(message.received))
                .await?;
            if disposition == Disposition::UsedId {
                return Ok(CancelState::Unseen);
            }
            request_in_database(database, session).await
        }
        None if search.is_complete => Ok(CancelState::Unknown),
        None => Ok(CancelState::Unseen),
    }
}

/// Waits until the owner has ended the session, and ends it if the owner does not.
async fn await_owner(
    database: &Database,
    nats: Option<&Nats>,
    request: &mut CancelRequest,
) -> anyhow::Result<()> {
    let session = request.session;
    let ended = async {
        loop {
            // A read that fails is repeated: the time limit ends the wait.
            let standing = database.store.standing(session).await;
            if standing.is_ok_and(|standing| standing.over) {
                return;
            }
            tokio::time::sleep(OWNER_POLL_INTERVAL).await; // pacing of the reads
        }
    };
    let answer = match tokio::time::timeout(OWNER_TIMEOUT, ended).await {
        Ok(()) => CancelAnswer::Ended,
        Err(_) => {
            let cancelled = database.store.cancel_unanswered(session);
            database.call(cancelled).await?
        }
    };
    let state = state_of(database, session, answer).await?;
    let is_cancelled = matches!(&state, CancelState::Over(status) if status == "cancelled");
    request.state = if is_cancelled {
        CancelState::Cancelled
    } else {
        state
    };
    if answer == CancelAnswer::Cancelled
        && let Some(nats) = nats
    {
        // The workers that had this request before found a lease that had not expired.
        nats.request_cancel(session).await.ok();
    }
    Ok(())
}

/// Stores the request in the database; an alert that no worker has seen has no row that could keep it.
async fn request_in_database(
    database: &Database,
    session: SessionId,
) -> anyhow::Result<CancelState> {
    let requested = database.store.request_cancel(session);
    state_of(database, session, database.call(requested).await?).await
}

async fn state_of(
    database: &Database,
    session: SessionId,
    answer: CancelAnswer,
) -> anyhow::Result<CancelState> {
    Ok(match answer {
        CancelAnswer::Requested => CancelState::Requested,
        CancelAnswer::Cancelled => CancelState::Cancelled,
        CancelAnswer::Joined(target) => CancelState::Joined(target),
        CancelAnswer::Unknown => CancelState::Unseen,
        CancelAnswer::Ended => {
            let report = database.call(database.store.report(session)).await?;
            let ended = report.and_then(|report| report.session);
            let status = ended.map_or("ended", |session| session.status.as_str());
            CancelState::Over(status.to_owned())
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
        Ok(state) => (state, None),
        Err(error) => (CancelState::Requested, Some(one_line_error(&error))),
    };
    let mut request = CancelRequest {
        session,
        url: None,
        state,
        database_error,
        broker_error: None,
    };
    // A session that has just ended gets a request as well: the workers publish its end when they receive it.
    if !request.state.is_stored() && request.state != CancelState::Cancelled {
        return Ok(request);
    }
    request.broker_error = match nats {
        Ok(nats) => {
            let requested = nats.request_cancel(session).await;
            let requested = with_cause(nats, requested.map_err(anyhow::Error::from)).await;
            requested.err().map(|error| one_line_error(&error))
        }
        Err(error) => Some(one_line_error(error)),
    };
    let short = session.short();
    match (
        &request.state,
        &request.database_error,
        &request.broker_error,
    ) {
        (_, Some(database), Some(broker)) => {
            bail!("session {short} was not asked to cancel: {database}; {broker}")
        }
        (CancelState::Unseen, _, Some(broker)) => {
            bail!(
                "alert {short} was not asked to cancel: no worker has seen it, and only the broker can store a request \
                 for it: {broker}"
            )
        }
        (_, _, _) => Ok(request),
    }
}

/// Follows the session to its end without showing it.
async fn wait(
    nats: &Nats,
    database: Option<Database>,
    request: &CancelRequest,
    args: &SessionsCancelArgs,
) -> anyhow::Result<Exit> {
    let session = request.session;
    let mut follower =
        Follower::start::<Store>(nats, session, 0, database.map(|database| database.store));
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
        note(&format!(
            "session {} is not over after {seconds} s: the request remains stored",
            session.short()
        ))?;
        return Ok(Exit::StillRunning);
    };
    let end = end.context("the timeline broke off before its end")?;
    let status = end.as_str().trim_start_matches("session_");
    print(&[if args.json {
        json_line(&request.json(Some(status)))?
    } else {
        over(session, status)
    }])?;
    let cancelled = end == EventType::SessionCancelled;
    Ok(if cancelled { Exit::Done } else { Exit::Failed })
}
