//! Publishes what people decide, for `tarsy approvals` and other places: the messages of a decision, of a freeze and of
//! a verdict.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use tarsy_bus::NewPeopleMessage;
use tarsy_core::approvals::{
    CallHash, Choice, DecisionMessage, FreezeMessage, FreezeWord, MESSAGE_FORM, PeopleSubject,
    RequestId, Sender, Topic, Voter,
};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::{Rating, VerdictMessage};

/// A decision of a person about the call that they saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The id of the vote: the same for a repeated click.
    pub id: Uuid,
    pub sender: Sender,
    pub request: RequestId,
    pub seen: Seen,
    pub choice: Choice,
    pub comment: Option<String>,
    /// The person, where the subject does not name them.
    pub by: Option<Voter>,
    /// The address from which the channel saw the person.
    pub from: Option<String>,
}

/// The state of a request that a person saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub call: CallHash,
    /// The number of the last update of the alert.
    pub updates: u32,
}

/// The message of a decision.
pub fn message(decision: Decision) -> NewPeopleMessage {
    let body = DecisionMessage {
        v: MESSAGE_FORM,
        request: decision.request.to_string(),
        call: decision.seen.call,
        seen_updates: decision.seen.updates,
        verdict: decision.choice,
        comment: decision.comment,
        by: decision.by,
        from: decision.from,
        response_url: None,
    };
    NewPeopleMessage {
        subject: PeopleSubject {
            topic: Topic::Decision(decision.request.session),
            sender: decision.sender,
        },
        id: decision.id,
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

/// The begin or the end of a freeze of all changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    pub sender: Sender,
    pub change: FreezeWord,
    pub until: Option<DateTime<Utc>>,
    pub reason: Option<String>,
    /// The person, where the subject does not name them.
    pub by: Option<Voter>,
}

/// The message of a freeze, with a new id.
pub fn freeze(freeze: Freeze) -> NewPeopleMessage {
    let body = FreezeMessage {
        v: MESSAGE_FORM,
        freeze: freeze.change,
        until: freeze.until,
        reason: freeze.reason,
        by: freeze.by,
        from: None,
    };
    NewPeopleMessage {
        subject: PeopleSubject {
            topic: Topic::Freeze,
            sender: freeze.sender,
        },
        id: Uuid::new_v4(),
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

/// A verdict of a person about the analysis of a session, at a channel whose subject names the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The id of the verdict: the same when it is sent again.
    pub id: Uuid,
    pub sender: Sender,
    pub session: SessionId,
    pub rating: Rating,
    /// The real cause.
    pub cause: Option<String>,
    /// The words about what the person did.
    pub action: Option<String>,
}

/// The message of a verdict.
pub fn verdict(judgement: Judgement) -> NewPeopleMessage {
    let body = VerdictMessage {
        v: MESSAGE_FORM,
        verdict: judgement.rating,
        cause: judgement.cause,
        action: judgement.action,
        by: None,
        from: None,
        response_url: None,
    };
    NewPeopleMessage {
        subject: PeopleSubject {
            topic: Topic::Verdict(judgement.session),
            sender: judgement.sender,
        },
        id: judgement.id,
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";

    #[test]
    fn a_decision_has_the_form_that_other_programs_send() {
        let decision = Decision {
            id: Uuid::nil(),
            sender: Sender::cli("ana").unwrap(),
            request: RequestId {
                session: SessionId::parse(SESSION).unwrap(),
                event: 42,
            },
            seen: Seen {
                call: CallHash([0xab; 32]),
                updates: 3,
            },
            choice: Choice::DenySession,
            comment: Some("no".to_owned()),
            by: None,
            from: None,
        };
        let message = message(decision);
        assert_eq!(
            message.subject.to_string(),
            format!("tarsy.decisions.cli.ana.{SESSION}")
        );
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        let expected = json!({"v": 1, "request": format!("{SESSION}/42"), "call": "ab".repeat(32), "seen_updates": 3,
            "verdict": "deny_session", "comment": "no"});
        assert_eq!(body, expected);
    }

    #[test]
    fn a_freeze_has_a_subject_without_a_session() {
        let message = freeze(Freeze {
            sender: Sender::cli("ana").unwrap(),
            change: FreezeWord::Begin,
            until: None,
            reason: Some("release".to_owned()),
            by: None,
        });
        assert_eq!(
            message.subject.to_string(),
            "tarsy.decisions.cli.ana.freeze"
        );
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(
            body,
            json!({"v": 1, "freeze": "begin", "reason": "release"})
        );
    }

    #[test]
    fn a_verdict_names_the_person_in_its_subject() {
        let message = verdict(Judgement {
            id: Uuid::nil(),
            sender: Sender::cli("ana").unwrap(),
            session: SessionId::parse(SESSION).unwrap(),
            rating: Rating::Wrong,
            cause: Some("the leak of 4.2".to_owned()),
            action: None,
        });
        assert_eq!(
            message.subject.to_string(),
            format!("tarsy.verdicts.cli.ana.{SESSION}")
        );
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(
            body,
            json!({"v": 1, "verdict": "wrong", "cause": "the leak of 4.2"})
        );
    }
}
