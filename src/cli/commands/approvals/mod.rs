//! `tarsy approvals`: lists and shows calls that wait for a person, and sends what people decide.

mod decide;
mod freeze;

use std::time::Duration;

use anyhow::bail;
use chrono::Utc;
use serde::Serialize;

use super::database::{Database, NotFound};
use super::output::{json_line, json_lines, note, print, print_json, style};
use crate::cli::args::{
    ApprovalsCommand, ApprovalsExportArgs, ApprovalsListArgs, ApprovalsShowArgs, GlobalArgs,
    RequestRef,
};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::render::tables::approvals;
use tarsy_core::approvals::RequestId;
use tarsy_reports::{
    ApprovalDetail, ApprovalFilter, ApprovalRow, RequestState, Requests, VotePage,
};

/// The time between two looks at a request that is watched.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The votes of one page of an export.
const EXPORT_PAGE: u32 = 1_000;

pub(super) async fn run(global: &GlobalArgs, command: ApprovalsCommand) -> anyhow::Result<Exit> {
    match command {
        ApprovalsCommand::List(args) => list(global, args).await,
        ApprovalsCommand::Show(args) => show(global, args).await,
        ApprovalsCommand::Approve(args) => decide::approve(global, args).await,
        ApprovalsCommand::Deny(args) => decide::deny(global, args).await,
        ApprovalsCommand::Export(args) => export(global, args).await,
        ApprovalsCommand::Freeze(args) => freeze::begin(global, args).await,
        ApprovalsCommand::Unfreeze(args) => freeze::end(global, args).await,
    }
}

async fn list(global: &GlobalArgs, args: ApprovalsListArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let session = match &args.session {
        Some(session) => Some(database.find(session).await?),
        None => None,
    };
    let requests = if args.all {
        Requests::All
    } else {
        Requests::Open
    };
    let filter = ApprovalFilter {
        limit: args.limit,
        requests,
        session,
        since: args.since,
    };
    let rows = database.call(database.store.approvals(filter)).await?;
    if let Some(freeze) = database.call(database.store.approval_freeze()).await? {
        let by = &freeze.person;
        note(&format!(
            "all changes are frozen by {by}: no approval counts (tarsy approvals unfreeze ends it)"
        ))?;
    }
    if rows.is_empty() {
        note("no call waits for a person")?;
        return Ok(Exit::Done);
    }
    let lines = if args.json {
        let listed = rows.into_iter().map(|row| Listed {
            url: database.store.approval_link(row.id()),
            row,
        });
        json_lines(&listed.collect::<Vec<_>>())?
    } else {
        let mut lines = approvals::list(&rows, Utc::now(), &style());
        lines.extend(pages(&database, &rows));
        lines
    };
    print(&lines)?;
    Ok(Exit::Done)
}

/// A request for programs.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    row: ApprovalRow,
    /// The address of its page, if `web.public_url` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// The address of the page of each request, if `web.public_url` is set.
fn pages(database: &Database, rows: &[ApprovalRow]) -> Vec<String> {
    rows.iter()
        .filter_map(|row| {
            let url = database.store.approval_link(row.id())?;
            Some(format!("{}  {}", approvals::id(row), messages::link(&url)))
        })
        .collect()
}

async fn show(global: &GlobalArgs, args: ApprovalsShowArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let request = find(&database, &args.request).await?;
    let mut detail = read(&database, request).await?;
    if args.watch {
        if !args.json && detail.row.state == RequestState::Open {
            print(&approvals::show(&detail, Utc::now(), &style()))?;
        }
        while detail.row.state == RequestState::Open {
            tokio::time::sleep(WATCH_INTERVAL).await; // interval between looks
            detail = read(&database, request).await?;
        }
    }
    if args.json {
        print_json(&detail)?;
    } else {
        print(&approvals::show(&detail, Utc::now(), &style()))?;
    }
    Ok(Exit::Done)
}

/// Prints every vote, page by page.
async fn export(global: &GlobalArgs, args: ApprovalsExportArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let mut page = VotePage {
        limit: EXPORT_PAGE,
        since: args.since,
        after: None,
    };
    loop {
        let votes = database
            .call(database.store.approval_votes(page.clone()))
            .await?;
        for vote in &votes {
            print(&[json_line(vote)?])?;
        }
        match votes.last() {
            Some(last) if votes.len() >= usize::try_from(EXPORT_PAGE)? => {
                page.after = Some(last.vote.vote_id);
            }
            Some(_) | None => return Ok(Exit::Done),
        }
    }
}

/// The request that a reference names.
async fn find(database: &Database, wanted: &RequestRef) -> anyhow::Result<RequestId> {
    Ok(RequestId {
        session: database.find(&wanted.session).await?,
        event: wanted.event,
    })
}

async fn read(database: &Database, request: RequestId) -> anyhow::Result<ApprovalDetail> {
    match database.call(database.store.approval(request)).await? {
        Some(detail) => Ok(detail),
        None => bail!(NotFound(format!(
            "session {} has no request with event {} (tarsy approvals list --all --session {0})",
            request.session.short(),
            request.event
        ))),
    }
}
