//! The port `RecordVerdict`: what people say about analyses, recorded by whichever worker receives it.

use uuid::Uuid;

use crate::ports::StoreError;
use tarsy_core::approvals::Channel;
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::Rating;

/// Keeps what people say about analyses.
pub trait RecordVerdict: Send + Sync + 'static {
    /// Records one verdict. Sent again, it finds its id.
    fn record_verdict(
        &self,
        verdict: NewVerdict,
    ) -> impl Future<Output = Result<VerdictRecord, StoreError>> + Send;
}

/// A verdict of a person about an analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVerdict {
    /// The same for every delivery of its message.
    pub id: Uuid,
    pub session: SessionId,
    pub person: String,
    /// The account at the channel.
    pub account: String,
    pub channel: Channel,
    pub rating: Rating,
    /// Masked and limited, as the next one.
    pub cause: Option<String>,
    pub action: Option<String>,
}

/// The outcome of recording a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerdictRecord {
    /// It is the newest one of its session; holds the session's chain.
    Recorded(String),
    /// The same verdict was recorded before.
    Repeated,
    Refused(VerdictRefusal),
}

/// The reason why a verdict is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum VerdictRefusal {
    /// The store has no such session.
    UnknownSession,
    /// The session runs, or was not investigated.
    NotEnded,
    /// The session has as many verdicts as it may have.
    TooManyVerdicts,
}

tarsy_core::words!(pub VerdictRefusal, pub ALL);
