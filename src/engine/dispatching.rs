//! Tests of the dispatcher: every place an alert can be in, and what the broker is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::dispatch::{Dispatcher, Intake, Job, Settings, Understood};
use super::ports::*;
use super::renewal::renew_leases;
use super::running::{Run, Running};
use super::testing::{FakeModel, Fakes, Scene, Turn, lock};
use crate::engine::control::Control;
use crate::investigation::alert::{Alert, AlertStatus, Severity};
use crate::investigation::entry::StopReason;
use crate::investigation::ids::{SessionId, WorkerId};
use crate::investigation::plan::{Plan, Strategy};
use crate::investigation::timeline::{EventDraft, EventType};

/// A store with one alert in it, which writes down what it is asked.
#[derive(Debug)]
struct FakeSessions {
    places: Mutex<Vec<Place>>,
    opened: Mutex<Vec<Opened>>,
    claim: Claim,
    claim_takes: Mutex<Duration>,
    released: Mutex<Result<(), JournalError>>,
    renewed: Mutex<Vec<Instant>>,
    standing: Standing,
    asked: Mutex<Vec<String>>,
}

impl FakeSessions {
    fn ask(&self, what: impl Into<String>) {
        lock(&self.asked).push(what.into());
    }
}

impl Sessions for FakeSessions {
    async fn receive(&self, received: Received) -> Result<Place, JournalError> {
        self.ask(format!("receive {}", received.alert_id.0.as_u128()));
        Ok(lock(&self.places).remove(0))
    }
    async fn open(&self, _request: OpenRequest) -> Result<Opened, JournalError> {
        self.ask("open");
        Ok(lock(&self.opened).remove(0))
    }
    async fn bury(&self, alert: SessionId, refusal: Refusal) -> Result<(), JournalError> {
        self.ask(format!("bury {} {}", alert.0.as_u128(), refusal.reason.as_str()));
        Ok(())
    }
    async fn claim(&self, _session: SessionId, _claim: ClaimRequest) -> Result<Claim, JournalError> {
        self.ask("claim");
        let takes = *lock(&self.claim_takes);
        tokio::time::sleep(takes).await; // paused time
        Ok(self.claim.clone())
    }
    async fn renew(&self, leases: Vec<Lease>, _period: Duration) -> Result<Vec<Renewal>, JournalError> {
        lock(&self.renewed).push(Instant::now());
        Ok(leases.iter().map(|_| Renewal::Renewed { last_seq: 1, cancel_requested: false }).collect())
    }
    async fn release(&self, _lease: Lease) -> Result<(), JournalError> {
        self.ask("release");
        lock(&self.released).clone()
    }
    async fn standing(&self, _session: SessionId) -> Result<Standing, JournalError> {
        Ok(self.standing.clone())
    }
    async fn settled(&self, _session: SessionId) -> Result<(), JournalError> {
        self.ask("settled");
        Ok(())
    }
    async fn spare(&self, _alert: SessionId) -> Result<(), JournalError> {
        Ok(())
    }

    async fn cancel(&self, session: SessionId) -> Result<bool, JournalError> {
        Ok(session == SessionId(Uuid::nil()))
    }

    async fn sweep(&self, _sweep: Sweep) -> Result<Vec<Swept>, JournalError> {
        Ok(Vec::new())
    }

