//! `tarsy watch --thread`: an investigation and the questions about it, one after another.

use std::collections::BTreeSet;

use anyhow::Context as _;

use super::follow::Sources;
use crate::cli::commands::reach::Database;
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::watch::{Options, Watch};
use crate::investigation::ids::SessionId;

/// Shows each session of the thread to its end; ends when every one that a worker has begun is over, those that began
/// meanwhile included. The exit code is that of the newest.
pub(super) async fn run(
    (sources, database): (&Sources, &Database),
    session: SessionId,
    options: Options,
) -> anyhow::Result<Exit> {
    let json = options.json;
    let mut watch = Watch::new(std::io::stdout(), std::io::stderr(), options).one_of_several();
    let (mut shown, mut exit) = (BTreeSet::new(), Exit::Done);
    loop {
        let thread = database.ask(database.store.thread_sessions(session)).await?;
        let root = *thread.first().with_context(|| {
            let short = session.short();
            format!("{short} has opened no session: tarsy sessions show {short} says where it is")
        })?;
        let Some(next) = thread.into_iter().find(|session| !shown.contains(session)) else {
            if !json {
                watch.note(&messages::thread_again(root))?;
            }
            return Ok(exit);
        };
        if !shown.is_empty() {
            watch.separate()?;
        }
        exit = sources.show_one(&mut watch, (next, None), |_| Ok(())).await?;
        if matches!(exit, Exit::Interrupted | Exit::StillRunning) {
            return Ok(exit);
        }
        shown.insert(next);
    }
}
