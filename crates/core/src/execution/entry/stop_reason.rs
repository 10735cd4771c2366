//! The reason why an execution or a session stops.

use serde::{Deserialize, Serialize};

/// The reason why an execution or a session stops; also the `stop_reason` of the session's last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StopReason {
    /// The model gave its final answer.
    FinalAnswer,
    /// The iterations are used up.
    MaxIterations,
    /// Too many consecutive time-outs.
    Timeouts,
    /// A model call failed that is not retried.
    Error,
    /// The model repeated the same calls too often.
    RepeatedCalls,
    /// The token or cost budget is used up.
    Budget,
    /// The conversation no longer fits into the model's context window.
    ContextWindow,
    /// A synthesis failed; the analyses that it should have combined replace it.
    SynthesisFailed,
    /// The session's deadline has passed.
    Deadline,
    /// A cancel request.
    Cancelled,
    /// Too many workers crashed at the same step.
    AttemptsExhausted,
    /// The alert asks for no investigation: it is resolved, acknowledged, a test or ignored.
    NotInvestigated,
    /// The alert was resolved during the investigation, and operators want a conclusion then.
    AlertResolved,
    /// Too many answers in a row were cut off.
    CutAnswers,
    /// The time of the session is used up but for the part that is kept for a conclusion.
    TimeBudget,
    /// A call waited for a person until its request expired, and its policy wants a conclusion then.
    ApprovalExpired,
}

crate::words!(pub StopReason);
