//! `tarsy watch --thread`: an investigation and the questions about it, one after another.

use std::collections::BTreeSet;

use anyhow::ensure;

use super::feed::Sources;
use super::reach::Database;
use crate::cli::exit::Exit;
use crate::cli::watch::{Options, Watch};
use crate::investigation::ids::SessionId;

/// Shows each session of the thread to its end; ends when every one that a worker has begun is over, those that began
/// meanwhile included. The exit code is that of the newest.
pub(super) async fn run(
    (sources, database): (&Sources, &Database),
    session: SessionId,
    options: Options,
) -> anyhow::Result<Exit> {
    let mut watch = Watch::new(std::io::stdout(), std::io::stderr(), options);
    let (mut shown, mut exit) = (BTreeSet::new(), Exit::Done);
    loop {
        let thread = database.ask(database.store.thread_sessions(session)).await?;
        ensure!(
            !thread.is_empty(),
            "{} has opened no session: tarsy sessions show {} says where it is",
            session.short(),
            session.short()
        );
        let Some(next) = thread.into_iter().find(|session| !shown.contains(session)) else {
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
