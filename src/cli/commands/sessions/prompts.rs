//! `tarsy sessions show --prompts` and `--prompt`: the model calls of a session, and the request of one of them.

use anyhow::bail;

use crate::cli::commands::database::{Database, NotFound};
use crate::cli::commands::output::{json_lines, note, print, print_json, style};
use crate::cli::exit::Exit;
use crate::cli::render::call;
use crate::cli::render::tables::calls;
use tarsy_core::ids::SessionId;
use tarsy_reports::calls::{CallNumber, CallReport, NumberedCall};

/// The output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Text,
    Json,
}

/// The calls, one on each line.
pub(super) async fn list(
    database: &Database,
    session: SessionId,
    output: Output,
) -> anyhow::Result<Exit> {
    let found = of_session(database, session).await?;
    if found.is_empty() {
        note("no model call is stored: none has ended yet, or they are deleted (tarsy prune)")?;
        return Ok(Exit::Done);
    }
    print(&match output {
        Output::Json => json_lines(&found)?,
        Output::Text => calls::calls(&found, &style()),
    })?;
    Ok(Exit::Done)
}

/// One call with its whole request.
pub(super) async fn show(
    database: &Database,
    session: SessionId,
    number: CallNumber,
    output: Output,
) -> anyhow::Result<Exit> {
    let Some(found) = database
        .call(database.store.model_call(session, number))
        .await?
    else {
        let count = of_session(database, session).await?.len();
        bail!(
            "session {} has {count} model calls, and no call {number}: --prompts lists them",
            session.short()
        );
    };
    let report = CallReport::whole(found);
    match output {
        Output::Json => print_json(&report)?,
        Output::Text => print(&call::call(&report, &style()))?,
    }
    Ok(Exit::Done)
}

async fn of_session(database: &Database, session: SessionId) -> anyhow::Result<Vec<NumberedCall>> {
    match database.call(database.store.model_calls(session)).await? {
        Some(calls) => Ok(calls),
        None => bail!(NotFound(format!(
            "there is no session {session}: its alert may be queued, be covered by another session, or be deleted (tarsy prune)"
        ))),
    }
}
