//! The watchers: one reads the whole stream during the run, some follow a session from before its start through a link
//! with faults, and some start after its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::{self, Context};
use chrono::{DateTime, Utc};
use futures_util::StreamExt as _;
use tarsy_bus::{ConnectRetry, Follower, Nats, Options, TimelineUpdate};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::facts::{Shown, Watched};
use super::system::System;

const PAUSE: Duration = Duration::from_millis(200);
/// Without a message for this time the reader checks whether the stream was created again.
const SILENCE: Duration = Duration::from_secs(5);
/// Time for a watcher to receive the rest when all sessions have ended.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of sessions that late watchers follow.
const LATE: usize = 20;

/// All events that were on the stream, by session.
pub(super) type Everything = BTreeMap<SessionId, Vec<Shown>>;

/// Reads the timeline stream until `end`, also when the stream is lost and created again.
pub(super) async fn read_everything(
    nats_url: String,
    seen: Arc<Mutex<Everything>>,
    end: CancellationToken,
) {
    let mut place = Place::default();
    let reading = async {
        loop {
            // After any interruption the next read continues at the same position.
            read(&nats_url, &seen, &mut place).await;
            tokio::time::sleep(PAUSE).await; // pacing of tries
        }
    };
    tokio::select! {
        () = end.cancelled() => {}
        () = reading => {}
    }
}

/// Position of a reader and identity of its stream: a lost stream is created again under its name.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    created: i128,
    sequence: u64,
}

async fn read(nats_url: &str, seen: &Mutex<Everything>, place: &mut Place) -> Option<()> {
    let jetstream = jetstream::new(async_nats::connect(nats_url).await.ok()?);
    let stream = jetstream.get_stream(tarsy_bus::TIMELINE).await.ok()?;
    let created = stream.cached_info().created.unix_timestamp_nanos();
    if created != place.created {
        *place = Place {
            created,
            sequence: 0,
        };
    }
    let deliver_policy = DeliverPolicy::ByStartSequence {
        start_sequence: place.sequence + 1,
    };
    let consumer = stream
        .create_consumer(OrderedConfig {
            deliver_policy,
            ..OrderedConfig::default()
        })
        .await
        .ok()?;
    let mut messages = consumer.messages().await.ok()?;
    while let Some(message) = tokio::time::timeout(SILENCE, messages.next()).await.ok()? {
        let message = message.ok()?;
        let info = message.info().ok()?;
        if info.stream_sequence <= place.sequence {
            continue;
        }
        place.sequence = info.stream_sequence;
        let at = DateTime::from_timestamp_nanos(
            i64::try_from(info.published.unix_timestamp_nanos()).ok()?,
        );
        let event: TimelineEvent = serde_json::from_slice(&message.payload).expect("an event");
        seen.lock()
            .unwrap()
            .entry(event.session_id)
            .or_default()
            .push(Shown { at, event });
    }
    None
}

/// All events that are on the timeline stream now.
pub(super) async fn on_stream(system: &System) -> BTreeMap<SessionId, Vec<TimelineEvent>> {
    let (jetstream, mut found) = (
        connect(system).await,
        BTreeMap::<_, Vec<TimelineEvent>>::new(),
    );
    for message in messages(&jetstream, tarsy_bus::TIMELINE).await {
        let event: TimelineEvent = serde_json::from_slice(&message.payload).expect("an event");
        found.entry(event.session_id).or_default().push(event);
    }
    found
}

/// Reason and alert of each dead letter.
pub(super) async fn letters(system: &System) -> std::collections::BTreeSet<(String, SessionId)> {
    let found = messages(&connect(system).await, tarsy_bus::DEAD_LETTERS).await;
    let letter = |message: &jetstream::Message| {
        let mut parts = message.subject.split('.').skip(2);
        Some((parts.next()?.to_owned(), SessionId::parse(parts.next()?)?))
    };
    found.iter().filter_map(letter).collect()
}

async fn connect(system: &System) -> Context {
    jetstream::new(async_nats::connect(&system.nats_url).await.unwrap())
}

async fn messages(jetstream: &Context, stream: &str) -> Vec<jetstream::Message> {
    let stream = jetstream.get_stream(stream).await.unwrap();
    let state = &stream.cached_info().state;
    let (left, last) = (state.messages, state.last_sequence);
    if left == 0 {
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut messages = stream
        .create_consumer(OrderedConfig::default())
        .await
        .unwrap()
        .messages()
        .await
        .unwrap();
    while let Some(message) = messages.next().await {
        let message = message.unwrap();
        let sequence = message.info().unwrap().stream_sequence;
        all.push(message);
        if sequence >= last {
            break;
        }
    }
    all
}

/// Follows each received session through the watchers' link; returns the seen events when all have ended.
pub(super) async fn follow(
    system: Arc<System>,
    mut sessions: mpsc::UnboundedReceiver<SessionId>,
) -> Vec<Watched> {
    let url = format!("nats://127.0.0.1:{}", system.watch_link.port());
    let options = Options {
        url,
        role: "chaos".to_owned(),
        credentials: Default::default(),
        retry: ConnectRetry::Forever,
    };
    let nats = Nats::connect(&options).await.unwrap();
    let store = Arc::new(system.database.store());
    let mut following = JoinSet::new();
    while let Some(session) = sessions.recv().await {
        let watched = Watched {
            by: "a watcher from the beginning",
            session,
            after: 0,
            seen: Vec::new(),
        };
        following.spawn(follow_session(nats.clone(), Arc::clone(&store), watched));
    }
    collected(following).await
}

/// Follows ended sessions, from the first number and from one in the middle.
pub(super) async fn follow_late(system: &System, over: &BTreeMap<SessionId, u32>) -> Vec<Watched> {
    let retry = ConnectRetry::UpTo(Duration::from_secs(20));
    let options = Options {
        url: system.nats_url.clone(),
        role: "chaos".to_owned(),
        credentials: Default::default(),
        retry,
    };
    let nats = Nats::connect(&options).await.unwrap();
    let store = Arc::new(system.database.store());
    let mut following = JoinSet::new();
    let step = (over.len() / LATE).max(1);
    for (session, events) in over.iter().step_by(step) {
        for (by, after) in [
            ("a late watcher", 0),
            ("a watcher from the middle", events / 2),
        ] {
            let watched = Watched {
                by,
                session: *session,
                after,
                seen: Vec::new(),
            };
            following.spawn(follow_session(nats.clone(), Arc::clone(&store), watched));
        }
    }
    collected(following).await
}

/// Adds the events of the session, up to its end.
async fn follow_session(nats: Nats, store: Arc<Store>, mut watched: Watched) -> Watched {
    let mut follower = Follower::start(&nats, watched.session, watched.after, Some(store));
    while let Some(item) = follower.next().await {
        if let TimelineUpdate::Event(event) = item {
            watched.seen.push(event);
        }
    }
    watched
}

/// Waits for the watchers. Omits those that do not end, which the checker finds by their missing events.
async fn collected(mut following: JoinSet<Watched>) -> Vec<Watched> {
    let mut all = Vec::new();
    let limit = tokio::time::Instant::now() + TIMEOUT;
    while let Ok(Some(watched)) = tokio::time::timeout_at(limit, following.join_next()).await {
        all.push(watched.expect("a watcher"));
    }
    if !following.is_empty() {
        println!("{} watchers have not received the end", following.len());
    }
    all
}

/// A time as the histories show it.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S%.3f").to_string()
}
