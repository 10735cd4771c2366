//! Alerts that kill their worker: while it prepares them, and in the middle of their investigation.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::json;
use tarsy::process::connect::Addresses;
use tarsy::process::shutdown;
use tarsy::roles::worker;
use tarsy::roles::worker::intake::ConfiguredIntake;
use tarsy::roles::worker::pod::Pod;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_config::{Config, process_env};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::{Intake, Planned, PrepareError, PreparedAlert, Received};
use tarsy_mask::Mask;
use tarsy_telemetry::logs;
use tarsy_telemetry::process_mask::ProcessMask;
use tarsy_telemetry::traces::TraceLayer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::support::process::Tarsy;
use crate::support::system::{Env, Setup, TestSystem};
use crate::support::wait::eventually;

/// A worker that prepares an alert with this word dies.
pub(crate) const POISON: &[u8] = b"poison-for-its-reader";
/// This variable makes a process of the test binary a worker.
const IS_WORKER: &str = "TARSY_TEST_IS_WORKER";
const WORKER: &str = "faults::poison::the_worker_process_aborts_at_a_poison_alert";
/// The model of this alert takes longer than the redelivery of an alert that killed its worker.
const SLOW_MODEL: &str = "LongDrill";
const ATTEMPTS: u32 = 3;
const LEASE: Duration = Duration::from_secs(1);

/// The intake of a worker, which aborts the process at [`POISON`].
#[derive(Debug)]
struct AbortingIntake(ConfiguredIntake);

impl Intake for AbortingIntake {
    async fn prepare(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        let body = received.body.as_deref().unwrap_or_default();
        if body.windows(POISON.len()).any(|part| part == POISON) {
            std::process::abort();
        }
        self.0.prepare(received).await
    }

    async fn plan(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Planned, PrepareError> {
        self.0.plan(received, prepared).await
    }
}

/// The program of the processes of [`Fleet`], which run this test binary. Without [`IS_WORKER`] it ends at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_process_aborts_at_a_poison_alert() {
    let Some(name) = std::env::var_os(IS_WORKER) else {
        return;
    };
    logs::install(
        "tarsy=info",
        logs::Format::Text { ansi: false },
        TraceLayer::default(),
        ProcessMask::default(),
    )
    .unwrap();
    // The aborts leave no core files.
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )
    .unwrap();
    let variable = |name: &str| std::env::var(name).unwrap();
    let config =
        Config::load(Some(&PathBuf::from(variable("TARSY_CONFIG"))), &process_env).unwrap();
    let addresses = Addresses {
        nats_url: variable("NATS_URL"),
        database_url: Some(variable("DATABASE_URL")),
        llm_addr: variable("TARSY_LLM_ADDR"),
        llm_credentials: Default::default(),
        nats_credentials: Default::default(),
        database_secrets: Default::default(),
    };
    let options = worker::Options {
        addresses,
        name: name.into_string().unwrap(),
        pod: Pod::given(
            std::env::var("TARSY_POD_UID").ok(),
            std::env::var_os("TARSY_POD_STATE").map(PathBuf::from),
        ),
        listen: "127.0.0.1:0".parse().unwrap(),
        mask: Mask::default(),
        clock_offset: Default::default(),
        drills: Default::default(),
        shown: Default::default(),
    };
    let ended = worker::run_with(
        options,
        config,
        shutdown::on_signals(shutdown::StopOn::Signal).unwrap(),
        AbortingIntake,
    )
    .await;
    // As in `main`, an error is no panic, and a hanging database call does not hold the process.
    let code = ended
        .inspect_err(|error| eprintln!("tarsy: {error:#}"))
        .is_err();
    std::process::exit(i32::from(code));
}

/// Workers that are started again when they die. Dropping the fleet kills them.
struct Fleet {
    deaths: Arc<AtomicU32>,
    end: CancellationToken,
    members: TaskTracker,
}

