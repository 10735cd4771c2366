//! `tarsy sessions`: lists, shows, searches, reruns and cancels investigations.

mod cancel;
mod past;
mod prompts;
mod search;

use anyhow::bail;
use chrono::Utc;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::database::{Database, NotFound, ambiguous};
use super::output::{add, json_lines, note, print, print_json, style};
use super::publish::{Origin, PublishedSession};
use super::watch::follow::Sources;
use super::{addresses, link, load_config, public_url, queue, submit};
use crate::admin::publishing::reruns;
use crate::cli::args::{
    GlobalArgs, SessionsCommand, SessionsListArgs, SessionsRerunArgs, SessionsShowArgs,
};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::render::report;
use crate::cli::render::tables::{list, show};
use crate::cli::session_ref::SessionRef;
use tarsy_core::ids::SessionId;
use tarsy_store::{AlertReport, MAX_COUNTED, SessionFilter, SessionLine};

/// Messages of each queue among which an alert is searched that no worker has seen.
const MAX_SEARCHED: usize = 1000;

pub(super) async fn run(global: &GlobalArgs, command: SessionsCommand) -> anyhow::Result<Exit> {
    match command {
        SessionsCommand::List(args) => list(global, args).await,
        SessionsCommand::Show(args) => show(global, args).await,
        SessionsCommand::Past(args) => past::run(global, args).await,
        SessionsCommand::Search(args) => search::run(global, args).await,
        SessionsCommand::Rerun(args) => rerun(global, args).await,
        SessionsCommand::Cancel(args) => cancel::run(global, args).await,
    }
}

