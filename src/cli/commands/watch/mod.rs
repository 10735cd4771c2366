//! `tarsy watch`: a session from its first event, then live; or the events of every session.

pub(crate) mod follow;
mod thread;
pub(in crate::cli::commands) mod waiting;

use std::sync::Arc;

use anyhow::Context as _;
use chrono::Utc;

use self::follow::{Sources, Target, interrupted};
use self::waiting::QueuePlace;
use super::database::{Database, with_cause};
use super::output::{json_line, note, print};
use super::{addresses, one_line_error, sessions};
use crate::cli::args::{GlobalArgs, WatchArgs};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::render::tables::list;
use crate::cli::render::timeline::event_line;
use crate::cli::session_ref::SessionRef;
use crate::cli::view::TerminalEnv;
use crate::cli::watch::{Options, until};
use crate::process::connect::BadAddress;
use tarsy_bus::AllFollower;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::RunStatus;
use tarsy_store::SessionFilter;

/// The number of running sessions that are listed at the beginning at most.
const MAX_RUNNING: u32 = 200;

pub(super) async fn run(global: &GlobalArgs, args: WatchArgs) -> anyhow::Result<Exit> {
    let addresses = addresses(global);
    let database = addresses
        .database_url
        .is_some()
        .then(|| Database::new(global, "watch"))
        .transpose()?;
    let options = Options {
        agent: args.agent,
        ..args.view.options(&TerminalEnv::of_process())
    };
    if args.all {
        return watch_all(global, database, options).await;
    }
    let session = find(global, database.as_ref(), args.session.as_ref()).await?;
    let nats = addresses.nats_for_command("watch").await?;
    if args.thread {
        let database = database.ok_or_else(|| no_database("a thread needs one"))?;
        let sources = Sources::new(global, nats, Some(Arc::clone(&database.store)));
        return thread::run(&sources, &database, session, options).await;
    }
    let sources = Sources::new(global, nats, database.map(|database| database.store));
    let target = Target {
        session,
        queue: Some(QueuePlace::Unknown),
    };
    sources.show(target, options, |_| Ok(())).await
}

/// The exit code is that of every command without a database that it needs.
fn no_database(why: &str) -> BadAddress {
    BadAddress(format!(
        "no database: set DATABASE_URL or --database-url; {why}"
    ))
}

/// The session to watch. Only a whole id can be found without a database.
async fn find(
    global: &GlobalArgs,
    database: Option<&Database>,
    wanted: Option<&SessionRef>,
) -> anyhow::Result<SessionId> {
    if let Some(session) = wanted.and_then(SessionRef::whole) {
        return Ok(session);
    }
    let database = database
        .ok_or_else(|| no_database("without one, only a whole session id can be watched"))?;
    if let Some(wanted) = wanted {
        return sessions::find(global, "watch", database, wanted).await;
    }
    let newest = SessionFilter {
        limit: 1,
        ..SessionFilter::default()
    };
    let mut newest = database.call(database.store.list_sessions(newest)).await?;
    let newest = newest.pop().context(messages::NO_SESSION)?;
    Ok(newest.session_id)
}

/// Prints the running sessions, then every event of every session, until Ctrl-C or the time limit.
async fn watch_all(
    global: &GlobalArgs,
    database: Option<Database>,
    options: Options,
) -> anyhow::Result<Exit> {
    let nats = addresses(global).nats_for_command("watch").await?;
    // The follower starts before the list is read, so that no session is missed that begins meanwhile.
    let follower = AllFollower::start(&nats).await.map_err(anyhow::Error::from);
    let mut follower = with_cause(&nats, follower).await?;
    match database {
        Some(database) => {
            if let Err(error) = list_running(global, &database, &options).await {
                note(&format!(
                    "cannot list running sessions: {}",
                    one_line_error(&error)
                ))?;
            }
        }
        None => note("cannot list running sessions: set DATABASE_URL")?,
    }
    let deadline = options
        .timeout
        .map(|timeout| tokio::time::Instant::now() + timeout);
    let mut interrupt = std::pin::pin!(interrupted());
    loop {
        let event = tokio::select! {
            biased;
            () = &mut interrupt => return Ok(Exit::Interrupted),
            () = until(deadline) => return Ok(Exit::StillRunning),
            event = follower.next() => event.context("the timeline stream broke off")?,
        };
        print(&[if options.json {
            json_line(&event)?
        } else {
            event_line(&event, &options.style)
        }])?;
    }
}

async fn list_running(
    global: &GlobalArgs,
    database: &Database,
    options: &Options,
) -> anyhow::Result<()> {
    let filter = SessionFilter {
        limit: MAX_RUNNING,
        statuses: vec![RunStatus::Running],
        ..SessionFilter::default()
    };
    let mut running = database.call(database.store.list_sessions(filter)).await?;
    // The oldest first, like the events that follow.
    running.reverse();
    print(&if options.json {
        sessions::linked_lines(global, &running)?
    } else {
        running
            .iter()
            .map(|session| list::running(session, Utc::now(), &options.style))
            .collect()
    })?;
    if running.is_empty() {
        note("no session is running")?;
    }
    Ok(())
}
