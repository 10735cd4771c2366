//! Tests of the sender with a fake outbox and a fake provider, in paused time.

use parking_lot::Mutex;
use std::collections::VecDeque;

use chrono::{TimeZone as _, Utc};
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::*;
use crate::ports::{Backlog, StoreError};
use tarsy_core::ids::SessionId;
use tarsy_core::notification::NotificationKey;
use tarsy_core::notification::summary::{Outcome, Summary};

/// An outbox that returns these rows, one at a time.
#[derive(Debug, Default)]
struct FakeOutbox {
    due: Mutex<VecDeque<DueNotification>>,
    claims: Mutex<Vec<Instant>>,
    recorded: Mutex<Vec<NotificationResult>>,
    changed: Arc<Notify>,
}

impl Notifications for FakeOutbox {
    async fn claim_notifications(
        &self,
        _: NotificationClaim,
    ) -> Result<Vec<DueNotification>, StoreError> {
        self.claims.lock().push(Instant::now());
        Ok(self.due.lock().pop_front().into_iter().collect())
    }

    async fn record_notification(
        &self,
        _: NotificationKey,
        _: Uuid,
        result: NotificationResult,
    ) -> Result<(), StoreError> {
        self.recorded.lock().push(result);
        Ok(())
    }

    async fn notification_backlog(
        &self,
        _: Vec<String>,
        _: Duration,
    ) -> Result<Backlog, StoreError> {
        Ok(Backlog::default())
    }

    fn notifications_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }
}

/// A provider with this answer, which remembers whether a message may be a repetition.
#[derive(Debug)]
struct FakeProvider {
    answer: ProviderAnswer,
    repeats: Mutex<Vec<bool>>,
}

impl Notifier for FakeProvider {
    async fn send(&self, message: Notification, _: Option<String>) -> ProviderAnswer {
        self.repeats.lock().push(message.may_repeat);
        self.answer.clone()
    }
}

fn due() -> DueNotification {
    let began_at = Utc.timestamp_opt(1_790_000_000, 0).single();
    DueNotification {
        key: NotificationKey {
            session: SessionId(Uuid::nil()),
            route: "on-call".to_owned(),
            moment: Moment::Ended,
            request: None,
        },
        lease: Uuid::nil(),
        attempts: 1,
        in_doubt: false,
        waited: Duration::ZERO,
        thread: None,
        asked_in: None,
        about: SessionId(Uuid::nil()),
        summary: Summary {
            outcome: Some(Outcome::Completed),
            began_at,
            ended_at: began_at,
            ..Summary::default()
        },
    }
}

struct Scenario {
    outbox: Arc<FakeOutbox>,
    provider: Arc<FakeProvider>,
}

impl Scenario {
    /// Sends what is due, and returns when each row has its result.
    async fn run(answer: ProviderAnswer, filter: Filter, due: Vec<DueNotification>) -> Self {
        let count = due.len();
        let outbox = Arc::new(FakeOutbox {
            due: Mutex::new(due.into()),
            ..FakeOutbox::default()
        });
        let provider = Arc::new(FakeProvider {
            answer,
            repeats: Mutex::default(),
        });
        let sender = RouteSender {
            store: Arc::clone(&outbox),
            notifier: Arc::clone(&provider),
            route: SenderRoute {
                name: "on-call".to_owned(),
                kind: "webhook",
                timeout: Duration::from_secs(10),
                filter: Filter {
                    on: Moment::ALL.to_vec(),
                    ..filter
                },
                template: None,
                started_template: None,
            },
            public_url: None,
        };
        let end = CancellationToken::new();
        let task = tokio::spawn(sender.run(end.clone()));
        while outbox.recorded.lock().len() < count {
            sleep(Duration::from_millis(100)).await; // paused time
        }
        end.cancel();
        task.await.unwrap();
        Self { outbox, provider }
    }

    fn recorded(&self) -> Vec<NotificationResult> {
        self.outbox.recorded.lock().clone()
    }
}

fn accepted() -> ProviderAnswer {
    ProviderAnswer::Accepted {
        receipt: Some("1.2".to_owned()),
    }
}

