//! The pages for people: pure functions from data to markup, and the handlers that read the data.
//!
//! `list`, `session`, `steps`, `event`, `calls`, `search`, `system`, `queue`, `submit`, `approvals` and `dialogs` are
//! the contents of pages, in the frame that `shell` makes. `handlers` has the routes. A page works without the script,
//! which adds live rows, copy and keys.

pub(super) mod list;
pub(super) mod steps;
pub(super) mod session;
pub(super) mod event;
pub(super) mod calls;
pub(super) mod search;
pub(super) mod queue;
pub(super) mod system;
pub(super) mod submit;
pub(super) mod approvals;
pub(super) mod dialogs;
pub(super) mod live;
pub(super) mod handlers;
#[cfg(test)]
mod tests;

pub(super) use self::handlers::routes;
