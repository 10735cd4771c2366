//! Reads: what a resumed run needs, what the publisher sends, what people look at.

pub(crate) mod record;
pub(crate) mod history;
pub(crate) mod thread;
pub(crate) mod list;
pub(crate) mod resolve;
pub(crate) mod report;
