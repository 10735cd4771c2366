//! The ids of messages, which follow from what a person sent: the same form sent again is the same message.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use tarsy_core::ids::SessionId;
use tarsy_web::ports::{Decision, Freeze, FreezeChange, Judgement};

/// The id of a vote. The same form sent again is the same vote; another choice or comment is another one.
pub(super) fn vote_id(decision: &Decision) -> Uuid {
    let request = decision.request.to_string();
    let call = decision.call.to_string();
    let seen = decision.seen_updates.to_string();
    id_of(
        decision.nonce,
        &[
            "vote",
            &decision.by.name,
            &request,
            &call,
            &seen,
            decision.choice.as_str(),
            decision.comment.as_deref().unwrap_or_default(),
        ],
    )
}

/// The id of a verdict. The same words on the same page are the same verdict; on a page that shows a newer one they are
/// another verdict, which is then the newest.
pub(super) fn verdict_id(judgement: &Judgement) -> Uuid {
    let seen = judgement.seen.to_string();
    id_of(
        judgement.session,
        &[
            "verdict",
            &judgement.by.name,
            &seen,
            judgement.verdict,
            judgement.cause.as_deref().unwrap_or_default(),
            judgement.action.as_deref().unwrap_or_default(),
        ],
    )
}

pub(super) fn freeze_id(freeze: &Freeze) -> Uuid {
    let (word, hours, reason) = match &freeze.change {
        FreezeChange::Begin { hours, reason } => (
            "begin",
            hours.map(|hours| hours.to_string()),
            reason.clone(),
        ),
        FreezeChange::End => ("end", None, None),
    };
    id_of(
        freeze.nonce,
        &[
            "freeze",
            &freeze.by.name,
            word,
            &hours.unwrap_or_default(),
            &reason.unwrap_or_default(),
        ],
    )
}

/// A hash of these parts as an id, each with its length before it.
fn id_of(nonce: SessionId, parts: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(nonce.0.as_bytes());
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(digest) {
        *to = from;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
