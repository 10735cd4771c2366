//! The forms of people's messages: which are read, and what each says about its sender.

use serde::de::DeserializeOwned;

use super::rights::Claimant;
use crate::ports::{PeopleMessage, Proof};
use tarsy_core::approvals::{
    DecisionMessage, FreezeMessage, MESSAGE_FORM, RequestId, Sender, Voter,
};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::VerdictMessage;
use tarsy_core::visible::visible;
use tarsy_mask::Mask;

/// The longest name or address that is stored.
const MAX_NAME_BYTES: usize = 200;
/// The most groups of a person that a message may name.
pub const MAX_GROUPS: usize = 200;
/// The longest text of a person, in characters.
const MAX_TEXT: usize = 2_000;

/// The reason why a message is none that a person sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("its subject is none of a person's message")]
    Subject,
    #[error("its Nats-Msg-Id is no UUID")]
    Id,
    #[error("its body has not the form of version {MESSAGE_FORM}")]
    Body,
    #[error("its body names a request of another session than its subject")]
    OtherSession,
    #[error("its body does not name the person, or not in a form that can be stored")]
    Person,
}

/// A readable decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadDecision {
    pub(super) request: RequestId,
    pub(super) message: DecisionMessage,
    pub(super) claimant: Claimant,
}

pub(super) fn decision<D>(
    received: &PeopleMessage<D>,
    sender: &Sender,
    session: SessionId,
) -> Result<ReadDecision, Malformed> {
    let message: DecisionMessage = body(&received.body)?;
    let is_form = message.v == MESSAGE_FORM;
    let request: RequestId = message.request.parse().map_err(|_| Malformed::Body)?;
    if !is_form || message.from.as_ref().is_some_and(|from| !is_name(from)) {
        return Err(Malformed::Body);
    }
    if request.session != session {
        return Err(Malformed::OtherSession);
    }
    let claimant = claimant(sender, message.by.as_ref(), &received.proof)?;
    Ok(ReadDecision {
        request,
        message,
        claimant,
    })
}

/// A readable change of a freeze.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadFreeze {
    pub(super) message: FreezeMessage,
    pub(super) claimant: Claimant,
}

pub(super) fn freeze<D>(
    received: &PeopleMessage<D>,
    sender: &Sender,
) -> Result<ReadFreeze, Malformed> {
    let message: FreezeMessage = body(&received.body)?;
    if message.v != MESSAGE_FORM {
        return Err(Malformed::Body);
    }
    let claimant = claimant(sender, message.by.as_ref(), &received.proof)?;
    Ok(ReadFreeze { message, claimant })
}

pub(super) fn verdict<D>(
    received: &PeopleMessage<D>,
    sender: &Sender,
) -> Result<(VerdictMessage, Claimant), Malformed> {
    let message: VerdictMessage = body(&received.body)?;
    if message.v != MESSAGE_FORM {
        return Err(Malformed::Body);
    }
    let claimant = claimant(sender, message.by.as_ref(), &received.proof)?;
    Ok((message, claimant))
}

/// A text of a person as it is stored: visible, masked, and not longer than a comment may be.
pub(super) fn text(mask: &Mask, text: Option<&str>) -> Option<String> {
    let visible = visible(text?);
    // Masked before it is cut: half of a secret is found by no mask.
    let masked = mask.apply(visible.trim());
    let cut: String = masked.chars().take(MAX_TEXT).collect();
    (!cut.is_empty()).then_some(cut)
}

fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(bytes).map_err(|_| Malformed::Body)
}

/// The sender as the subject and the body name them. Groups are taken from the web server only: its proxy or token has
/// them, while the other channels know an account.
fn claimant(sender: &Sender, by: Option<&Voter>, proof: &Proof) -> Result<Claimant, Malformed> {
    let named = by.map(|by| by.name.clone());
    let (account, groups) = match sender {
        Sender::Cli(user) => (Some(user.clone()), Vec::new()),
        Sender::Web => (named, by.map(|by| by.groups.clone()).unwrap_or_default()),
        Sender::Slack | Sender::Link | Sender::Drill => (named, Vec::new()),
    };
    let account = account.filter(|account| is_name(account));
    if groups.len() > MAX_GROUPS || !groups.iter().all(|group| is_name(group)) {
        return Err(Malformed::Person);
    }
    Ok(Claimant {
        channel: sender.channel(),
        account: account.ok_or(Malformed::Person)?,
        groups,
        proof: proof.clone(),
    })
}

/// Whether a name, a group or an address can be recorded. A message with another one is refused as malformed.
pub fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= MAX_NAME_BYTES
        && visible(text) == text
        && !text.contains('\n')
}