    async fn requeued(&self, _alert: SessionId, _stream_sequence: u64) -> Result<(), JournalError> {
        Ok(())
    }
    async fn reachable(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Plain(Plan);

impl Intake for Plain {
    async fn understand(&self, received: &Received) -> Result<Understood, Refusal> {
        let body = received.body.as_deref().unwrap_or_default();
        let text = std::str::from_utf8(body)
            .map_err(|_| Refusal { reason: DeadReason::Undecodable, detail: String::new() })?
            .to_owned();
        let alert = Alert {
            source: "text".to_owned(),
            alert_type: "generic".to_owned(),
            title: text.clone(),
            severity: Severity::Normal,
            status: AlertStatus::Firing,
            fingerprint: "f".to_owned(),
            runbook_url: None,
            text,
        };
        let started = EventDraft::new(EventType::SessionStarted, "started", Value::Null);
        Ok(Understood { alert, plan: self.0.clone(), started })
    }
}

/// Writes down what the broker is told.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Delivery for Told {
    async fn progress(&self) -> Result<(), BrokerAway> {
        Ok(())
    }
    async fn ack(&self) -> Result<(), BrokerAway> {
        lock(&self.0).push("ack".to_owned());
        Ok(())
    }
    async fn nak(&self, delay: Duration) -> Result<(), BrokerAway> {
        lock(&self.0).push(if delay.is_zero() { "nak now".to_owned() } else { "nak later".to_owned() });
        Ok(())
    }
    async fn term(&self, reason: &str) -> Result<(), BrokerAway> {
        lock(&self.0).push(format!("term {reason}"));
        Ok(())
    }
}

/// A broker that does not answer.
#[derive(Debug)]
struct Silent;

impl Delivery for Silent {
    async fn progress(&self) -> Result<(), BrokerAway> {
        std::future::pending().await
    }
    async fn ack(&self) -> Result<(), BrokerAway> {
        std::future::pending().await
    }
    async fn nak(&self, _delay: Duration) -> Result<(), BrokerAway> {
        std::future::pending().await
    }
    async fn term(&self, _reason: &str) -> Result<(), BrokerAway> {
        std::future::pending().await
    }
}

struct Desk {
    scene: Scene,
    sessions: Arc<FakeSessions>,
    dispatcher: Dispatcher<Fakes, FakeSessions, Plain, Told>,
    told: Told,
}

const SETTLED: Standing = Standing { over: true, settled: false, last_seq: 3, owes: None };

impl Desk {
    fn new(places: Vec<Place>, opened: Vec<Opened>, claim: Claim, standing: Standing) -> Self {
        let scene = Scene::new(Strategy::SingleCall, 1, vec![Turn::Says("Cause: x", vec![])]);
        let sessions = Arc::new(FakeSessions {
            places: Mutex::new(places),
            opened: Mutex::new(opened),
            claim,
            claim_takes: Mutex::default(),
            released: Mutex::new(Ok(())),
            renewed: Mutex::default(),
            standing,
            asked: Mutex::default(),
        });
        let settings = Settings {
            worker: WorkerId(Uuid::nil()),
            worker_name: "w1".to_owned(),
            lease: Duration::from_secs(30),
            session_timeout: Duration::from_mins(40),
            attempts: 5,
            drain_timeout: Duration::from_secs(45),
        };
        let dispatcher = Dispatcher {
            ports: scene.ports.clone(),
            sessions: Arc::clone(&sessions),
            intake: Arc::new(Plain(scene.disk().record.plan.clone())),
            running: Arc::new(Running::default()),
            settings: Arc::new(settings),
            drain: CancellationToken::new(),
        };
        Self { scene, sessions, dispatcher, told: Told::default() }
    }

    async fn deliver(&self, body: &[u8]) {
        let received = Received {
            alert_id: self.scene.session,
            body_sha256: [0; 32],
            body: Some(body.to_vec()),
            headers: json!({}),
            subject: "tarsy.alerts.normal".to_owned(),
            stream_sequence: 1,
        };
        let derived_id = SessionId(Uuid::from_u128(8));
        self.dispatcher.handle(Job { received, fault: None, derived_id, delivery: self.told.clone() }).await;
    }

    fn outcome(&self) -> (Vec<String>, Vec<String>) {
        (lock(&self.sessions.asked).clone(), lock(&self.told.0).clone())
    }

