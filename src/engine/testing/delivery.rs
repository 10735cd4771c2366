//! Fakes of the store, the broker and the intake for everything that delivers: each writes down what it is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Fakes, Scene, Turn, lock};
use crate::engine::delivery::dispatch::{Dispatcher, Intake, Job, Planned, PrepareError, PreparedAlert, Settings};
use crate::engine::delivery::redelivery::Hesitation;
use crate::engine::delivery::settler::Settler;
use crate::engine::ports::*;
use crate::engine::run::registry::Running;
use crate::engine::worker::timeline_probe::Timeline;
use crate::investigation::alert::{Alert, AlertStatus, Severity};
use crate::investigation::ids::{SessionId, WorkerId};
use crate::investigation::plan::{Plan, Strategy};
use crate::investigation::timeline::{EventDraft, EventType};

/// A store with one alert in it.
#[derive(Debug)]
pub(crate) struct FakeSessions {
    pub(crate) places: Mutex<Vec<Disposition>>,
    pub(crate) opened: Mutex<Vec<Opened>>,
    pub(crate) joined: Mutex<Option<Opened>>,
    pub(crate) waited: Mutex<Duration>,
    pub(crate) claim: Mutex<Claim>,
    pub(crate) claim_takes: Mutex<Duration>,
    pub(crate) released: Mutex<Result<(), StoreError>>,
    /// `None`: no renewal succeeds.
    pub(crate) renewal: Mutex<Option<Renewal>>,
    /// By a statement that waits for its row.
    pub(crate) renewal_of_one: Mutex<Renewal>,
    /// When, and how many leases.
    pub(crate) renewed: Mutex<Vec<(Instant, usize)>>,
    pub(super) standing: SettlementStatus,
    pub(super) recovered: Mutex<Recovered>,
    pub(crate) swept: Mutex<Vec<Vec<Swept>>>,
    /// Of each batch; nothing when they are used up.
    pub(crate) pruned: Mutex<Vec<Pruned>>,
    /// A statement that finds the store unavailable.
    pub(crate) unavailable: Mutex<Option<&'static str>>,
    /// A statement that the store refuses.
    pub(crate) refuses: Mutex<Option<&'static str>>,
    /// Cancelled by the statement that opens.
    pub(crate) cancels: Mutex<Option<CancellationToken>>,
    pub(crate) requests: Mutex<Vec<OpenRequest>>,
    pub(super) asked: Mutex<Vec<String>>,
    /// Of each claim.
    pub(crate) excuses: Mutex<Vec<Duration>>,
}

impl FakeSessions {
    pub(super) fn new(places: Vec<Disposition>, claim: Claim, standing: SettlementStatus) -> Self {
        Self {
            places: Mutex::new(places),
            opened: Mutex::default(),
            joined: Mutex::default(),
            waited: Mutex::default(),
            claim: Mutex::new(claim),
            claim_takes: Mutex::default(),
            released: Mutex::new(Ok(())),
            renewal: Mutex::new(Some(Renewal::Renewed { last_seq: 1, cancel_requested: false })),
            renewal_of_one: Mutex::new(Renewal::Locked),
            renewed: Mutex::default(),
            standing,
            recovered: Mutex::new(Recovered::GoesOn),
            swept: Mutex::default(),
            pruned: Mutex::default(),
            unavailable: Mutex::default(),
            refuses: Mutex::default(),
            cancels: Mutex::default(),
            requests: Mutex::default(),
            asked: Mutex::default(),
            excuses: Mutex::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }

    fn ask(&self, what: &'static str, about: impl std::fmt::Display) -> Result<(), StoreError> {
        lock(&self.asked).push(format!("{what} {about}").trim().to_owned());
        if *lock(&self.unavailable) == Some(what) {
            return Err(StoreError::Unavailable("gone".to_owned()));
        }
        if *lock(&self.refuses) == Some(what) {
            return Err(StoreError::Refused("too long".to_owned()));
        }
        Ok(())
    }
}

fn number(id: SessionId) -> u128 {
    id.0.as_u128()
}

impl Sessions for FakeSessions {
    async fn receive(&self, received: Received) -> Result<Disposition, StoreError> {
        self.ask("receive", number(received.alert_id))?;
        Ok(lock(&self.places).remove(0))
    }

