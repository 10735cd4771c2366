//! The user of a request that changes something, or the fault that refuses the request.

use crate::fault::Fault;
use crate::rights::Access;

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
