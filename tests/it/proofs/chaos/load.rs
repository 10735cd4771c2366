//! The load during the faults: alerts of every kind, questions, cancel requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use chrono::{DateTime, Utc};
use fastrand::Rng;
use tarsy_bus::{ConnectRetry, Nats, Options};
use tarsy_core::ids::SessionId;
use tokio::sync::{RwLock, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::observer::Observer;
use super::people;
use super::script::mark;
use super::system::{System, session_timeout};
use crate::faults::poison::POISON;

/// Interval between two alerts, in milliseconds.
const BETWEEN_MS: std::ops::Range<u64> = 500..1300;
/// The same in a run about approvals.
const GUARDED_BETWEEN_MS: std::ops::Range<u64> = 250..650;
/// Timeout of one try to publish; the same alert is then published again.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(2);
/// Time to wait for alerts that only the stream has, before the stream is emptied.
const FIRST_STATEMENT_WITHIN: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The system, and the parts that load and faults share.
#[derive(Clone)]
pub(super) struct TestBed {
    pub(super) system: Arc<System>,
    pub(super) observer: Arc<Observer>,
    pub(super) shared_ledger: Arc<SharedLedger>,
}

/// The purpose of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Native,
    Change,
    React,
    Team,
    /// An agent that loads a skill and searches earlier investigations.
    Skill,
    /// An agent that dispatches two sub-agents, one of which fails.
    Lead,
    /// Several alerts of one fingerprint, one of them forced, one resolved.
    Storm,
    /// A cancel request follows.
    Cancel,
    Question,
    Undecodable,
    /// The model does not answer until most of the time is over, and then it concludes.
    Hasty,
    /// The model needs more iterations than are allowed.
    Long,
    /// The model does not answer, so the deadline ends the investigation.
    Stuck,
    /// The alert kills the worker that prepares it.
    Poison,
    /// The alert kills the worker that investigates it, always at the same point.
    Deadly,
    /// The provider and the tool server misbehave.
    Odd,
    /// The same for a model that writes its calls as text.
    OddReact,
    /// Calls that wait for people, one and two of an answer.
    Guarded,
    /// The same with a further alert of the group, and sometimes its resolution.
    GuardedGroup,
    /// A call that waits for two people.
    Quorum,
    /// A call that waits while another agent of the stage works.
    Squad,
    /// Calls that a model writes as text, and that wait for people.
    Written,
    /// A call that no person decides about.
    Silence,
}

impl Kind {
    /// Whether calls of the session wait for people.
    pub(super) fn waits_for_people(self) -> bool {
        matches!(
            self,
            Self::Guarded
                | Self::GuardedGroup
                | Self::Quorum
                | Self::Squad
                | Self::Written
                | Self::Silence
        )
    }
}

/// The kinds of about one minute; the seed shuffles them.
const DECK: [(Kind, usize); 23] = [
    (Kind::Native, 16),
    (Kind::Change, 12),
    (Kind::React, 9),
    (Kind::Team, 7),
    (Kind::Skill, 6),
    (Kind::Lead, 8),
    (Kind::Hasty, 4),
    (Kind::Storm, 4),
    (Kind::Cancel, 4),
    (Kind::Question, 5),
    (Kind::Undecodable, 3),
    (Kind::Long, 2),
    (Kind::Stuck, 1),
    (Kind::Poison, 1),
    (Kind::Deadly, 1),
    (Kind::Odd, 12),
    (Kind::OddReact, 6),
    (Kind::Guarded, 7),
    (Kind::GuardedGroup, 3),
    (Kind::Quorum, 4),
    (Kind::Squad, 3),
    (Kind::Written, 3),
    (Kind::Silence, 1),
];

/// The kinds of a run about approvals.
const GUARDED_DECK: [(Kind, usize); 8] = [
    (Kind::Guarded, 16),
    (Kind::GuardedGroup, 8),
    (Kind::Quorum, 10),
    (Kind::Squad, 8),
    (Kind::Written, 6),
    (Kind::Silence, 2),
    (Kind::Change, 3),
    (Kind::Team, 1),
];

