//! Many readers: the memory of each, and the time until all of them have an event.

use std::time::{Duration, Instant};

use serde_json::json;
use tarsy::investigation::ids::SessionId;
use tokio::task::JoinSet;

use super::{Sse, Web};
use crate::support::process::metric;
use crate::support::system::TestSystem;

/// The budget of one reader.
const MAX_BYTES: f64 = 64.0 * 1024.0;
/// Of a session that nothing but the test writes.
const EVENT: &str =
    "INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content)";

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_need_little_memory_and_get_each_event_once() {
    let readers = number("TARSY_WEB_READERS", 1_000);
    raise_file_limit(readers);
    let system = TestSystem::start(&[]).await;
    let section =
        format!("web: {{connections: {0}, connections_per_address: {0}, streams_per_user: {0}}}\n", readers + 100);
    std::fs::write(system.file("web.yaml"), section).unwrap();
    let config = system.file("web.yaml").display().to_string();
    let web = Web::start(&system, &[("TARSY_CONFIG", &config)]).await;
    let session = SessionId(uuid::Uuid::now_v7());
    let path = format!("/api/v1/sessions/{session}/events");
    // The first reader brings the follower, the pool and the allocator to their sizes.
    let mut first = web.stream(&path, &[]).await;
    emit(&system, session, 1).await;
    assert_eq!(first.next().await.unwrap().id, Some(1));
    let before = resident(&web).await;
    let mut open = JoinSet::new();
    for _ in 0..readers {
        let (address, path) = (web.address.clone(), path.clone());
        open.spawn(async move {
            let mut stream = Sse::open(&address, &path, &[]).await;
            assert_eq!(stream.next().await.unwrap().id, Some(1));
            stream
        });
    }
    let streams = open.join_all().await;
    let each = (resident(&web).await - before) / readers as f64;
    let began = Instant::now();
    emit(&system, session, 2).await;
    let mut reading = JoinSet::new();
    for mut stream in streams {
        reading.spawn(async move {
            assert_eq!(stream.next().await.unwrap().id, Some(2));
            (began.elapsed(), stream)
        });
    }
    let mut times: Vec<Duration> = Vec::new();
    let mut kept = Vec::new();
    while let Some(read) = reading.join_next().await {
        let (time, stream) = read.unwrap();
        times.push(time);
        kept.push(stream);
    }
    times.sort_unstable();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "{readers} readers: {:.1} KiB each; an event reaches half of them after {median:?}, 99 % after {p99:?}",
        each / 1024.0
    );
    assert!(each <= MAX_BYTES, "{each} bytes for each reader");
    assert_eq!(metric(&web.metrics, "tarsy_web_followers", "").await, 1.0, "they share one follower");
}

/// Stores and publishes an event as a worker does. The key of the installation is not needed: the stream is not signed,
/// so the follower reads the event from the table.
async fn emit(system: &TestSystem, session: SessionId, number: u32) {
    if number == 1 {
        system.database.execute(&format!(
            "INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, worker_name, \
             chain, status, fingerprint) VALUES ('{session}', now() + '1 h', now() + '1 h', '30 s', '{session}', 'w', 'default', 'running', 'f')"
        ));
    }
    system
        .database
        .execute(&format!("{EVENT} VALUES ('{session}', now(), {number}, 1, 'llm_response', 'completed', 'text')"));
    let event = json!({"session_id": session, "session_seq": number});
    let client = async_nats::connect(system.nats_url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    context.publish(format!("tarsy.timeline.{session}"), event.to_string().into()).await.unwrap().await.unwrap();
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
        setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum }).unwrap();
        assert!(current >= wanted, "{readers} readers need {wanted} open files, and `ulimit -Hn` is {current}");
    }
}
