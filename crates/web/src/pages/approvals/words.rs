//! The words of states and decisions.

use tarsy_core::approvals::Choice;
use tarsy_reports::{ApprovalRow, RequestState};

/// A state as a page shows it.
pub(super) struct Shown {
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) words: String,
}

/// The state of a request. What the session made of a decision says more than the decision.
pub(super) fn state(row: &ApprovalRow) -> Shown {
    let word = row.closed_as.as_deref().or(row.outcome.as_deref());
    let (class, sign, words) = match (row.state, word) {
        (RequestState::Open, _) => ("waiting", "?", "waits for a person"),
        (RequestState::Expired, _) | (_, Some("expired")) => ("other", "–", "expired"),
        (RequestState::Ended, None) => ("other", "–", "the investigation has ended before"),
        (_, Some("approved")) => ("completed", "✓", "approved"),
        (_, Some("denied")) => ("cancelled", "✕", "denied"),
        (_, Some("denied_session")) => (
            "cancelled",
            "✕",
            "denied for every call of the tool in this investigation",
        ),
        (_, Some("withdrawn")) => ("other", "–", "withdrawn: the alert was resolved"),
        (_, Some("lapsed")) => ("other", "–", "approved too long ago, not sent"),
        (_, Some("tool_changed")) => ("other", "–", "not sent: the tool has changed"),
        (_, Some("lost")) => (
            "other",
            "–",
            "its end was lost; the call may have been sent",
        ),
        (_, Some("frozen")) => ("other", "–", "not sent: all changes were frozen"),
        (RequestState::Decided | RequestState::Closed | RequestState::Ended, _) => {
            return Shown {
                class: "other",
                sign: "–",
                words: crate::shell::words::plain(word.unwrap_or("closed")),
            };
        }
    };
    Shown {
        class,
        sign,
        words: words.to_owned(),
    }
}

/// A decision of a person, as the words after their name.
pub(super) fn decision(word: &str) -> String {
    let choice = Choice::ALL
        .into_iter()
        .find(|choice| choice.as_str() == word);
    match choice {
        Some(Choice::Approve) => "approved this call".to_owned(),
        Some(Choice::Deny) => "denied this call".to_owned(),
        Some(Choice::DenySession) => {
            "denied every call of this tool in this investigation".to_owned()
        }
        None => crate::shell::words::plain(word),
    }
}
