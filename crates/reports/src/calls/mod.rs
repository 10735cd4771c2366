//! The model calls of a session, with their requests made again from the journal.
//!
//! The store reads a [`RebuiltCall`]; a [`CallReport`] shows it to people and programs. A provider's own form of an
//! answer is opaque, so its size stands in its place.

mod report;
mod words;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

pub use self::report::{
    AnswerReport, CallReport, MessageReport, OwnForm, RequestReport, RequestedCall, ToolReport,
};
pub use self::words::{call_title, message_title, own_form, purpose};
use super::ModelCallReport;
use tarsy_core::execution::entry::{Answer, Summary};
use tarsy_core::execution::request::RequestBody;
use tarsy_core::execution::state::MessageSource;

/// A model call of a session with its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberedCall {
    /// The number of the call, from 1, in the order in which the calls were stored.
    pub number: u32,
    #[serde(flatten)]
    pub call: ModelCallReport,
}

/// The number of a call in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallNumber {
    /// The call of this number, from 1.
    Number(u32),
    Last,
}

impl FromStr for CallNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(number @ 1_u32..) => Ok(Self::Number(number)),
            Ok(0) | Err(_) if text == "last" => Ok(Self::Last),
            Ok(0) | Err(_) => Err("accepted: the number of a call, from 1, or last".to_owned()),
        }
    }
}

impl fmt::Display for CallNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Last => f.write_str("last"),
        }
    }
}

/// A model call as it is stored, with its request.
#[derive(Clone, Debug, PartialEq)]
pub struct RebuiltCall {
    pub call: NumberedCall,
    /// The number of calls that the session has.
    pub calls: u32,
    /// The request, or the reason why it cannot be made again.
    pub rebuilt: Result<Rebuilt, String>,
}

/// The request of a call, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rebuilt {
    pub request: RequestBody,
    /// The entry that each message was made from; a summary has none.
    pub sources: Vec<MessageSource>,
    pub answer: Option<Answer>,
    pub summary: Option<Summary>,
}

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "the tests of this crate use the rest")
)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test fails by panicking"
)]
pub mod testing;
#[cfg(test)]
mod tests;
