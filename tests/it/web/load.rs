//! Many readers: the memory of each, and the time until all of them have an event. The suite has 150 readers, the proof
//! a thousand; `TARSY_WEB_READERS` sets another number.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tarsy_core::ids::SessionId;
use tokio::task::JoinSet;

use super::{Sse, Web};
use crate::support::figures::{by_depth, from_env};
use crate::support::process::metric;
use crate::support::system::TestSystem;

const READERS: usize = 150;
const READERS_IN_PROOF: usize = 1_000;
/// The budget of one reader.
const MAX_BYTES: f64 = 64.0 * 1024.0;
/// The fixed memory of the first readers: the pool and the allocator grow with them.
const FIXED_BYTES: f64 = 16.0 * 1024.0 * 1024.0;
/// Events that the session has before its readers come: calls of tools and their results. `TARSY_WEB_HISTORY` sets
/// another number.
const HISTORY: usize = 100;
/// Streams that are opened at the same time.
const AT_ONCE: usize = 200;
/// Further events; each of them reaches every reader.
const FURTHER: u32 = 20;
/// A session that nothing but the test writes.
const SESSION: &str = "INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, \
                       worker_name, chain, status, fingerprint)";
const EVENTS: &str = "INSERT INTO timeline_events (session_id, execution_id, created_at, session_seq, sequence_number, \
                      lease_epoch, iteration, event_type, status, content, metadata)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_need_little_memory_and_get_each_event_once() {
    assert_affordable(|session| format!("/api/v1/sessions/{session}/events")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_of_a_page_need_little_memory_and_get_each_row_once() {
    assert_affordable(|session| format!("/sessions/{session}/live")).await;
}

/// Opens many streams at this path, and gives each of them the same events.
async fn assert_affordable(path: impl Fn(SessionId) -> String) {
    let readers = by_depth("TARSY_WEB_READERS", READERS, READERS_IN_PROOF);
    let history = u32::try_from(from_env("TARSY_WEB_HISTORY", HISTORY)).unwrap();
    raise_file_limit(readers);
    let system = TestSystem::start(&[]).await;
    let section = format!(
        "web: {{connections: {0}, connections_per_address: {0}, streams_per_user: {0}}}\n",
        readers + 100
    );
    std::fs::write(system.file("web.yaml"), section).unwrap();
    let config = system.file("web.yaml").display().to_string();
    let web = Web::start(&system, &[("TARSY_CONFIG", &config)]).await;
    let session = SessionId(uuid::Uuid::now_v7());
    let row = format!(
        "VALUES ('{session}', now() + '1 h', now() + '1 h', '30 s', '{session}', 'w', 'default', 'running', 'f')"
    );
    system.database.execute(&format!("{SESSION} {row}"));
    store(&system, session, 1, history);
    let path = format!("{}?after={}", path(session), history - 1);
    // The first reader brings the follower, the pool and the allocator to their sizes.
    let mut first = web.stream(&path, &[]).await;
    assert_eq!(next_number(&mut first).await, history);
    let before = resident(&web).await;
    let open = async || {
        let mut stream = Sse::open(&web.address, &path, &[]).await;
        assert_eq!(next_number(&mut stream).await, history);
        stream
    };
    let mut streams: Vec<Sse> = stream::iter(0..readers)
        .map(|_| open())
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let idle = (resident(&web).await - before) / readers as f64;
    let mut times: Vec<Duration> = Vec::new();
    for number in history + 1..=history + FURTHER {
        let began = Instant::now();
        emit(&system, session, number).await;
        let mut reading = JoinSet::new();
        for mut stream in streams {
            reading.spawn(async move {
                assert_eq!(next_number(&mut stream).await, number);
                (began.elapsed(), stream)
            });
        }
        let (read, kept): (Vec<Duration>, Vec<Sse>) = reading.join_all().await.into_iter().unzip();
        times.extend(read);
        streams = kept;
    }
    let each = (resident(&web).await - before) / readers as f64;
    times.sort_unstable();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "{path}: {readers} readers: {:.1} KiB each, {:.1} KiB after {FURTHER} events; an event reaches half of them \
         after {median:?}, 99 % after {p99:?}",
        idle / 1024.0,
        each / 1024.0
    );
    let fixed = if readers < READERS_IN_PROOF {
        FIXED_BYTES
    } else {
        0.0
    };
    let most = MAX_BYTES + fixed / readers as f64;
    assert!(
        idle.max(each) <= most,
        "{idle} and {each} of {most} bytes for each reader"
    );
    assert_eq!(
        metric(&web.metrics, "tarsy_web_followers", "").await,
        1.0,
        "they share one follower"
    );
}

/// The number of the next event. Other frames have none.
async fn next_number(stream: &mut Sse) -> u32 {
    loop {
        if let Some(number) = stream.next().await.expect("the stream goes on").id {
            return number;
        }
    }
}

/// Stores events: the odd ones are calls of a tool with arguments, and each even one is the result of the call before.
fn store(system: &TestSystem, session: SessionId, from: u32, to: u32) {
    system.database.execute(&format!(
        "{EVENTS} SELECT '{session}', '{session}', now(), n, n, 1, (n + 1) / 2, \
         CASE n % 2 WHEN 1 THEN 'llm_tool_call' ELSE 'tool_result' END, 'completed', repeat('word ', 200), \
         jsonb_build_object('tool_name', 'drill.pod_logs', 'call_id', 'call-' || (n + 1) / 2) \
         FROM generate_series({from}, {to}) AS n"
    ));
}

/// Stores and publishes an event as a worker does. The key of the installation is not needed: the stream is not signed,
/// so the follower reads the event from the table.
async fn emit(system: &TestSystem, session: SessionId, number: u32) {
    store(system, session, number, number);
    let event = json!({"session_id": session, "session_seq": number});
    let client = async_nats::connect(system.nats_url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    context
        .publish(
            format!("tarsy.timeline.{session}"),
            event.to_string().into(),
        )
        .await
        .unwrap()
        .await
        .unwrap();
}

async fn resident(web: &Web) -> f64 {
    metric(&web.metrics, "process_resident_memory_bytes", "").await
}

/// Each reader needs a file here and one in the server, which inherits the limit.
fn raise_file_limit(readers: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(readers).unwrap() + 2_000;
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(current),
                maximum: limit.maximum,
            },
        )
        .unwrap();
        assert!(
            current >= wanted,
            "{readers} readers need {wanted} open files, and `ulimit -Hn` is {current}"
        );
    }
}
