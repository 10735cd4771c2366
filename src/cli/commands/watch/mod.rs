//! `tarsy watch`: a timeline from its first event, then live; or the news of every session.

pub(crate) mod follow;
mod thread;
pub(crate) mod waiting;

use std::sync::Arc;

use anyhow::Context as _;
use chrono::Utc;

use self::follow::{Sources, interrupted};
use self::waiting::QueueWatch;
use super::addresses;
use super::reach::{Database, note, print, print_json, with_cause};
use crate::bus::AllFollower;
use crate::cli::args::{GlobalArgs, WatchArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::list;
use crate::cli::render::timeline::news;
use crate::cli::session_ref::SessionRef;
use crate::cli::view::Surroundings;
use crate::cli::watch::Options;
use crate::investigation::ids::SessionId;
use crate::store::SessionFilter;

/// More running sessions than this are not listed before the news.
const RUNNING: u32 = 200;

pub(super) async fn run(global: &GlobalArgs, args: WatchArgs) -> anyhow::Result<Exit> {
    let addresses = addresses(global);
    let database = addresses.database_url.is_some().then(|| Database::of(global, "watch")).transpose()?;
    let options = args.view.options(&Surroundings::of_process());
    if args.all {
        return watch_all(global, database, options).await;
    }
    let session = find(database.as_ref(), args.session.as_ref()).await?;
    let nats = addresses.nats_for_command("watch").await?;
    if args.thread {
        let database = database.context("a thread can be watched with a database only: set DATABASE_URL")?;
        let sources = Sources { nats, store: Some(Arc::clone(&database.store)) };
        return thread::run((&sources, &database), session, options).await;
    }
    let queue = QueueWatch::of_session(&nats, session);
    let store = database.map(|database| database.store);
    Sources { nats, store }.show_from_queue((session, queue), options).await
}

/// A whole id needs no database; a part of one does.
async fn find(database: Option<&Database>, wanted: Option<&SessionRef>) -> anyhow::Result<SessionId> {
    if let Some(session) = wanted.and_then(SessionRef::whole) {
        return Ok(session);
    }
    let database = database.context("only a whole session id can be watched without a database: set DATABASE_URL")?;
    if let Some(wanted) = wanted {
        return database.find(wanted).await;
    }
    let newest = SessionFilter { limit: 1, ..SessionFilter::default() };
    let newest = database.ask(database.store.list_sessions(newest)).await?.pop();
    newest.map(|session| session.session_id).context("there is no session yet")
}

/// What runs now, then every event of every session, until Ctrl-C or the time limit.
async fn watch_all(global: &GlobalArgs, database: Option<Database>, options: Options) -> anyhow::Result<Exit> {
    let nats = addresses(global).nats_for_command("watch").await?;
    // Before the list: what begins while it is read must not be missed.
    let follower = AllFollower::start(&nats).await.map_err(anyhow::Error::from);
    let mut follower = with_cause(&nats, follower).await?;
    match database {
        Some(database) => {
            if let Err(error) = list_running(&database, &options).await {
                note(&format!("what runs now is not known: {}", super::told(&error)))?;
            }
        }
        None => note("what runs now is not known: set DATABASE_URL")?,
    }
    let end = options.timeout.map(|timeout| tokio::time::Instant::now() + timeout);
    let over = async {
        match end {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    let (mut over, mut interrupt) = (std::pin::pin!(over), std::pin::pin!(interrupted()));
    loop {
        let event = tokio::select! {
            biased;
            () = &mut interrupt => return Ok(Exit::Interrupted),
            () = &mut over => return Ok(Exit::StillRunning),
            event = follower.next() => event.context("the timelines broke off")?,
        };
        if options.json { print_json(&event)? } else { print(&[news(&event, &options.style)])? }
    }
}

async fn list_running(database: &Database, options: &Options) -> anyhow::Result<()> {
    let filter = SessionFilter { limit: RUNNING, status: Some("running".to_owned()), ..SessionFilter::default() };
    let mut running = database.ask(database.store.list_sessions(filter)).await?;
    // As the news that follow: the oldest first.
    running.reverse();
    for session in &running {
        if options.json {
            print_json(session)?;
        } else {
            print(&[list::running(session, Utc::now(), &options.style)])?;
        }
    }
    if running.is_empty() {
        note("no session runs now")?;
    }
    Ok(())
}
