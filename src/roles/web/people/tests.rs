//! Tests of the ids of messages, of the person that they name, and of the record of a freeze.

use tarsy_bus::ChannelKeys;
use tarsy_config::{ApprovalPolicy, Approvals};
use tarsy_core::approvals::CallHash;
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use super::record::is_frozen_by;
use super::*;

fn decision() -> Decision {
    Decision {
        request: RequestId {
            session: SessionId(Uuid::from_u128(1)),
            event: 7,
        },
        nonce: SessionId(Uuid::from_u128(2)),
        call: CallHash([3; 32]),
        seen_updates: 1,
        choice: Choice::Approve,
        comment: None,
        by: Voter {
            name: "ana".to_owned(),
            groups: Vec::new(),
        },
        from: None,
    }
}

#[test]
fn a_form_that_is_sent_again_is_one_vote_and_another_decision_is_another() {
    let first = vote_id(&decision());
    assert_eq!(vote_id(&decision()), first);
    let other_person = Voter {
        name: "bob".to_owned(),
        groups: Vec::new(),
    };
    for other in [
        Decision {
            choice: Choice::Deny,
            ..decision()
        },
        Decision {
            comment: Some("no".to_owned()),
            ..decision()
        },
        Decision {
            by: other_person,
            ..decision()
        },
        Decision {
            seen_updates: 2,
            ..decision()
        },
        Decision {
            nonce: SessionId(Uuid::from_u128(4)),
            ..decision()
        },
    ] {
        assert_ne!(vote_id(&other), first, "{other:?}");
    }
}

fn judgement(seen: u32) -> Judgement {
    Judgement {
        session: SessionId(Uuid::from_u128(1)),
        seen,
        verdict: "wrong",
        cause: None,
        action: None,
        by: decision().by,
        from: None,
    }
}

#[test]
fn the_same_verdict_on_a_page_that_shows_a_newer_one_is_another_verdict() {
    let first = verdict_id(&judgement(0));
    assert_eq!(verdict_id(&judgement(0)), first);
    assert_ne!(verdict_id(&judgement(1)), first);
}

#[test]
fn a_message_names_only_groups_of_approvers_and_no_name_that_is_not_shown() {
    let policy = ApprovalPolicy {
        approvers: vec!["sre".to_owned()],
        ..ApprovalPolicy::default()
    };
    let approvals = Approvals {
        policies: [("default".to_owned(), policy)].into(),
        ..Approvals::default()
    };
    let deciders = Deciders::new(approvals, ChannelKeys::default());
    let mut person = Voter {
        name: "ana".to_owned(),
        groups: (0..250).map(|number| format!("g{number}")).collect(),
    };
    person.groups.push("sre".to_owned());
    assert_eq!(deciders.named(&person).unwrap().groups, ["sre"]);
    person.name = "ana\u{202e}".to_owned();
    assert!(matches!(deciders.named(&person), Err(Refusal::Invalid(_))));
}

#[test]
fn another_freeze_that_lasts_is_not_the_record_of_this_one() {
    let freeze = FreezeReport {
        freeze_id: Uuid::from_u128(1),
        at: Utc::now(),
        person: "bob".to_owned(),
        reason: None,
        until: None,
        ended_at: None,
        ended_by: None,
    };
    let freezes = [freeze];
    assert!(is_frozen_by(&freezes, Uuid::from_u128(1)));
    assert!(!is_frozen_by(&freezes, Uuid::from_u128(2)));
}
