//! Pages of model calls: the calls of a session, and one call with its whole request.

mod list;
mod call;
mod message;

pub(in crate::web) use self::call::call;
pub(in crate::web) use self::list::list;
