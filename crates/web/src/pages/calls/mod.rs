//! Pages of model calls: the calls of a session, and one call with its whole request.

mod list;
mod call;
mod message;

pub(crate) use self::call::call;
pub(crate) use self::list::list;
