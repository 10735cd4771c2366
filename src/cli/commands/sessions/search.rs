//! `tarsy sessions search`: the events of a session that contain a text.

use anyhow::bail;
use serde::Serialize;

use crate::cli::args::{GlobalArgs, SessionsSearchArgs};
use crate::cli::commands::database::{Database, NotFound};
use crate::cli::commands::output::{json_lines, note, print, style};
use crate::cli::exit::Exit;
use crate::cli::render::tables::found;
use tarsy_core::ids::SessionId;
use tarsy_core::search::Literal;
use tarsy_reports::{EventSearch, FoundEvent, FoundEvents, Match};

/// An event that contains the text, without its whole content.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    found: &'a Match,
    event_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    created_at: chrono::DateTime<chrono::Utc>,
}

pub(super) async fn run(global: &GlobalArgs, args: SessionsSearchArgs) -> anyhow::Result<Exit> {
    let Some(text) = Literal::parse(&args.text.join(" "))? else {
        bail!("the text to search is blank");
    };
    let database = Database::new(global, "sessions")?;
    let session = database.find(&args.session).await?;
    let search = EventSearch {
        session,
        after: args.after,
        limit: args.limit,
        text,
    };
    let found = whole(&database, search).await?;
    if found.searched_to == args.after && found.events.is_empty() {
        require(&database, session).await?;
    }
    if found.events.is_empty() {
        note("no event contains the text")?;
        return Ok(Exit::Done);
    }
    print(&if args.json {
        json_lines(&found.events.iter().map(line).collect::<Vec<_>>())?
    } else {
        found::events(&found.events, &style())
    })?;
    if !found.is_complete {
        note(&format!(
            "searched up to event {number}; --after {number} continues",
            number = found.searched_to
        ))?;
    }
    Ok(Exit::Done)
}

/// Continues a search until the whole session is searched, or as many events are found as may be.
async fn whole(database: &Database, mut search: EventSearch) -> anyhow::Result<FoundEvents> {
    let mut events = Vec::new();
    loop {
        let read = database
            .call(database.store.search_events(search.clone()))
            .await?;
        search.after = read.searched_to;
        let count = u32::try_from(read.events.len())?;
        search.limit = search.limit.saturating_sub(count);
        events.extend(read.events);
        if read.is_complete || search.limit == 0 {
            return Ok(FoundEvents { events, ..read });
        }
    }
}

/// Refuses a session without any event that does not exist.
async fn require(database: &Database, session: SessionId) -> anyhow::Result<()> {
    if database
        .call(database.store.report(session))
        .await?
        .is_none()
    {
        bail!(NotFound(format!(
            "there is no session {session}: its alert may be queued, or be deleted (tarsy prune)"
        )));
    }
    Ok(())
}

fn line(each: &FoundEvent) -> Line<'_> {
    Line {
        found: &each.found,
        event_type: each.event.event_type.as_str(),
        agent: each.event.agent.as_deref(),
        created_at: each.event.created_at,
    }
}
