//! What the model saw: the model calls of a session, and one of them with its whole request.

mod list;
mod call;
mod message;

pub(in crate::web) use self::call::call;
pub(in crate::web) use self::list::list;
