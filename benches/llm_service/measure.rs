//! Measures one LLM service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::client::{Answer, connect};
use crate::clock;
use crate::process::ServiceProcess;
use crate::script::Script;
use crate::table::Figure;

/// Chunks of each stream whose speed is measured.
const CHUNKS: u32 = 100_000;
const FIRST_CHUNKS: usize = 500;
pub(crate) const STREAMS: u32 = 1_000;
/// Other services may let one connection have no more than 200 streams at once.
const CONNECTIONS: usize = 8;
/// The time limit for the memory of a service that has nothing to do.
const IDLE: Duration = Duration::from_secs(2);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Every figure, in the order of the table.
pub(crate) async fn all(service: &ServiceProcess) -> Vec<Figure> {
    // Its start needs memory for a moment.
    tokio::time::sleep(IDLE).await;
    let mut figures = vec![Figure::kib("memory when idle", service.memory())];
    let channel = connect(&service.address).await;
    figures.extend(first_chunks(&channel).await);
    figures.extend(long_stream(service, &channel).await);
    figures.extend(speed(service, &channel, 1).await);
    figures.extend(speed(service, &channel, 8).await);
    figures.extend(slow_streams(service).await);
    figures
}

/// The time of the first chunk through the service, one stream after the other.
async fn first_chunks(channel: &Channel) -> Vec<Figure> {
    let script = Script {
        chunks: 3,
        delay: Duration::from_millis(5),
        pause: Duration::from_millis(2),
    };
    let mut delays = Vec::new();
    for _stream in 0..FIRST_CHUNKS {
        let mut answer = Answer::begin(channel, script).await;
        delays.push(answer.chunk().await.expect("a chunk"));
        while answer.chunk().await.is_some() {}
    }
    delays.sort_unstable();
    let quantile = |percent: usize| delays[(delays.len() - 1) * percent / 100];
    vec![
        Figure::time("first chunk, median", quantile(50)),
        Figure::time("first chunk, 99 %", quantile(99)),
    ]
}

/// The memory that one stream of many small chunks adds.
async fn long_stream(service: &ServiceProcess, channel: &Channel) -> Vec<Figure> {
    let before = service.memory();
    let most = Arc::new(AtomicU64::new(before));
    let mut answer = Answer::begin(
        channel,
        Script {
            chunks: CHUNKS,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
        },
    )
    .await;
    let mut sampled = clock();
    let mut chunks = 0;
    while answer.chunk().await.is_some() {
        chunks += 1;
        if clock() - sampled > SAMPLE_INTERVAL {
            most.fetch_max(service.memory(), Ordering::Relaxed);
            sampled = clock();
        }
    }
    assert_eq!(chunks, CHUNKS, "chunks of a whole answer");
    most.fetch_max(service.memory(), Ordering::Relaxed);
    vec![Figure::kib(
        "memory added by 100,000 chunks in one stream",
        most.load(Ordering::Relaxed) - before,
    )]
}

/// Chunks a second through the service, and its processor time for each.
async fn speed(service: &ServiceProcess, channel: &Channel, streams: u32) -> Vec<Figure> {
    let script = Script {
        chunks: CHUNKS,
        delay: Duration::ZERO,
        pause: Duration::ZERO,
    };
    let (began, used) = (clock(), service.processor_time());
    let mut reading = JoinSet::new();
    for _stream in 0..streams {
        let channel = channel.clone();
        reading.spawn(async move {
            let mut answer = Answer::begin(&channel, script).await;
            let mut chunks = 0;
            while answer.chunk().await.is_some() {
                chunks += 1;
            }
            chunks
        });
    }
    let chunks: u32 = reading.join_all().await.into_iter().sum();
    assert_eq!(chunks, streams * CHUNKS, "chunks of whole answers");
    let (took, used) = (clock() - began, service.processor_time() - used);
    let name = if streams == 1 {
        "one stream".to_owned()
    } else {
        format!("{streams} streams")
    };
    vec![
        Figure::rate(
            &format!("chunks a second, {name}"),
            f64::from(chunks) / took.as_secs_f64(),
        ),
        Figure::time(&format!("processor time of a chunk, {name}"), used / chunks),
    ]
}

/// The memory of many streams that are open at once and get a chunk a second.
async fn slow_streams(service: &ServiceProcess) -> Vec<Figure> {
    let script = Script {
        chunks: 60,
        delay: Duration::ZERO,
        pause: Duration::from_secs(1),
    };
    let before = service.memory();
    let (begun, all_begun) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(Barrier::new(STREAMS as usize + 1)),
    );
    let mut channels = Vec::new();
    for _connection in 0..CONNECTIONS {
        channels.push(connect(&service.address).await);
    }
    let began = clock();
    let mut reading = JoinSet::new();
    for stream in 0..STREAMS {
        let (channel, begun, all_begun) = (
            channels[stream as usize % CONNECTIONS].clone(),
            Arc::clone(&begun),
            Arc::clone(&all_begun),
        );
        reading.spawn(async move {
            let mut answer = Answer::begin(&channel, script).await;
            answer.chunk().await.expect("a first chunk");
            begun.fetch_add(1, Ordering::Relaxed);
            all_begun.wait().await;
            // Everything from here on is read as it comes.
            let mut latest = Duration::ZERO;
            for _chunk in 0..3 {
                latest = latest.max(answer.chunk().await.expect("a chunk"));
            }
            all_begun.wait().await;
            latest
        });
    }
    let opened = tokio::time::timeout(Duration::from_secs(50), all_begun.wait()).await;
    assert!(
        opened.is_ok(),
        "{} of {STREAMS} streams are open",
        begun.load(Ordering::Relaxed)
    );
    let took = clock() - began;
    all_begun.wait().await;
    let added = service.memory() - before;
    let worst = reading
        .join_all()
        .await
        .into_iter()
        .max()
        .expect("a stream");
    vec![
        Figure::time("until 1,000 streams have their first chunk", took),
        Figure::kib(
            "memory of an open stream, of 1,000 slow ones",
            added / u64::from(STREAMS),
        ),
        Figure::time("slowest chunk of 1,000 slow streams", worst),
    ]
}
