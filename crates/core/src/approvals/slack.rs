//! `SlackButton`, the identity of a request and its call within the buttons of a Slack message, and the way back.
//!
//! Slack returns what a message contains, so a button names everything that a decision needs: the request in the id of
//! its block, the whole hash of the call and the alert's last update in its value.

use super::{CallHash, Choice, RequestId};
use crate::ids::SessionId;

/// The beginning of the id of a block with buttons.
const BLOCK: &str = "tarsy";
/// The beginning of the id of the block with the comment.
const COMMENT_BLOCK: &str = "tarsy-comment";
/// The id of the input of a comment, within its block.
pub const COMMENT_ACTION: &str = "comment";

/// A request with the call that its message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlackButton {
    pub request: RequestId,
    pub call: CallHash,
    /// The number of the last update of the alert that the message shows.
    pub updates: u32,
}

impl SlackButton {
    /// The button of a block and a value; `None` for a block or a value that is none of ours.
    pub fn parse(block_id: &str, value: &str) -> Option<Self> {
        let call = value.split_once('.');
        let request = parse_block(block_id)?;
        let (call, updates) = call?;
        Some(Self {
            request,
            call: CallHash::parse(call)?,
            updates: number(updates)?,
        })
    }

    /// The value of every button: the hash of the call, and the number of the update.
    pub fn value(&self) -> String {
        format!("{}.{}", self.call, self.updates)
    }

    /// The id of the block with the buttons.
    pub fn block_id(&self) -> String {
        block_id(BLOCK, self.request)
    }

    /// The id of the block with the comment.
    pub fn comment_block_id(&self) -> String {
        block_id(COMMENT_BLOCK, self.request)
    }
}

/// The id of the action of a choice, which a button has within its block.
pub fn action_id(choice: Choice) -> &'static str {
    match choice {
        Choice::Approve => "tarsy_approve",
        Choice::Deny => "tarsy_deny",
        Choice::DenySession => "tarsy_deny_session",
    }
}

/// The choice of an action.
pub fn choice(id: &str) -> Option<Choice> {
    Choice::ALL
        .into_iter()
        .find(|choice| action_id(*choice) == id)
}

fn block_id(kind: &str, request: RequestId) -> String {
    format!("{kind}:{}:{}", request.session, request.event)
}

fn parse_block(block_id: &str) -> Option<RequestId> {
    let mut parts = block_id.split(':');
    let is_ours = parts.next() == Some(BLOCK);
    let session = parts.next()?;
    let event = parts.next()?;
    if !is_ours || parts.next().is_some() {
        return None;
    }
    let session = SessionId::parse(session).filter(|parsed| parsed.to_string() == session)?;
    Some(RequestId {
        session,
        event: number(event)?,
    })
}

/// A number in digits only: `parse` accepts a sign, too.
fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_: &u32| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";

    fn button() -> SlackButton {
        SlackButton {
            request: RequestId {
                session: SessionId::parse(SESSION).unwrap(),
                event: 42,
            },
            call: CallHash([0xab; 32]),
            updates: 3,
        }
    }

    #[test]
    fn a_button_survives_its_texts_and_keeps_the_whole_hash() {
        let button = button();
        assert_eq!(button.block_id(), format!("tarsy:{SESSION}:42"));
        assert_eq!(button.value(), format!("{}.3", "ab".repeat(32)));
        let parsed = SlackButton::parse(&button.block_id(), &button.value());
        assert_eq!(parsed, Some(button));
        for each in Choice::ALL {
            assert_eq!(choice(action_id(each)), Some(each));
        }
        assert_eq!(choice("approve"), None);
    }

    #[test]
    fn other_blocks_and_values_are_none_of_ours() {
        let button = button();
        let block = button.block_id();
        let value = button.value();
        for other in [
            "".to_owned(),
            "tarsy".to_owned(),
            button.comment_block_id(),
            format!("{block}:1"),
            format!("tarsy:{SESSION}:+42"),
            format!("tarsy:{SESSION}:-1"),
            format!("tarsy:{SESSION}:4294967296"),
            format!("tarsy:{}:42", SESSION.to_uppercase()),
            "tarsy:7:42".to_owned(),
        ] {
            assert_eq!(SlackButton::parse(&other, &value), None, "{other}");
        }
        for other in [
            "",
            ".",
            "ab.3",
            &"ab".repeat(32),
            &format!("{}.", "ab".repeat(32)),
            &format!("{}.3", "ab".repeat(16)),
            &format!("{}.+3", "ab".repeat(32)),
        ] {
            assert_eq!(SlackButton::parse(&block, other), None, "{other}");
        }
    }
}