async fn list(global: &GlobalArgs, args: SessionsListArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "sessions")?;
    let filter = SessionFilter {
        limit: args.limit,
        statuses: args.status,
        severities: args.severity,
        chains: args.chain,
        sources: args.source,
        labels: args.label,
        since: args.since,
        until: args.until,
        search: args.search,
        ..SessionFilter::default()
    };
    let unfiltered = SessionFilter {
        limit: args.limit,
        ..SessionFilter::default()
    };
    let sessions = database
        .call(database.store.list_sessions(filter.clone()))
        .await?;
    if sessions.is_empty() {
        note(if filter == unfiltered {
            messages::NO_SESSION
        } else {
            "no matching sessions"
        })?;
        return Ok(Exit::Done);
    }
    let lines = if args.json {
        linked_lines(global, &sessions)?
    } else {
        list::sessions(&sessions, Utc::now(), &style())
    };
    print(&lines)?;
    if sessions.len() >= usize::try_from(args.limit)? {
        let total = database.call(database.store.count_sessions(filter)).await?;
        if total > i64::from(args.limit) {
            let bound = if total < MAX_COUNTED { "" } else { "at least " };
            note(&format!(
                "{} of {bound}{total}; --limit shows more",
                sessions.len()
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// A session of the list with its page.
#[derive(Serialize)]
struct LinkedLine<'a> {
    #[serde(flatten)]
    line: &'a SessionLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// The sessions as JSON, one on each line, with their pages.
pub(super) fn linked_lines(
    global: &GlobalArgs,
    sessions: &[SessionLine],
) -> anyhow::Result<Vec<String>> {
    let public_url = public_url(global);
    let linked: Vec<_> = sessions
        .iter()
        .map(|line| LinkedLine {
            line,
            url: public_url.as_ref().map(|url| url.session(line.session_id)),
        })
        .collect();
    json_lines(&linked)
}

async fn show(global: &GlobalArgs, args: SessionsShowArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "sessions")?;
    let output = if args.json {
        prompts::Output::Json
    } else {
        prompts::Output::Text
    };
    if args.prompts {
        let session = database.find(&args.session).await?;
        return prompts::list(&database, session, output).await;
    }
    if let Some(number) = args.prompt {
        let session = database.find(&args.session).await?;
        return prompts::show(&database, session, number, output).await;
    }
    let found = match read(&database, &args.session).await {
        Ok((_, found)) => found,
        Err(error) if error.is::<NotFound>() => {
            return show_queued(global, &args).await?.ok_or(error);
        }
        Err(error) => return Err(error),
    };
    if args.json {
        print_json(&found)?;
    } else if args.report {
        print(&report::shown(&found, Utc::now(), &style()))?;
    } else {
        print(&show::show(&found, Utc::now(), &style()))?;
    }
    Ok(Exit::Done)
}

/// Shows an alert that no worker has seen, which only the queue has; `None` when the queue does not have it either.
async fn show_queued(global: &GlobalArgs, args: &SessionsShowArgs) -> anyhow::Result<Option<Exit>> {
    let Ok(nats) = addresses(global).nats_for_command("watch").await else {
        return Ok(None);
    };
    let search = nats
        .search_queue(|alert| args.session.matches(alert), MAX_SEARCHED)
        .await;
    let Some(message) = search
        .ok()
        .and_then(|search| search.found.into_iter().next())
    else {
        return Ok(None);
    };
    let priority = message.priority;
    let sequence = message.received.stream_sequence;

    let place = match nats.queue_position(priority, sequence).await {
        Ok(position) => messages::queue_position(&position, priority),
        Err(_) => "queued".to_owned(),
    };
    let alert = queue::AlertReader::by_config(global)?.read(message);
    if args.json {
        let mut json = json!({
            "alert_id": alert.alert_id, "place": "queued", "state": place, "priority": priority.as_str(),
            "queued_at": alert.queued_at, "subject": alert.subject, "stream_sequence": sequence, "title": alert.title,
        });
        if let Some(url) = link(global, alert.alert_id) {
            add(&mut json, "url", url);
        }
        print_json(&json)?;
    } else {
        print(&show::queued(&alert, sequence, &place, &style()))?;
    }
    Ok(Some(Exit::Done))
}

/// The session or alert that a part of an id names. An alert that no worker has seen is found in the queue only.
///
/// # Errors
/// When no alert or session matches, or several do.
pub(super) async fn find(
    global: &GlobalArgs,
    role: &str,
    database: &Database,
    wanted: &SessionRef,
) -> anyhow::Result<SessionId> {
    let error = match database.find(wanted).await {
        Err(error) if error.is::<NotFound>() => error,
        found => return found,
    };
    let Ok(nats) = addresses(global).nats_for_command(role).await else {
        return Err(error);
    };
    let Ok(search) = nats
        .search_queue(|alert| wanted.matches(alert), MAX_SEARCHED)
        .await
    else {
        return Err(error);
    };
    let ids: Vec<SessionId> = search
        .found
        .iter()
        .map(|message| message.received.alert_id)
        .collect();
    match ids.as_slice() {
        [] => Err(error),
        [one] => Ok(*one),
        many => bail!(ambiguous("queued alerts", wanted.digits(), many)),
    }
}

pub(super) async fn read(
    database: &Database,
    wanted: &SessionRef,
) -> anyhow::Result<(SessionId, AlertReport)> {
    let session = database.find(wanted).await?;
    match database.call(database.store.report(session)).await? {
        Some(report) => Ok((session, report)),
        None => bail!(NotFound(format!(
            "no worker has seen an alert or session {session}: it may be queued (tarsy watch {session}), or be deleted (tarsy prune)"
        ))),
    }
}

async fn rerun(global: &GlobalArgs, args: SessionsRerunArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "sessions")?;
    let (old, report) = read(&database, &args.session).await?;
    reruns::may_rerun(&report).map_err(anyhow::Error::msg)?;
    submit::check_chain(&load_config(global)?, args.chain.as_deref())?;
    let nats = addresses(global).nats_for_command("rerun").await?;
    let session = SessionId(Uuid::now_v7());
    let alert =
        reruns::message(session, &report, args.chain.as_deref()).map_err(anyhow::Error::msg)?;
    let priority = alert.priority;
    let published = match report.parent_id {
        Some(_) => nats.publish_question(alert).await?,
        None => nats.publish_alert(alert).await?,
    };
    let origin = Some(Origin {
        key: "retry_of",
        session: old,
        words: "rerun of",
    });
    let sources = args
        .watch
        .then(|| Sources::new(global, nats, Some(database.store)));
    PublishedSession {
        session,
        published,
        priority,
        origin,
    }
    .finish(global, sources, &args.view)
    .await
}
