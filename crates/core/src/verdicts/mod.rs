//! Verdicts of people about analyses: whether one was right, the real cause, and what the person did. Each is an answer
//! to a question of its own.
//!
//! A verdict is no event of the timeline: the end of a session stays its last one. It changes no analysis. A session
//! whose newest verdict is `wrong` covers no later alert; a model that sees its analysis sees the verdict beside it.

mod message;
pub mod slack;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use message::VerdictMessage;

/// The number of verdicts that a session may have.
pub const MAX_VERDICTS: u32 = 20;
/// The longest text of a person, in characters.
pub const MAX_TEXT_CHARS: usize = 2_000;

/// The rating of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Rating {
    /// The analysis names the cause.
    Right,
    /// A part of the analysis is right, or it names a part of the cause.
    Partly,
    /// The cause was another one.
    Wrong,
}

crate::words!(pub Rating, pub ALL);

/// A verdict, as its readers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PersonVerdict {
    pub at: DateTime<Utc>,
    /// The name in `approvals.people`, else `<channel>:<account>`.
    pub person: String,
    /// The word of the channel.
    pub channel: String,
    #[serde(rename = "verdict")]
    pub rating: Rating,
    /// The real cause, in the words of the person.
    pub cause: Option<String>,
    /// The words of the person about what they did.
    pub action: Option<String>,
}

impl PersonVerdict {
    /// `judged wrong by ana`.
    pub fn in_words(&self) -> String {
        format!("judged {} by {}", self.rating.as_str(), self.person)
    }
}
