//! Reading `JetStream` streams: replies to pull requests, messages in order, and single messages.

pub(crate) mod pull;
pub(crate) mod reader;
pub(crate) mod get;