/// An alert that the stream has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) kind: Kind,
    pub(super) at: DateTime<Utc>,
}

/// All acknowledged alerts.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) sent: BTreeMap<SessionId, Sent>,
    /// Alerts that only the stream had when it was emptied.
    pub(super) lost_with_the_stream: BTreeSet<SessionId>,
    /// The time when streams were emptied or lost.
    pub(super) losses: Vec<DateTime<Utc>>,
}

/// The ledger, and a lock that prevents publishing while a stream is emptied.
#[derive(Debug, Default)]
pub(super) struct SharedLedger {
    gate: RwLock<()>,
    pub(super) ledger: Mutex<Ledger>,
}

impl SharedLedger {
    /// Empties a stream when a worker has seen each alert on it, or notes the others. Publishing pauses
    /// meanwhile. Without a database the stream is not emptied.
    pub(super) async fn lose(&self, system: &System, empty: impl Future<Output = ()>) {
        let _closed = self.gate.write().await;
        let limit = Instant::now() + FIRST_STATEMENT_WITHIN;
        let unseen = loop {
            let unseen = self.unseen(system);
            if unseen.as_ref().is_some_and(BTreeSet::is_empty) || Instant::now() > limit {
                break unseen;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await; // pacing of looks
        };
        let Some(unseen) = unseen else { return };
        {
            let mut ledger = self.ledger.lock().unwrap();
            ledger.lost_with_the_stream.extend(unseen);
            ledger.losses.push(Utc::now());
        }
        empty.await;
        self.ledger.lock().unwrap().losses.push(Utc::now());
    }

    /// Acknowledged alerts without a row; `None` while the database is unavailable.
    fn unseen(&self, system: &System) -> Option<BTreeSet<SessionId>> {
        let known =
            system.ask("(SELECT coalesce(string_agg(alert_id::text, ' '), '') FROM alerts)")?;
        let known: BTreeSet<SessionId> = known.split(' ').filter_map(SessionId::parse).collect();
        let ledger = self.ledger.lock().unwrap();
        Some(
            ledger
                .sent
                .keys()
                .filter(|id| !known.contains(id))
                .copied()
                .collect(),
        )
    }
}

/// Header names with their values.
type Headers = Vec<(&'static str, String)>;

/// An alert before it is published.
struct Draft {
    kind: Kind,
    subject: String,
    headers: Headers,
    body: Vec<u8>,
}

/// Publishes until `until`; sends each session with a watcher to `watched`.
pub(super) async fn run(
    bed: TestBed,
    seed: u64,
    until: Instant,
    watched: mpsc::UnboundedSender<SessionId>,
) {
    let TestBed {
        system,
        observer,
        shared_ledger,
    } = bed;
    let mut rng = Rng::with_seed(seed ^ 0x10ad);
    let jetstream =
        async_nats::jetstream::new(async_nats::connect(&system.nats_url).await.unwrap());
    let mut deck = Vec::new();
    let mut publishing = JoinSet::new();
    let mut number = 0_usize;
    let approvals = super::approvals();
    let kinds = if approvals > 0 {
        &GUARDED_DECK[..]
    } else {
        &DECK[..]
    };
    let between = if approvals > 0 {
        GUARDED_BETWEEN_MS
    } else {
        BETWEEN_MS
    };
    let mut asking = 0_usize;
    while if approvals > 0 {
        asking < approvals
    } else {
        Instant::now() < until
    } {
        if deck.is_empty() {
            let cards = kinds
                .iter()
                .flat_map(|(kind, count)| std::iter::repeat_n(*kind, *count));
            deck.extend(cards);
            // A short run does not wait a minute for an expiry.
            deck.retain(|kind| *kind != Kind::Silence || super::minutes() >= 1.0);
            rng.shuffle(&mut deck);
            // The slowest kinds are drawn first, and never shortly before the end.
            let long = |kind: &Kind| matches!(kind, Kind::Stuck | Kind::Deadly | Kind::Poison);
            deck.sort_by_key(long);
            // Also a short run has decisions of people, and calls that are sent after them.
            if number == 0 {
                deck.extend([
                    Kind::Quorum,
                    Kind::Guarded,
                    Kind::Guarded,
                    Kind::Guarded,
                    Kind::Guarded,
                ]);
            }
            if number > 0 && Instant::now() + session_timeout() > until {
                deck.retain(|kind| !long(kind));
            }
        }
        let kind = deck.pop().unwrap_or(Kind::Native);
        asking += usize::from(kind.waits_for_people());
        for draft in drafts(kind, &mut rng, &observer) {
            let session = SessionId(Uuid::now_v7());
            number += 1;
            if number.is_multiple_of(5) && kind != Kind::Undecodable {
                watched.send(session).ok();
            }
            let cancel = (kind == Kind::Cancel).then(|| Duration::from_millis(rng.u64(300..3000)));
            let (system, shared_ledger, jetstream) = (
                Arc::clone(&system),
                Arc::clone(&shared_ledger),
                jetstream.clone(),
            );
            publishing.spawn(async move {
                publish(&jetstream, &shared_ledger, session, draft).await;
                if let Some(after) = cancel {
                    tokio::time::sleep(after).await; // a user cancels after a while
                    request_cancel(&system, session).await;
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(between.clone()))).await; // the pace of the load
    }
    while let Some(published) = publishing.join_next().await {
        published.expect("an alert can be published");
    }
}

/// Publishes until the stream acknowledges it; the same alert may be stored twice.
async fn publish(
    jetstream: &Context,
    shared_ledger: &SharedLedger,
    session: SessionId,
    draft: Draft,
) {
    let mut headers = HeaderMap::new();
    headers.insert("Tarsy-Session-Id", session.to_string());
    for (name, value) in &draft.headers {
        headers.insert(*name, value.as_str());
    }
    loop {
        // The publish and its record share one lock, so that the stream is not emptied in between.
        let _open = shared_ledger.gate.read().await;
        let published = jetstream.publish_with_headers(
            draft.subject.clone(),
            headers.clone(),
            draft.body.clone().into(),
        );
        let acknowledged = tokio::time::timeout(ACKNOWLEDGED_WITHIN, async {
            published.await.ok()?.await.ok()
        })
        .await;
        if let Ok(Some(_)) = acknowledged {
            shared_ledger.ledger.lock().unwrap().sent.insert(
                session,
                Sent {
                    kind: draft.kind,
                    at: Utc::now(),
                },
            );
            return;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await; // pacing of tries
    }
}

async fn request_cancel(system: &System, session: SessionId) {
    system.database.store().request_cancel(session).await.ok();
    let retry = ConnectRetry::UpTo(Duration::from_secs(2));
    let options = Options {
        url: system.nats_url.clone(),
        role: "chaos".to_owned(),
        credentials: Default::default(),
        retry,
    };
    if let Ok(nats) = Nats::connect(&options).await {
        nats.request_cancel(session).await.ok();
    }
}

fn drafts(kind: Kind, rng: &mut Rng, observer: &Observer) -> Vec<Draft> {
    let priority = ["critical", "high", "normal", "low"][rng.usize(0..4)];
    let about = Uuid::now_v7();
    let draft = |mark: &str, headers: Headers| Draft {
        kind,
        subject: format!("tarsy.alerts.{priority}.chaos"),
        headers,
        body: format!("{mark}: something is wrong, {about}").into_bytes(),
    };
    let chain = |name: &str| vec![("Tarsy-Chain", name.to_owned())];
    match kind {
        Kind::Native => vec![draft(mark::NATIVE, Vec::new())],
        Kind::Change => vec![draft(mark::CHANGE, Vec::new())],
        Kind::React => vec![draft(mark::REACT, chain("react"))],
        Kind::Team => vec![draft(mark::TEAM, chain("team"))],
        Kind::Skill => vec![draft(mark::SKILL, Vec::new())],
        Kind::Lead => vec![draft(mark::LEAD, chain("lead"))],
        Kind::Guarded => vec![draft(people::mark::GUARDED, chain("asks"))],
        Kind::GuardedGroup => group(&draft, about, rng),
        Kind::Quorum => vec![draft(people::mark::QUORUM, chain("asks"))],
        Kind::Squad => vec![draft(people::mark::SQUAD, chain("squad"))],
        Kind::Written => vec![draft(people::mark::WRITTEN, chain("asks-in-text"))],
        Kind::Silence => vec![draft(people::mark::SILENCE, chain("asks"))],
        Kind::Odd => vec![draft(mark::ODD, chain("odd"))],
        Kind::OddReact => vec![draft(mark::ODD, chain("odd-react"))],
        Kind::Cancel => vec![draft(mark::SLOW, Vec::new())],
        Kind::Hasty => vec![draft(mark::HASTY, chain("hasty"))],
        Kind::Long => vec![draft(mark::LONG, Vec::new())],
        Kind::Stuck => vec![draft(mark::STUCK, Vec::new())],
        Kind::Deadly => vec![draft(mark::DEADLY, Vec::new())],
        Kind::Poison => vec![draft(std::str::from_utf8(POISON).unwrap(), Vec::new())],
        Kind::Undecodable => {
            let body = [&[0xff][..], &[0; 256], about.as_bytes()].concat();
            vec![Draft {
                body,
                ..draft("", Vec::new())
            }]
        }
        Kind::Storm => storm(&draft, about),
        Kind::Question => {
            let over: Vec<Uuid> = observer
                .latest()
                .iter()
                .filter(|(_, s)| s.may_be_asked)
                .map(|(id, _)| *id)
                .collect();
            // No session has ended yet: publishes another alert, about which a question can be asked later.
            let Some(parent) = rng.choice(over) else {
                return drafts(Kind::Native, rng, observer);
            };
            vec![Draft {
                kind,
                subject: "tarsy.questions.high.chaos".to_owned(),
                headers: vec![("Tarsy-Parent-Id", parent.to_string())],
                body: format!("why was that so? {about}").into_bytes(),
            }]
        }
    }
}

/// Two firing alerts of a group whose calls wait for people, and in one of three cases its resolution.
fn group(draft: &dyn Fn(&str, Headers) -> Draft, about: Uuid, rng: &mut Rng) -> Vec<Draft> {
    let of_group = |status: &str| {
        let headers = vec![
            ("Tarsy-Chain", "asks".to_owned()),
            ("Tarsy-Fingerprint", about.to_string()),
        ];
        Draft {
            body: labels(people::mark::GUARDED, status, about)
                .to_string()
                .into_bytes(),
            ..draft("", headers)
        }
    };
    let mut drafts = vec![of_group("firing"), of_group("firing")];
    if rng.u8(0..3) == 0 {
        drafts.push(of_group("resolved"));
    }
    drafts
}

/// The body of an alert of Alertmanager.
fn labels(mark: &str, status: &str, about: Uuid) -> serde_json::Value {
    serde_json::json!({
        "version": "4", "status": status, "receiver": "chaos", "groupKey": about.to_string(),
        "groupLabels": {}, "commonLabels": {"alertname": mark}, "commonAnnotations": {},
        "alerts": [{
            "status": status, "fingerprint": about.simple().to_string(), "startsAt": "2026-01-01T00:00:00Z",
            "labels": {"alertname": mark, "instance": about.to_string()}, "annotations": {},
        }],
    })
}

/// Three firing alerts, one of them forced, and the resolved one, which may arrive before any of them.
fn storm(draft: &dyn Fn(&str, Headers) -> Draft, about: Uuid) -> Vec<Draft> {
    let fingerprint = || ("Tarsy-Fingerprint", about.to_string());
    let resolved = Draft {
        body: labels(mark::NATIVE, "resolved", about)
            .to_string()
            .into_bytes(),
        ..draft("", vec![fingerprint()])
    };
    vec![
        draft(mark::NATIVE, vec![fingerprint()]),
        draft(mark::NATIVE, vec![fingerprint()]),
        draft(
            mark::NATIVE,
            vec![fingerprint(), ("Tarsy-Force", "true".to_owned())],
        ),
        resolved,
    ]
}