impl Fleet {
    async fn start(system: &TestSystem, size: usize) -> Self {
        let fleet = Self {
            deaths: Arc::default(),
            end: CancellationToken::new(),
            members: TaskTracker::new(),
        };
        for number in 1..=size {
            let env = system.env(system.database.url());
            let mut first = member(&env, number);
            first.ready().await;
            let (deaths, end) = (Arc::clone(&fleet.deaths), fleet.end.clone());
            fleet.members.spawn(async move {
                let mut worker = first;
                loop {
                    tokio::select! {
                        () = end.cancelled() => return,
                        status = worker.ended() => assert!(!status.success(), "a worker exited without being killed"),
                    }
                    deaths.fetch_add(1, Ordering::SeqCst);
                    worker = member(&env, number);
                }
            });
        }
        fleet
    }

    fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::SeqCst)
    }

    async fn stop(self) {
        self.end.cancel();
        self.members.close();
        self.members.wait().await;
    }
}

fn member(env: &Env, number: usize) -> Tarsy {
    aborting_worker(&format!("w{number}"), &env.each())
}

/// A worker that aborts when it prepares an alert with [`POISON`].
pub(crate) fn aborting_worker(name: &str, env: &[(&str, &str)]) -> Tarsy {
    let env = [env, &[(IS_WORKER, name)]].concat();
    let program = std::env::current_exe().unwrap();
    Tarsy::spawn_program(&program, name, &["--exact", WORKER, "--nocapture"], &env)
}