    async fn open(&self, request: OpenRequest) -> Result<Opened, StoreError> {
        self.ask("open", "")?;
        lock(&self.requests).push(request);
        if let Some(token) = lock(&self.cancels).as_ref() {
            token.cancel();
        }
        Ok(lock(&self.opened).remove(0))
    }

    async fn join(&self, _request: JoinRequest) -> Result<Option<Opened>, StoreError> {
        self.ask("join", "")?;
        Ok(lock(&self.joined).take())
    }

    async fn waited(&self, alert: SessionId) -> Result<Duration, StoreError> {
        self.ask("waited", number(alert))?;
        Ok(*lock(&self.waited))
    }

    async fn give_up(&self, alert: SessionId, refusal: Refusal) -> Result<(), StoreError> {
        self.ask("give_up", format!("{} {}: {}", number(alert), refusal.reason.as_str(), refusal.detail))
    }

    async fn claim(&self, session: SessionId, claim: ClaimRequest) -> Result<Claim, StoreError> {
        let about =
            claim.stream_sequence.map_or_else(|| format!("{} without a job", number(session)), |_| String::new());
        self.ask("claim", about)?;
        lock(&self.excuses).push(claim.excuse);
        let takes = *lock(&self.claim_takes);
        tokio::time::sleep(takes).await; // paused time
        Ok(lock(&self.claim).clone())
    }

    async fn renew(&self, leases: Vec<Lease>, _period: Duration) -> Result<Vec<Renewal>, StoreError> {
        lock(&self.renewed).push((Instant::now(), leases.len()));
        let renewal = lock(&self.renewal).ok_or_else(|| StoreError::Unavailable("gone".to_owned()))?;
        Ok(leases.iter().map(|_| renewal).collect())
    }

    async fn release(&self, _lease: Lease) -> Result<(), StoreError> {
        self.ask("release", "")?;
        lock(&self.released).clone()
    }

    async fn release_counted(&self, _lease: Lease) -> Result<(), StoreError> {
        self.ask("release counted", "")?;
        lock(&self.released).clone()
    }

    async fn renew_one(&self, _lease: Lease, _period: Duration) -> Result<Renewal, StoreError> {
        Ok(*lock(&self.renewal_of_one))
    }

    async fn standing(&self, _session: SessionId) -> Result<SettlementStatus, StoreError> {
        Ok(self.standing.clone())
    }

    async fn recover(&self, recover: Recover) -> Result<Recovered, StoreError> {
        let about = format!("{} after {}", number(recover.session_id), recover.divergence.kept);
        self.ask("recover", about)?;
        Ok(*lock(&self.recovered))
    }

    async fn settled(&self, _session: SessionId) -> Result<(), StoreError> {
        self.ask("settled", "")
    }

    async fn refund_attempt(&self, alert: SessionId) -> Result<(), StoreError> {
        self.ask("refund_attempt", number(alert))
    }

    async fn cancel(&self, session: SessionId) -> Result<bool, StoreError> {
        self.ask("cancel", number(session))?;
        Ok(true)
    }

    async fn sweep(&self, _sweep: Sweep) -> Result<Vec<Swept>, StoreError> {
        self.ask("sweep", "")?;
        let mut swept = lock(&self.swept);
        Ok(if swept.is_empty() { Vec::new() } else { swept.remove(0) })
    }

    async fn requeued(&self, alert: SessionId, stream_sequence: u64) -> Result<(), StoreError> {
        self.ask("requeued", format!("{} as {stream_sequence}", number(alert)))
    }