fn unavailable(retry_after: Option<Duration>, arrival: Arrival) -> ProviderAnswer {
    ProviderAnswer::Unavailable {
        reason: "HTTP 500".to_owned(),
        retry_after,
        arrival,
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_sent_with_the_doubt_of_its_row_and_recorded_with_its_receipt() {
    let second = DueNotification {
        in_doubt: true,
        ..due()
    };
    let scenario = Scenario::run(accepted(), Filter::default(), vec![due(), second]).await;
    let sent = NotificationResult::Sent {
        receipt: Some("1.2".to_owned()),
    };
    assert_eq!(scenario.recorded(), [sent.clone(), sent]);
    assert_eq!(*scenario.provider.repeats.lock(), [false, true]);
}

fn about_request(moment: Moment, outcome: Option<&str>) -> DueNotification {
    let request = serde_json::json!({
        "event": 42, "tool": "k8s.restart", "policy": "default", "arguments": "{}", "call": "ab".repeat(32), "why": "",
        "quorum": 1, "channels": ["slack"], "updates": 0, "expires_at": "2026-11-30T14:03:00Z", "outcome": outcome,
        "is_over": false,
    });
    let mut due = due();
    due.key.moment = moment;
    due.key.request = Some(42);
    due.summary.request = serde_json::from_value(request).unwrap();
    due
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_decided_before_its_message_is_filtered_and_its_end_is_sent() {
    let gone = DueNotification {
        summary: Summary::default(),
        ..about_request(Moment::Decided, None)
    };
    let due = vec![
        about_request(Moment::Approval, None),
        about_request(Moment::Approval, Some("approved")),
        about_request(Moment::Decided, Some("approved")),
        gone,
        // It may have arrived, so its provider searches it.
        DueNotification {
            in_doubt: true,
            ..about_request(Moment::Approval, Some("approved"))
        },
    ];
    let scenario = Scenario::run(accepted(), Filter::default(), due).await;
    let sent = NotificationResult::Sent {
        receipt: Some("1.2".to_owned()),
    };
    let filtered = NotificationResult::Filtered;
    assert_eq!(
        scenario.recorded(),
        [sent.clone(), filtered.clone(), sent.clone(), filtered, sent]
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_route_does_not_want_is_closed_without_a_message() {
    let filter = Filter {
        outcomes: vec![Outcome::Failed],
        ..Filter::default()
    };
    let scenario = Scenario::run(accepted(), filter, vec![due()]).await;
    assert_eq!(scenario.recorded(), [NotificationResult::Filtered]);
    assert!(scenario.provider.repeats.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_due_again_later_each_time() {
    let tries = (1..=4)
        .map(|attempts| DueNotification { attempts, ..due() })
        .collect();
    let scenario = Scenario::run(
        unavailable(None, Arrival::Refused),
        Filter::default(),
        tries,
    )
    .await;
    for (result, secs) in scenario.recorded().into_iter().zip([2, 4, 8, 16]) {
        let NotificationResult::Failed {
            retry_after,
            arrival,
            ..
        } = result
        else {
            panic!("{result:?}")
        };
        let ceiling = Duration::from_secs(secs);
        assert!(
            retry_after >= ceiling / 2 && retry_after <= ceiling,
            "{retry_after:?} of {ceiling:?}"
        );
        assert_eq!(arrival, Arrival::Refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_doubt_lasts_until_the_message_is_sent() {
    let doubtful = DueNotification {
        in_doubt: true,
        ..due()
    };
    let scenario = Scenario::run(
        unavailable(None, Arrival::Refused),
        Filter::default(),
        vec![doubtful],
    )
    .await;
    assert!(matches!(
        scenario.recorded()[0],
        NotificationResult::Failed {
            arrival: Arrival::Unknown,
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_for_a_pause_gets_no_message_meanwhile() {
    let pause = Duration::from_secs(90);
    let answer = unavailable(Some(pause), Arrival::Refused);
    let scenario = Scenario::run(answer, Filter::default(), vec![due(), due()]).await;
    let claims = scenario.outbox.claims.lock();
    assert!(claims[1] - claims[0] >= pause, "{claims:?}");
    let NotificationResult::Failed { retry_after, .. } = &scenario.recorded()[0] else {
        panic!("not failed")
    };
    assert_eq!(*retry_after, pause);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_given_up_when_it_is_refused_or_too_old() {
    let rejected = ProviderAnswer::Rejected {
        reason: "HTTP 400".to_owned(),
    };
    let scenario = Scenario::run(rejected, Filter::default(), vec![due()]).await;
    assert_eq!(
        scenario.recorded(),
        [NotificationResult::GivenUp {
            reason: "HTTP 400".to_owned()
        }]
    );
    let old = DueNotification {
        waited: MAX_AGE,
        ..due()
    };
    let scenario = Scenario::run(
        unavailable(None, Arrival::Unknown),
        Filter::default(),
        vec![old],
    )
    .await;
    let reason = "not sent within 24 hours; the last attempt: HTTP 500".to_owned();
    assert_eq!(
        scenario.recorded(),
        [NotificationResult::GivenUp { reason }]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_thread_is_sent_whatever_the_route_filters() {
    let failures = Filter {
        outcomes: vec![Outcome::Failed],
        chains: vec!["another".to_owned()],
        ..Filter::default()
    };
    let answer = DueNotification {
        asked_in: Some("C1/1700000000.000100".to_owned()),
        ..due()
    };
    let scenario = Scenario::run(accepted(), failures, vec![due(), answer]).await;
    let mut recorded = scenario.recorded();
    recorded.sort_by_key(|result| *result == NotificationResult::Filtered);
    assert!(
        matches!(
            recorded.as_slice(),
            [
                NotificationResult::Sent { .. },
                NotificationResult::Filtered
            ]
        ),
        "{recorded:?}"
    );
}