    fn claimed(&self) -> Claimed {
        let (remaining, attempts, cancel_requested) = (Duration::from_mins(40), 0, false);
        Claimed { lease: self.scene.lease(), remaining, attempts, cancel_requested }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const NEW: Place = Place::Undecided { attempts: 1 };

#[tokio::test]
async fn a_new_alert_is_investigated_settled_and_then_acknowledged() {
    let desk = Desk::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
    *lock(&desk.sessions.opened) = vec![Opened::Session(desk.claimed())];
    desk.deliver(b"disk full").await;
    assert_eq!(desk.outcome(), (words(&["receive 7", "open", "settled"]), words(&["ack"])));
    assert_eq!(desk.scene.disk().end.as_ref().map(|end| end.status), Some(RunStatus::Completed));
}

#[tokio::test]
async fn a_lost_race_looks_at_the_place_again() {
    let desk = Desk::new(
        vec![NEW, Place::Joined(SessionId(Uuid::from_u128(9)))],
        vec![Opened::Raced],
        Claim::Unknown,
        SETTLED,
    );
    desk.deliver(b"disk full").await;
    assert_eq!(desk.outcome(), (words(&["receive 7", "open", "receive 7", "settled"]), words(&["ack"])));
}

#[tokio::test]
async fn another_body_under_a_used_id_is_buried_under_the_derived_id() {
    let desk = Desk::new(vec![Place::UsedId, NEW], vec![], Claim::Unknown, SETTLED);
    desk.deliver(b"other").await;
    assert_eq!(desk.outcome().0, words(&["receive 7", "receive 8", "bury 8 used_id", "settled"]));
}

#[tokio::test]
async fn what_is_no_text_is_buried_and_terminated_with_its_reason() {
    let letter = DeadLetter {
        alert_id: SessionId(Uuid::from_u128(7)),
        reason: DeadReason::Undecodable,
        detail: String::new(),
        body: vec![],
        headers: json!({}),
        subject: String::new(),
        stream_sequence: 1,
        deliveries: 1,
    };
    let desk = Desk::new(vec![NEW], vec![], Claim::Unknown, Standing { owes: Some(letter), ..SETTLED });
    desk.deliver(&[0xff]).await;
    let asked = words(&["receive 7", "bury 7 undecodable", "settled"]);
    assert_eq!(desk.outcome(), (asked, words(&["term undecodable"])));
}

#[tokio::test]
async fn a_live_lease_elsewhere_puts_the_message_back_and_an_ended_session_is_settled_first() {
    let busy = Desk::new(vec![Place::Opened], vec![], Claim::Busy(Duration::from_secs(5)), SETTLED);
    busy.deliver(b"x").await;
    assert_eq!(busy.outcome(), (words(&["receive 7", "claim"]), words(&["nak later"])));
    let over = Desk::new(vec![Place::Opened], vec![], Claim::Over { settled: false }, SETTLED);
    over.deliver(b"x").await;
    assert_eq!(over.outcome(), (words(&["receive 7", "claim", "settled"]), words(&["ack"])));
}

#[tokio::test]
async fn a_redelivery_of_a_running_session_becomes_its_delivery() {
    let desk = Desk::new(vec![Place::Opened], vec![], Claim::Unknown, SETTLED);
    let control = Control::new(Instant::now(), Duration::from_secs(20), CancellationToken::new());
    let first = Arc::new(Told::default());
    let entered =
        desk.dispatcher.running.insert(Run { lease: desk.scene.lease(), control, delivery: Arc::clone(&first) });
    desk.deliver(b"x").await;
    assert_eq!(desk.outcome(), (words(&["receive 7"]), words(&[])));
    let run = entered.leave().unwrap();
    assert!(!Arc::ptr_eq(&run.delivery.0, &first.0));
}

#[tokio::test]
async fn a_draining_worker_frees_the_session_before_it_gives_the_message_back() {
    let desk = Desk::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
    *lock(&desk.sessions.opened) = vec![Opened::Session(desk.claimed())];
    desk.dispatcher.drain.cancel();
    desk.deliver(b"x").await;
    assert_eq!(desk.outcome(), (words(&["receive 7", "open", "release"]), words(&["nak now"])));
}

#[tokio::test]
async fn a_hand_back_of_a_session_that_is_over_or_lost_does_not_give_the_message_back() {
    let lost = JournalError::LeaseLost { held: 1, current: 2 };
    let table = [
        (lost, words(&["receive 7", "open", "release"]), words(&[])),
        (JournalError::Ended, words(&["receive 7", "open", "release", "settled"]), words(&["ack"])),
        (JournalError::Away("gone".to_owned()), words(&["receive 7", "open", "release"]), words(&["nak later"])),
    ];
    for (refusal, asked, told) in table {
        let desk = Desk::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
        *lock(&desk.sessions.opened) = vec![Opened::Session(desk.claimed())];
        *lock(&desk.sessions.released) = Err(refusal);
        desk.dispatcher.drain.cancel();
        desk.deliver(b"x").await;
        assert_eq!(desk.outcome(), (asked, told));
    }
}

#[tokio::test]
async fn an_execution_that_panics_is_a_death_and_not_a_hand_back() {
    let mut desk = Desk::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
    desk.dispatcher.ports.model =
        Arc::new(FakeModel { turns: vec![Turn::Panics], calls: Mutex::new(0), requests: Mutex::default() });
    *lock(&desk.sessions.opened) = vec![Opened::Session(desk.claimed())];
    desk.deliver(b"x").await;
    assert_eq!(desk.outcome(), (words(&["receive 7", "open"]), words(&["nak later"])));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_answer_holds_up_no_renewal() {
    let desk = Desk::new(vec![], vec![], Claim::Unknown, SETTLED);
    let lease = Duration::from_secs(3);
    let control = Control::new(Instant::now(), lease, CancellationToken::new());
    let running = Arc::new(Running::default());
    let _entered = running.insert(Run { lease: desk.scene.lease(), control, delivery: Arc::new(Silent) });
    let renewing = renew_leases(
        Arc::clone(&desk.sessions),
        Arc::clone(&running),
        Arc::clone(&desk.scene.ports.feed),
        (lease, CancellationToken::new()),
    );
    let began = Instant::now();
    assert!(tokio::time::timeout(Duration::from_millis(3500), renewing).await.is_err());
    let renewed: Vec<u64> = lock(&desk.sessions.renewed).iter().map(|at| (*at - began).as_secs()).collect();
    assert_eq!(renewed, [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_answered_too_late_begins_nothing() {
    let lease = Desk::new(vec![], vec![], Claim::Unknown, SETTLED).claimed();
    let desk = Desk::new(vec![Place::Opened], vec![], Claim::Taken(lease), SETTLED);
    *lock(&desk.sessions.claim_takes) = Duration::from_secs(25);
    desk.deliver(b"x").await;
    assert_eq!(desk.outcome(), (words(&["receive 7", "claim", "release"]), words(&["nak later"])));
    assert_eq!(*lock(&desk.scene.ports.model.calls), 0);
}

#[tokio::test]
async fn too_many_deaths_a_passed_deadline_and_a_cancel_end_the_session_at_once() {
    let table = [
        (
            Claimed { attempts: 5, ..Desk::new(vec![], vec![], Claim::Unknown, SETTLED).claimed() },
            StopReason::AttemptsExhausted,
        ),
        (
            Claimed { remaining: Duration::ZERO, ..Desk::new(vec![], vec![], Claim::Unknown, SETTLED).claimed() },
            StopReason::Deadline,
        ),
        (
            Claimed { cancel_requested: true, ..Desk::new(vec![], vec![], Claim::Unknown, SETTLED).claimed() },
            StopReason::Cancelled,
        ),
    ];
    for (claimed, reason) in table {
        let desk = Desk::new(vec![Place::Opened], vec![], Claim::Taken(claimed), SETTLED);
        desk.deliver(b"x").await;
        let end = desk.scene.disk().end.clone().unwrap();
        assert_eq!(end.reason, reason);
        assert_eq!(end.dead_letter.is_some(), reason == StopReason::AttemptsExhausted);
        assert_eq!(*lock(&desk.scene.ports.model.calls), 0);
    }
}