    async fn prune(&self, _retention: crate::config::Retention, _limit: u32) -> Result<Pruned, StoreError> {
        self.ask("prune", "")?;
        let mut pruned = lock(&self.pruned);
        Ok(if pruned.is_empty() { Pruned::default() } else { pruned.remove(0) })
    }

    async fn reachable(&self) -> bool {
        *lock(&self.unavailable) != Some("reachable")
    }
}

/// Takes a body as it stands, in its own time.
#[derive(Debug)]
pub(crate) struct Plain {
    plan: Plan,
}

impl Intake for Plain {
    /// `panic` does, `unavailable` needs a store that is unavailable, `hang` never ends, `slow` takes 45 s, `forced` says that it does
    /// session 3 again.
    async fn prepare(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        let body = received.body.as_deref().unwrap_or_default();
        let text = std::str::from_utf8(body)
            .map_err(|_| Refusal { reason: DeadReason::Undecodable, detail: "no text".to_owned() })?
            .to_owned();
        match text.as_str() {
            "panic" => panic!("a body that nobody expected"),
            "hang" => std::future::pending().await,
            "unavailable" => return Err(PrepareError::Unavailable(StoreError::Unavailable("no answer".to_owned()))),
            "slow" => tokio::time::sleep(Duration::from_secs(45)).await, // paused time
            _ => {}
        }
        let force = text == "forced";
        let retry_of = force.then(|| SessionId(Uuid::from_u128(3)));
        let alert = Alert {
            source: "text".to_owned(),
            alert_type: "generic".to_owned(),
            title: text.clone(),
            severity: Severity::Normal,
            status: AlertStatus::Firing,
            fingerprint: "f".to_owned(),
            members: Vec::new(),
            runbook_url: None,
            text,
        };
        Ok(PreparedAlert { alert, force, retry_of, thread: None })
    }

    /// `busy` never ends, `toolless` is without the tools of one server.
    async fn plan(&self, _received: &Received, understood: &PreparedAlert) -> Result<Planned, PrepareError> {
        let mut plan = self.plan.clone();
        match understood.alert.text.as_str() {
            "busy" => std::future::pending().await,
            "toolless" => plan.unavailable_servers.push("k8s".to_owned()),
            _ => {}
        }
        Ok(Planned { plan, started: EventDraft::new(EventType::SessionStarted, "started", Value::Null) })
    }
}

/// Writes down what the broker is told. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(pub(crate) Arc<Mutex<Vec<String>>>, pub(crate) Arc<Mutex<Vec<Duration>>>);

impl Delivery for Told {
    async fn progress(&self) -> Result<(), BrokerUnavailable> {
        lock(&self.0).push("progress".to_owned());
        Ok(())
    }
    async fn ack(&self) -> Result<(), BrokerUnavailable> {
        lock(&self.0).push("ack".to_owned());
        Ok(())
    }
    async fn nak(&self, delay: Duration) -> Result<(), BrokerUnavailable> {
        lock(&self.0).push(if delay.is_zero() { "nak now".to_owned() } else { "nak later".to_owned() });
        lock(&self.1).push(delay);
        Ok(())
    }
    async fn term(&self, reason: &str) -> Result<(), BrokerUnavailable> {
        lock(&self.0).push(format!("term {reason}"));
        Ok(())
    }
}

/// A broker that does not answer.
#[derive(Debug)]
pub(crate) struct Silent;

impl Delivery for Silent {
    async fn progress(&self) -> Result<(), BrokerUnavailable> {
        std::future::pending().await
    }
    async fn ack(&self) -> Result<(), BrokerUnavailable> {
        std::future::pending().await
    }
    async fn nak(&self, _delay: Duration) -> Result<(), BrokerUnavailable> {
        std::future::pending().await
    }
    async fn term(&self, _reason: &str) -> Result<(), BrokerUnavailable> {
        std::future::pending().await
    }
}

/// One worker's delivery side, and an alert for it.
pub(crate) struct Desk {
    pub(crate) scene: Scene,
    pub(crate) sessions: Arc<FakeSessions>,
    pub(crate) dispatcher: Dispatcher<Fakes, FakeSessions, Plain, Told>,
    pub(crate) told: Told,
    /// What the probe of the timeline stream says.
    pub(crate) timeline: watch::Sender<Timeline>,
}

pub(crate) const SETTLED: SettlementStatus = SettlementStatus { over: true, settled: false, last_seq: 3, owes: None };
pub(crate) const NEW: Disposition = Disposition::Undecided { attempts: 1 };
pub(crate) const LEASE: Duration = Duration::from_secs(30);

impl Desk {
    pub(crate) fn new(places: Vec<Disposition>, opened: Vec<Opened>, claim: Claim, standing: SettlementStatus) -> Self {
        let scene = Scene::new(Strategy::SingleCall, 1, vec![Turn::Says("Cause: x", vec![])]);
        let desk = Self::of(scene, FakeSessions::new(places, claim, standing));
        *lock(&desk.sessions.opened) = opened;
        desk
    }

