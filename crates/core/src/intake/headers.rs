//! The headers of an alert: their names, and the session id that a producer may choose with one of them.

use serde_json::Value;

use crate::ids::SessionId;

/// The session id that the producer chose: a `UUIDv7`.
pub const SESSION_ID: &str = "Tarsy-Session-Id";
/// The alert type, which selects the chain.
pub const ALERT_TYPE: &str = "Tarsy-Alert-Type";
/// The fingerprint: two alerts with the same one are the same problem.
pub const FINGERPRINT: &str = "Tarsy-Fingerprint";
/// The URL of a runbook for the alert.
pub const RUNBOOK_URL: &str = "Tarsy-Runbook-Url";
/// `true` opens another session although one of the fingerprint has completed within the cooldown.
pub const FORCE: &str = "Tarsy-Force";
/// The chain to use, whatever the alert type.
pub const CHAIN: &str = "Tarsy-Chain";
/// Patterns of tools, separated by commas: of the tools that the chain offers, the investigation has only these.
pub const TOOLS: &str = "Tarsy-Tools";
/// The alert's name and its object, for people.
pub const TITLE: &str = "Tarsy-Title";
/// The header of a rerun that names the session which it repeats.
pub const RETRY_OF: &str = "Tarsy-Retry-Of";
/// The header of a follow-up question that names the session it is about; it counts only on a subject of questions. The
/// body is the question.
pub const PARENT_ID: &str = "Tarsy-Parent-Id";
/// The header of a follow-up question or a cancel request that names the person who sends it, as a login has it. The
/// name is only shown.
pub const ASKED_BY: &str = "Tarsy-Asked-By";
/// The header of a question from a chat that names the thread it was asked in, `<channel>/<thread_ts>`. It stands for
/// [`PARENT_ID`], and counts only on the subjects on which the receiver of Slack publishes.
pub const THREAD: &str = "Tarsy-Thread";
/// The name of the source of the alert, which the receiver knows from the path of a request. Its body is read as one of
/// that source.
pub const SOURCE: &str = "Tarsy-Source";
/// The index (from 0) of this message's alert in a body with several. Without it a worker publishes a message for
/// each.
pub const PART: &str = "Tarsy-Part";
/// The tenant of a sender that serves several: equal keys of two tenants are two problems.
pub const TENANT: &str = "Tarsy-Tenant";
/// The character set of the body, as in HTTP.
pub const CONTENT_TYPE: &str = "Content-Type";
/// The compression of the body, as in HTTP.
pub const CONTENT_ENCODING: &str = "Content-Encoding";
/// The parts that the body lacks because it was too large, as JSON. The receiver and commands set it.
pub const LEFT_OUT: &str = "Tarsy-Left-Out";
/// W3C trace context.
pub const TRACEPARENT: &str = "traceparent";

/// The headers that are read from an alert, stored with it and copied when it is queued again. All others are dropped.
pub const ALLOWED: [&str; 19] = [
    SESSION_ID,
    ALERT_TYPE,
    FINGERPRINT,
    RUNBOOK_URL,
    FORCE,
    CHAIN,
    TOOLS,
    TITLE,
    RETRY_OF,
    PARENT_ID,
    ASKED_BY,
    THREAD,
    SOURCE,
    PART,
    TENANT,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    LEFT_OUT,
    TRACEPARENT,
];

/// Whether the value of a header such as [`FORCE`] says yes.
pub fn is_yes(word: &str) -> bool {
    let word = word.trim();
    word == "1" || word.eq_ignore_ascii_case("true")
}

const MAX_SHOWN_CHARS: usize = 100;

/// A [`SESSION_ID`] header without a `UUIDv7`; holds its first 100 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{SESSION_ID} holds no UUIDv7: {0}")]
pub struct InvalidSessionId(String);

/// The session id that the producer chose; `None` if there is no [`SESSION_ID`] header.
///
/// # Errors
/// When the header holds no `UUIDv7`.
pub fn chosen_session_id(headers: &Value) -> Result<Option<SessionId>, InvalidSessionId> {
    let Some(text) = headers.get(SESSION_ID).and_then(Value::as_str) else {
        return Ok(None);
    };
    SessionId::parse(text)
        .map(Some)
        .ok_or_else(|| InvalidSessionId(text.chars().take(MAX_SHOWN_CHARS).collect()))
}
