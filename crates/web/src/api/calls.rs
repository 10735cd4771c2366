//! The model calls of a session, and the request of one of them, for users who may see them.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::{Deserialize, Serialize};

use super::{Answer, OK, find, query};
use crate::fault::Fault;
use crate::json;
use crate::ports::Backend;
use crate::rights::Access;
use crate::state::Shared;
use tarsy_core::ids::SessionId;
use tarsy_reports::calls::{CallReport, NumberedCall};

#[derive(Serialize)]
struct Calls {
    calls: Vec<NumberedCall>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallPath {
    part: String,
    /// A number, or `last`.
    number: String,
}

/// The messages of a request to return.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MessagesQuery {
    /// The number of the first one; without it all of them, if they are short.
    from: Option<usize>,
}

pub(super) async fn list<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(part): Path<String>,
) -> Answer {
    let (_, calls) = calls_of(&web, &access, &part).await?;
    Ok(json::response(OK, &Calls { calls }))
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(path): Path<CallPath>,
    uri: Uri,
) -> Answer {
    let (_, call) = call_at(&web, &access, &path, &query(&uri)?).await?;
    Ok(json::response(OK, &call))
}

/// The session that a part of an id names, and its calls.
pub(crate) async fn calls_of<B: Backend>(
    web: &Shared<B>,
    access: &Access,
    part: &str,
) -> Result<(SessionId, Vec<NumberedCall>), Fault> {
    permit(access)?;
    let id = find(web, part).await?;
    Ok((id, stored_calls(web, id).await?))
}

async fn stored_calls<B: Backend>(
    web: &Shared<B>,
    id: SessionId,
) -> Result<Vec<NumberedCall>, Fault> {
    let calls = web.backend.calls(id).await?;
    calls.ok_or_else(|| {
        Fault::NotFound(format!(
            "there is no session {id}: its alert may be queued, be covered by another session, or be deleted"
        ))
    })
}

/// The session and the call that a path names.
pub(crate) async fn call_at<B: Backend>(
    web: &Shared<B>,
    access: &Access,
    path: &CallPath,
    messages: &MessagesQuery,
) -> Result<(SessionId, CallReport), Fault> {
    permit(access)?;
    let number = path
        .number
        .parse()
        .map_err(|problem| Fault::Invalid(format!("number: {problem}")))?;
    let id = find(web, &path.part).await?;
    let Some(call) = web.backend.call(id, number).await? else {
        let calls = stored_calls(web, id).await?;
        return Err(Fault::NotFound(format!(
            "session {} has {} model calls, and no call {number}",
            id.short(),
            calls.len()
        )));
    };
    let report = match messages.from {
        Some(first) => CallReport::from(call, first),
        None => CallReport::new(call),
    };
    Ok((id, report))
}

fn permit(access: &Access) -> Result<(), Fault> {
    const FORBIDDEN: &str = "the requests to models have the instructions of operators: web.allow.prompts in tarsy.yaml \
                             lists the groups that may see them, and this user is in none of them";
    if access.may_see_prompts {
        Ok(())
    } else {
        Err(Fault::Forbidden(FORBIDDEN))
    }
}