    /// A new alert that opens the scene's session.
    pub(crate) fn opening(scene: Scene) -> Self {
        let desk = Self::of(scene, FakeSessions::new(vec![NEW], Claim::Unknown, SETTLED));
        *lock(&desk.sessions.opened) = vec![Opened::Session(desk.claimed())];
        desk
    }

    fn of(scene: Scene, sessions: FakeSessions) -> Self {
        let sessions = Arc::new(sessions);
        let settings = Settings {
            worker: WorkerId(Uuid::nil()),
            worker_name: "w1".to_owned(),
            lease: LEASE,
            session_timeout: Duration::from_mins(40),
            attempts: 5,
            cooldown: Duration::from_hours(1),
            tool_wait: Duration::from_mins(1),
            drain_timeout: Duration::from_secs(45),
        };
        let (timeline, drain) = (watch::Sender::new(Timeline::Accepting), CancellationToken::new());
        let parts = (Arc::clone(&sessions), Arc::clone(&scene.ports.feed));
        let settler = Settler::new(parts, LEASE, timeline.subscribe(), drain.clone());
        let dispatcher = Dispatcher {
            ports: scene.ports.clone(),
            sessions: Arc::clone(&sessions),
            intake: Arc::new(Plain { plan: scene.disk().record.plan.clone() }),
            running: Arc::new(Running::default()),
            settings: Arc::new(settings),
            hesitation: Arc::new(Hesitation::default()),
            outages: Arc::default(),
            settler: Arc::new(settler),
            drain,
            hurry: CancellationToken::new(),
        };
        Self { scene, sessions, dispatcher, told: Told::default(), timeline }
    }

    /// Delivers and waits for the settler, too.
    pub(crate) async fn deliver(&self, body: &[u8]) {
        self.handle(body).await;
        self.dispatcher.settler.finished().await;
    }

    /// Delivers: when it is over, the slot is free.
    pub(crate) async fn handle(&self, body: &[u8]) {
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

    /// What the store and the broker were asked.
    pub(crate) fn outcome(&self) -> (Vec<String>, Vec<String>) {
        (self.sessions.asked(), lock(&self.told.0).clone())
    }

    pub(crate) fn claimed(&self) -> Claimed {
        let (remaining, attempts, cancel_requested) = (Duration::from_mins(40), 0, false);
        Claimed { lease: self.scene.lease(), remaining, attempts, cancel_requested }
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns when `reached` holds; paused time goes by meanwhile.
pub(crate) async fn until(reached: impl Fn() -> bool) {
    let polling = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await; // paused time
        }
    };
    tokio::time::timeout(Duration::from_mins(10), polling).await.expect("it never came");
}
