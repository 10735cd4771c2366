//! `tarsy sessions past`: the earlier investigations of the alert of a session.

use anyhow::bail;

use crate::cli::args::{GlobalArgs, SessionsPastArgs};
use crate::cli::commands::database::{Database, NotFound};
use crate::cli::commands::output::{json_lines, note, print, style};
use crate::cli::exit::Exit;
use crate::cli::render::tables::past;
use tarsy_core::past::{By, PastQuery};
use tarsy_core::plan::PastScope;
use tarsy_reports::SeenBefore;

pub(super) async fn run(global: &GlobalArgs, args: SessionsPastArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "sessions")?;
    let session = database.find(&args.session).await?;
    let query = PastQuery {
        by: By::SameAlert,
        days: args.days,
        limit: args.limit,
        scope: PastScope::All,
    };
    let found = database
        .call(database.store.past_of_session(session, &query))
        .await?;
    let Some(found) = found else {
        bail!(NotFound(format!(
            "there is no session {session}: its alert may be queued, be covered by another session, or be deleted (tarsy prune)"
        )));
    };
    let seen = SeenBefore::new(found);
    if seen.sessions.is_empty() {
        note(&format!("not seen in the {} days before", seen.days))?;
        return Ok(Exit::Done);
    }
    print(&if args.json {
        json_lines(&seen.sessions)?
    } else {
        past::seen(&seen, &style())
    })?;
    let shown = u32::try_from(seen.sessions.len())?;
    if seen.times > shown {
        note(&format!("{shown} of {}; --limit shows more", seen.times))?;
    }
    Ok(Exit::Done)
}
