//! The buttons by which a person judges an analysis under its message in Slack, and the way back.
//!
//! Slack returns the id of the block and that of the button: the session and the rating.

use super::Rating;
use crate::ids::SessionId;

/// The beginning of the id of the block with the buttons.
const BLOCK: &str = "tarsy-verdict:";
/// The beginning of the id of the block with the real cause.
const CAUSE_BLOCK: &str = "tarsy-cause:";
/// The id of the input of the real cause, within its block.
pub const CAUSE_ACTION: &str = "cause";

/// The id of the block with the buttons of a session.
pub fn block_id(session: SessionId) -> String {
    format!("{BLOCK}{session}")
}

/// The id of the block with the real cause.
pub fn cause_block_id(session: SessionId) -> String {
    format!("{CAUSE_BLOCK}{session}")
}

/// The session of a block with buttons; `None` for a block that is none of these.
pub fn session(block_id: &str) -> Option<SessionId> {
    let text = block_id.strip_prefix(BLOCK)?;
    SessionId::parse(text).filter(|parsed| parsed.to_string() == text)
}

/// The id of the button of a rating, within its block.
pub fn action_id(rating: Rating) -> &'static str {
    match rating {
        Rating::Right => "tarsy_right",
        Rating::Partly => "tarsy_partly",
        Rating::Wrong => "tarsy_wrong",
    }
}

/// The rating of a button.
pub fn rating(action_id: &str) -> Option<Rating> {
    Rating::ALL
        .into_iter()
        .find(|rating| self::action_id(*rating) == action_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";

    #[test]
    fn what_slack_returns_names_the_session_and_the_rating() {
        let id = SessionId::parse(SESSION).unwrap();
        assert_eq!(session(&block_id(id)), Some(id));
        for other in [
            "",
            SESSION,
            "tarsy-verdict:",
            "tarsy-verdict:7",
            &cause_block_id(id),
            &block_id(id).to_uppercase(),
            &format!("{}:1", block_id(id)),
            &format!("tarsy:{SESSION}:42"),
        ] {
            assert_eq!(session(other), None, "{other}");
        }
        for each in Rating::ALL {
            assert_eq!(rating(action_id(each)), Some(each));
        }
        assert_eq!(rating("tarsy_approve"), None);
    }
}
