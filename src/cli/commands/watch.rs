//! `tarsy watch`: a timeline from its first event, then live.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::addresses;
use super::feed::Sources;
use crate::cli::args::{GlobalArgs, WatchArgs};
use crate::cli::exit::Exit;
use crate::cli::session_ref::SessionRef;
use crate::cli::view::Surroundings;
use crate::investigation::ids::SessionId;
use crate::store::{Found, Store};

pub(super) async fn run(global: &GlobalArgs, args: WatchArgs) -> anyhow::Result<Exit> {
    let addresses = addresses(global);
    let database = addresses.database("tarsy watch").ok();
    let store = database.map(|options| Store::new(&options).map(Arc::new)).transpose()?;
    let session = find(store.as_deref(), args.session.as_ref()).await?;
    let nats = addresses.nats_for_command("watch").await?;
    let options = args.view.options(&Surroundings::of_process());
    Sources { nats, store }.show(session, options, |_| Ok(())).await
}

/// A whole id needs no database; a part of one does.
async fn find(store: Option<&Store>, wanted: Option<&SessionRef>) -> anyhow::Result<SessionId> {
    if let Some(session) = wanted.and_then(SessionRef::whole) {
        return Ok(session);
    }
    let store = store.context("only a whole session id can be watched without a database: set DATABASE_URL")?;
    let Some(wanted) = wanted else {
        let newest = store.list_sessions(1).await?.into_iter().next();
        return newest.map(|session| session.session_id).context("there is no session yet");
    };
    match store.resolve(wanted.digits()).await? {
        Found::One(session) => Ok(session),
        Found::NoId => bail!("a part of an id has at least six hexadecimal digits"),
        Found::None => bail!("no session has {} in its id", wanted.digits()),
        Found::Many(sessions) => {
            let ids: Vec<String> = sessions.iter().map(ToString::to_string).collect();
            bail!("several sessions have {} in their ids:\n  {}", wanted.digits(), ids.join("\n  "))
        }
    }
}
