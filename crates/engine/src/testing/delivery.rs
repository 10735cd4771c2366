//! `DeliveryHarness`, one worker over fakes of every port, and an alert for it.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{FakeDelivery, FakeSessions, Fakes, Scene, Turn};
use crate::delivery::dispatcher::{Dispatcher, Settings, Shutdown};
use crate::delivery::timeline::Timeline;
use crate::ports::*;
use crate::run::control::Control;
use crate::run::registry::{Registered, RunHandle};
use tarsy_core::alert::policy::OnAcknowledged;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_core::plan::Strategy;

/// One worker, and an alert for it.
pub(crate) struct DeliveryHarness {
    pub(crate) scene: Scene,
    pub sessions: Arc<FakeSessions>,
    pub dispatcher: Arc<Dispatcher<Fakes>>,
    pub delivery: FakeDelivery,
    /// The state that the timeline probe finds.
    pub timeline: watch::Sender<Timeline>,
}

pub(crate) const SETTLED: SettlementStatus = SettlementStatus {
    over: true,
    settled: false,
    last_seq: 3,
    last_event: None,
    message: StoredMessage {
        headers: serde_json::Value::Null,
        subject: String::new(),
    },
    owes: None,
};
pub(crate) const NEW: Disposition = Disposition::Undecided { attempts: 1 };
pub(crate) const LEASE: Duration = Duration::from_secs(30);

impl DeliveryHarness {
    pub(crate) fn new(
        dispositions: Vec<Disposition>,
        opened: Vec<Opened>,
        claim: Claim,
        standing: SettlementStatus,
    ) -> Self {
        let scene = Scene::new(
            Strategy::SingleCall,
            1,
            vec![Turn::Says("Cause: x", vec![])],
        );
        let harness = Self::with_sessions(scene, FakeSessions::new(dispositions, claim, standing));
        *harness.sessions.opened.lock() = opened;
        harness
    }

    /// A new alert that opens the scene's session.
    pub(crate) fn opening(scene: Scene) -> Self {
        let harness =
            Self::with_sessions(scene, FakeSessions::new(vec![NEW], Claim::Unknown, SETTLED));
        *harness.sessions.opened.lock() = vec![Opened::Session(harness.claimed())];
        harness
    }

    /// A session that another worker has begun, and that this one claims.
    pub(crate) fn resuming(scene: Scene) -> Self {
        let sessions = FakeSessions::new(vec![Disposition::Opened], Claim::Unknown, SETTLED);
        let harness = Self::with_sessions(scene, sessions);
        *harness.sessions.claim.lock() = Claim::Taken(harness.claimed());
        harness
    }

    fn with_sessions(mut scene: Scene, sessions: FakeSessions) -> Self {
        let sessions = Arc::new(FakeSessions {
            journal: Some(Arc::clone(&scene.ports.journal)),
            ..sessions
        });
        Arc::get_mut(&mut scene.ports).unwrap().sessions = Arc::clone(&sessions);
        let settings = Settings {
            worker: WorkerId(Uuid::from_u128(1)),
            worker_name: "w1".to_owned(),
            cooldown: Duration::from_hours(1),
            on_acknowledged: OnAcknowledged::default(),
            limits: tarsy_config::Worker {
                lease: LEASE,
                ..tarsy_config::Worker::default()
            },
            max_open: 1_000,
        };
        let timeline = watch::Sender::new(Timeline::Accepting);
        let dispatcher = Dispatcher::new(
            scene.ports.clone(),
            settings,
            timeline.subscribe(),
            Shutdown::default(),
        );
        Self {
            scene,
            sessions,
            dispatcher,
            delivery: FakeDelivery::default(),
            timeline,
        }
    }

    /// Delivers the alert and waits for the settler and for messages of parked sessions, too.
    pub(crate) async fn deliver(&self, body: &[u8]) {
        self.handle(body).await;
        self.dispatcher.settler.finished().await;
        self.dispatcher.parked.finished().await;
    }

    /// Delivers the alert. When this returns, the slot is free.
    pub(crate) async fn handle(&self, body: &[u8]) {
        let received = Received {
            alert_id: self.scene.session,
            body_sha256: [0; 32],
            body: Some(body.to_vec()),
            headers: json!({}),
            subject: "tarsy.alerts.normal".to_owned(),
            stream_sequence: 1,
            queued_at: Utc::now(),
        };
        let derived_id = SessionId(Uuid::from_u128(8));
        let delivery = Arc::new(self.delivery.clone());
        self.dispatcher
            .handle(Job {
                received,
                fault: None,
                derived_id,
                delivery,
            })
            .await;
    }

    /// The statements of the store, and the acknowledgements of the message.
    pub(crate) fn outcome(&self) -> (Vec<String>, Vec<String>) {
        (self.sessions.asked(), self.delivery.acknowledgements())
    }

    pub(crate) fn claimed(&self) -> Claimed {
        let remaining = Duration::from_mins(40);
        let attempts = 0;
        let cancel_requested = false;
        Claimed {
            lease: self.scene.lease(),
            remaining,
            attempts,
            cancel_requested,
            previous: None,
        }
    }

    /// Adds a run of the scene's session whose lease was renewed just now.
    pub(crate) fn insert_run(
        &self,
        delivery: FakeDelivery,
    ) -> (Control, Registered<'_, FakeDelivery>) {
        let control = Control::new(Instant::now(), LEASE, CancellationToken::new());
        let handle = RunHandle {
            lease: self.scene.lease(),
            control: control.clone(),
            delivery: Some(Arc::new(delivery)),
        };
        (control, self.dispatcher.runs.insert(handle))
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Waits until `reached` holds, while paused time passes.
pub(crate) async fn until(reached: impl Fn() -> bool) {
    let polling = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await; // paused time
        }
    };
    tokio::time::timeout(Duration::from_mins(10), polling)
        .await
        .expect("it never held");
}
