//! The model calls of a session, and the request of one of them, for users who may see them.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{OK, answered, find, query};
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
    /// Or `last`.
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
) -> Response {
    let calls = async {
        let (_, calls) = calls_of(&web, &access, &part).await?;
        Ok(json::response(OK, &Calls { calls }))
    };
    answered(calls.await)
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(path): Path<CallPath>,
    uri: Uri,
) -> Response {
    let call = async {
        let (_, call) = call_at(&web, &access, &path, &query(&uri)?).await?;
        Ok(json::response(OK, &call))
    };
    answered(call.await)
}

/// The session that a part of an id names, and its calls.
pub(crate) async fn calls_of<B: Backend>(
    web: &Shared<B>,
    access: &Access,
    part: &str,
) -> Result<(SessionId, Vec<NumberedCall>), Fault> {
    permit(access)?;
    let id = find(web, part).await?;
    let calls = web
        .backend
        .calls(id)
        .await?
        .ok_or_else(|| without_session(id))?;
    Ok((id, calls))
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
        let calls = web
            .backend
            .calls(id)
            .await?
            .ok_or_else(|| without_session(id))?;
        return Err(Fault::NotFound(format!(
            "session {} has {} model calls, and no call {number}",
            id.short(),
            calls.len()
        )));
    };
    Ok((
        id,
        messages.from.map_or_else(
            || CallReport::new(call.clone()),
            |first| CallReport::from(call.clone(), first),
        ),
    ))
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

fn without_session(id: SessionId) -> Fault {
    Fault::NotFound(format!(
        "there is no session {id}: its alert may be queued, be covered by another session, or be deleted"
    ))
}
