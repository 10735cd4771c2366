//! What the model saw: the model calls of a session, and one of them with its whole request.

mod list;
mod call;
mod message;

pub(crate) use self::call::call;
pub(crate) use self::list::list;
