//! Checks what a user sends before it is queued, from a form or the API: the right of the user, and the size and the
//! request id of an alert.

use axum::body::{Body, Bytes, to_bytes};
use uuid::Uuid;

use crate::fault::Fault;
use crate::ports::Backend;
use crate::rights::Access;
use crate::state::Shared;
use tarsy_core::approvals::Voter;
use tarsy_core::ids::SessionId;

/// The factor by which form encoding may enlarge an alert: one byte takes three characters.
const FORM_FACTOR: usize = 3;
/// The limit of the other fields of a form, in bytes.
const FIELDS_BYTES: usize = 16 * 1024;
/// No request is larger, however large an alert may be.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The user, if the user may ask questions. For others the routes do not exist.
pub(super) fn asker(access: &Access) -> Result<String, Fault> {
    let user = access.may_ask.then(|| access.user.clone()).flatten();
    user.ok_or_else(Fault::no_such_address)
}

/// The user, if the user may cancel sessions. For others the routes do not exist.
pub(super) fn canceller(access: &Access) -> Result<String, Fault> {
    let user = access.may_cancel.then(|| access.user.clone()).flatten();
    user.ok_or_else(Fault::no_such_address)
}

/// The user, if the user may judge analyses. For others the route does not exist.
pub(super) fn judge(access: &Access) -> Result<Voter, Fault> {
    let person = access.may_judge.then(|| access.person()).flatten();
    person.ok_or_else(Fault::no_such_address)
}

/// The user, if the user may submit alerts.
pub(super) fn submitter(access: &Access) -> Result<String, Fault> {
    const FORBIDDEN: &str =
        "this user may not submit alerts: web.allow.submit in tarsy.yaml lists the groups that may";
    let user = access.may_submit.then(|| access.user.clone()).flatten();
    user.ok_or(Fault::Forbidden(FORBIDDEN))
}

/// The user, if the user may have alerts investigated again.
pub(super) fn rerunner(access: &Access) -> Result<String, Fault> {
    const FORBIDDEN: &str = "this user may not rerun investigations: web.allow.rerun in tarsy.yaml lists the groups that may";
    let user = access.may_rerun.then(|| access.user.clone()).flatten();
    user.ok_or(Fault::Forbidden(FORBIDDEN))
}

/// The whole body of a request that may have an alert. It is read after the user is known to have the right.
pub(super) async fn body<B: Backend>(web: &Shared<B>, body: Body) -> Result<Bytes, Fault> {
    let limit = web
        .backend
        .max_alert_bytes()
        .saturating_mul(FORM_FACTOR)
        .saturating_add(FIELDS_BYTES);
    let limit = limit.min(MAX_BODY_BYTES);
    to_bytes(body, limit).await.map_err(|_| {
        Fault::Invalid(format!(
            "the request is not complete, or has more than {limit} bytes"
        ))
    })
}

/// The id of a request, without which it counts as another one each time.
pub(super) fn request_id(sent: Option<&str>) -> Result<SessionId, Fault> {
    match sent.filter(|sent| !sent.is_empty()) {
        None => Ok(new_request()),
        Some(sent) => SessionId::parse(sent).ok_or_else(|| {
            Fault::Invalid(
                "request_id is not a UUID of version 7; without it, one is chosen".to_owned(),
            )
        }),
    }
}

/// The id of a new form.
pub(super) fn new_request() -> SessionId {
    SessionId(Uuid::now_v7())
}
