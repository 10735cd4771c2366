//! The notification that the tests of each provider write.

use chrono::{TimeDelta, TimeZone as _, Utc};

use super::summary::{Outcome, Seen, Summary};
use super::{Moment, Notification, NotificationKey, ParsedWord, slack, teams, webhook};
use crate::alert::Severity;
use crate::alert::refs::Refs;
use crate::execution::entry::Mark;
use crate::ids::SessionId;

pub(super) const ANALYSIS: &str = "Cause: the heap limit leaves no room [5]\nSure: likely, the exit code fits\nEvidence:\n- exit 137 [5]\n- limit 512Mi \
     [7]\nDo next: `kubectl set resources deploy/a_b --limits=memory=1Gi` then wait\nNot seen: the heap dump";

pub(super) fn summary() -> Summary {
    let began_at = Utc.with_ymd_and_hms(2026, 11, 23, 12, 0, 0).unwrap();
    Summary {
        title: "KubePodOOMKilled checkout".to_owned(),
        severity: Some(Severity::Critical),
        chain: Some("kubernetes".to_owned()),
        outcome: Some(Outcome::Completed),
        analysis: Some(ANALYSIS.to_owned()),
        mark: None,
        review: None,
        error: None,
        refs: Refs::default(),
        began_at: Some(began_at),
        ended_at: Some(began_at + TimeDelta::milliseconds(6_100)),
        seen_before: None,
        request: None,
    }
}

pub(super) fn notification() -> Notification {
    let session = SessionId::parse("019a2b3c-0000-7000-8000-000000000001").unwrap();
    Notification {
        key: NotificationKey {
            session,
            route: "on-call".to_owned(),
            moment: Moment::Ended,
            request: None,
        },
        about: session,
        summary: summary(),
        url: Some(format!("https://tarsy.example.com/sessions/{session}")),
        template: None,
        may_repeat: false,
        stays_in_thread: false,
    }
}

/// A notification whose texts try to be markup, and are too long.
pub(super) fn hostile() -> Notification {
    let hostile = "<!channel> <@U1> <https://evil.example|x> **b** [x](https://evil.example) <at>all</at> \u{202e}& ";
    let summary = Summary {
        title: hostile.repeat(100),
        analysis: Some(format!("Cause: {}", hostile.repeat(1_000))),
        chain: Some(hostile.repeat(10)),
        ..summary()
    };
    Notification {
        summary,
        ..notification()
    }
}

#[test]
fn the_idempotency_key_depends_on_session_route_and_moment_alone() {
    let key = notification().key;
    let other = NotificationKey {
        moment: Moment::Started,
        ..key.clone()
    };
    assert_eq!(key.id(), notification().key.id());
    let id = key.id();
    let third = NotificationKey {
        route: "other".to_owned(),
        ..key
    };
    assert!(id != other.id() && id != third.id());
}

#[test]
fn the_stored_word_of_a_request_names_it_and_each_request_has_an_id_of_its_own() {
    let of = |moment: Moment, request: Option<u32>| NotificationKey {
        moment,
        request,
        ..notification().key
    };
    for (key, word) in [
        (of(Moment::Ended, None), "ended"),
        (of(Moment::Approval, Some(42)), "approval-42"),
        (of(Moment::Decided, Some(42)), "decided-42"),
    ] {
        assert_eq!(key.word(), word);
        let parsed = ParsedWord {
            moment: key.moment,
            request: key.request,
        };
        assert_eq!(NotificationKey::parse_word(word), Some(parsed));
    }
    for word in ["", "approved-42", "approval-", "approval-x", "approval--1"] {
        assert_eq!(NotificationKey::parse_word(word), None, "{word}");
    }
    let one = of(Moment::Approval, Some(42)).id();
    assert_ne!(one, of(Moment::Approval, Some(43)).id());
    assert_ne!(one, of(Moment::Decided, Some(42)).id());
}

#[test]
fn each_message_about_a_repeated_alert_says_how_often_it_was_seen() {
    let summary = Summary {
        seen_before: Some(Seen { times: 3, days: 30 }),
        ..summary()
    };
    let repeated = Notification {
        summary,
        ..notification()
    };
    for body in [
        slack::message(&repeated),
        teams::message(&repeated),
        webhook::message(&repeated),
    ] {
        let text = body.to_string();
        assert!(text.contains(", 4th time in 30 days"), "{text}");
    }
    let seen = &webhook::message(&repeated)["seen_before"];
    assert_eq!(*seen, serde_json::json!({"times": 3, "days": 30}));
}

#[test]
fn each_message_about_an_analysis_has_the_sentence_of_its_mark() {
    for mark in Mark::ALL {
        let marked = Notification {
            summary: Summary {
                mark: Some(mark),
                ..summary()
            },
            ..notification()
        };
        let messages = [
            slack::message(&marked),
            teams::message(&marked),
            webhook::message(&marked),
        ];
        assert!(
            messages
                .iter()
                .all(|message| message.to_string().contains(mark.sentence())),
            "{messages:#?}"
        );
        assert!(
            messages
                .iter()
                .take(2)
                .all(|message: &serde_json::Value| message.to_string().contains('⚠')),
            "a marked analysis is no success"
        );
    }
}
