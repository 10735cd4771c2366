//! `tarsy watch --thread`: an investigation and the questions about it, one after another.

use std::collections::BTreeSet;

use anyhow::Context as _;

use super::follow::{Sources, Target};
use crate::cli::commands::database::Database;
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::watch::{Options, Watch};
use tarsy_core::ids::SessionId;

/// Shows each session of the thread to its end, including sessions that begin meanwhile. The exit code is that of the
/// newest session.
pub(super) async fn run(
    sources: &Sources,
    database: &Database,
    session: SessionId,
    options: Options,
) -> anyhow::Result<Exit> {
    let json = options.json;
    let columns = options.style.width;

    let mut watch = Watch::new(std::io::stdout(), std::io::stderr(), options).one_of_several();
    let mut shown = BTreeSet::new();
    let mut exit = Exit::Done;

    loop {
        let thread = database
            .call(database.store.thread_sessions(session))
            .await?;
        let root = *thread.first().with_context(|| {
            let short = session.short();
            format!("{short} has opened no session; for its state: tarsy sessions show {short}")
        })?;
        let Some(next) = thread.into_iter().find(|session| !shown.contains(session)) else {
            if !json {
                watch.note(&messages::watch_thread_again(root, columns))?;
            }
            return Ok(exit);
        };
        if !shown.is_empty() {
            watch.separate()?;
        }
        exit = sources
            .show_with(
                &mut watch,
                Target {
                    session: next,
                    queue: None,
                },
                |_| Ok(()),
            )
            .await?;
        if matches!(exit, Exit::Interrupted | Exit::StillRunning) {
            return Ok(exit);
        }
        shown.insert(next);
    }
}