/// Publishes an alert with a fingerprint of its own.
async fn publish(system: &TestSystem, body: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let body = format!("{body} {session}").into_bytes();
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: "ci".parse().ok(),
        body,
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// Headers and body of the only dead letter.
async fn only_dead_letter(system: &TestSystem, session: SessionId) -> (HeaderMap, Vec<u8>) {
    let jetstream = system.jetstream().await;
    let mut stream = jetstream.get_stream("TARSY_DEAD_LETTERS").await.unwrap();
    assert_eq!(
        stream.info().await.unwrap().state.messages,
        1,
        "there is exactly one dead letter"
    );
    let subject = format!("tarsy.dead.attempts_exhausted.{session}");
    let letter = stream
        .get_last_raw_message_by_subject(&subject)
        .await
        .unwrap();
    (letter.headers, letter.payload.to_vec())
}

async fn settled(system: &TestSystem, alerts: i64) {
    let sql = "SELECT count(*) FROM alerts WHERE settled_at IS NOT NULL";
    eventually("every alert is settled", async || {
        system.database.number(sql) == alerts
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_that_kills_the_worker_preparing_it_becomes_a_dead_letter() {
    let system = TestSystem::start_with(Setup {
        lease: LEASE,
        attempts: ATTEMPTS,
        slots: 2,
        ..Setup::default()
    })
    .await;
    // All alerts are queued first, so the poison is claimed by a worker that has prepared no alert yet.
    let mut good = vec![
        publish(&system, "disk full").await,
        publish(&system, "disk full").await,
    ];
    let poison = publish(&system, std::str::from_utf8(POISON).unwrap()).await;
    good.push(publish(&system, "disk full").await);
    let mut timeline = system.follow(poison).await;
    let fleet = Fleet::start(&system, 2).await;
    eventually("a worker dies", async || fleet.deaths() > 0).await;
    good.push(publish(&system, "disk full").await);

    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type.clone(), end.session_seq, timeline.seen.len()),
        (EventType::SessionFailed, 1, 1)
    );
    assert_eq!(end.metadata["dead_letter"], "attempts_exhausted");
    assert_eq!(fleet.deaths(), ATTEMPTS);
    good.push(publish(&system, "disk full").await);
    for session in &good {
        assert_eq!(
            system.follow(*session).await.finish().await.event_type,
            EventType::SessionCompleted,
            "{session}"
        );
    }
    settled(&system, 6).await;
    system.queue_is_empty().await;
    system.assert_all_invariants().await;
    assert_eq!(fleet.deaths(), ATTEMPTS, "no further worker dies");

    let (headers, body) = only_dead_letter(&system, poison).await;
    let header = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
    assert_eq!(
        header("Tarsy-Dead-Reason").as_deref(),
        Some("attempts_exhausted")
    );
    assert_eq!(
        header("Tarsy-Dead-Detail").as_deref(),
        Some("3 workers died while they read it")
    );
    assert_eq!(
        header("Tarsy-Dead-Subject").as_deref(),
        Some("tarsy.alerts.normal.ci")
    );
    assert_eq!(header("Tarsy-Session-Id"), Some(poison.to_string()));
    assert_eq!(body, format!("poison-for-its-reader {poison}").into_bytes());
    let places = "SELECT string_agg(place || ' ' || count, ', ' ORDER BY place) FROM \
                  (SELECT place, count(*) FROM alerts GROUP BY place) x";
    assert_eq!(system.database.text(places), "dead 1, opened 5");
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions WHERE status = 'completed'"),
        5
    );
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_work_of_a_single_worker_is_not_given_up_with_a_poison_alert() {
    let transcript = Some(format!(
        "name: long\nmatch: {SLOW_MODEL}\nanswers: [{{chunks: [{{wait: 2500ms}}, {{text: done}}]}}]"
    ));
    let setup = Setup {
        lease: LEASE,
        attempts: ATTEMPTS,
        slots: 8,
        transcript,
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let mut good = vec![
        publish(&system, SLOW_MODEL).await,
        publish(&system, "disk full").await,
    ];
    let poison = publish(&system, std::str::from_utf8(POISON).unwrap()).await;
    good.extend([
        publish(&system, SLOW_MODEL).await,
        publish(&system, "disk full").await,
    ]);
    let fleet = Fleet::start(&system, 1).await;
    assert_eq!(
        system.follow(poison).await.finish().await.event_type,
        EventType::SessionFailed
    );
    for session in &good {
        assert_eq!(
            system.follow(*session).await.finish().await.event_type,
            EventType::SessionCompleted,
            "{session}"
        );
    }
    assert_eq!(fleet.deaths(), ATTEMPTS);
    settled(&system, 5).await;
    system.queue_is_empty().await;
    system.assert_all_invariants().await;
    only_dead_letter(&system, poison).await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_investigation_that_kills_its_workers_becomes_a_dead_letter() {
    let watched = &["answer-1-start"];
    let mut system = TestSystem::start_with(Setup {
        watched,
        lease: LEASE,
        attempts: ATTEMPTS,
        ..Setup::default()
    })
    .await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    for number in 1..=ATTEMPTS {
        let (mut worker, _) = system.worker(&format!("w{number}")).await;
        let held = system.gates.next().await;
        worker.kill().await;
        drop(held);
    }
    let (_survivor, _) = system.worker("survivor").await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionFailed);
    assert_eq!(end.metadata["stop_reason"], "attempts_exhausted");
    settled(&system, 1).await;
    system.queue_is_empty().await;
    let whole = "SELECT status || ' ' || stop_reason || ' ' || dead_letter FROM alert_sessions";
    assert_eq!(
        system.database.text(whole),
        "failed attempts_exhausted attempts_exhausted"
    );
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), session, 0, 1000)
        .await
        .unwrap();
    assert_eq!(timeline.seen, stored, "the stream equals the table");
    let (headers, body) = only_dead_letter(&system, session).await;
    assert_eq!(
        headers.get("Tarsy-Dead-Subject").unwrap().as_str(),
        "tarsy.alerts.critical"
    );
    assert_eq!(
        body,
        tarsy_drill::builtin("oom-killed").unwrap().alert.as_bytes()
    );
    let next = publish(&system, "disk full").await;
    system.gates.open_all();
    assert_eq!(
        system.follow(next).await.finish().await.event_type,
        EventType::SessionCompleted
    );
}
