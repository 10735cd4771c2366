//! An outbox in memory, for the tests of feed and followers, and builders of events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tarsy_bus::timeline_subject;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventStatus, EventType, TimelineEvent};
use tarsy_engine::ports::{EventKey, Outbox, StoreError, Tail};
use tokio::sync::watch;
use uuid::Uuid;

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Mutex<Vec<TimelineEvent>>,
    last_read: watch::Sender<u32>,
    tail: Arc<Tail>,
    reads: AtomicUsize,
}

impl Table {
    pub(super) fn new(events: Vec<TimelineEvent>) -> Self {
        Self {
            rows: Mutex::new(events),
            last_read: watch::Sender::default(),
            tail: Arc::default(),
            reads: AtomicUsize::default(),
        }
    }

    /// The number after which the last read began.
    pub(super) fn last_read(&self) -> watch::Receiver<u32> {
        self.last_read.subscribe()
    }

    /// The number of times that the table was read.
    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Puts other rows into the table, as a failover without its last commits does.
    pub(super) fn replace(&self, events: Vec<TimelineEvent>) {
        *self.rows.lock().unwrap() = events;
    }

    /// Adds an event, as a process that commits it does.
    pub(super) fn commit(&self, event: TimelineEvent) {
        self.add(event.clone());
        self.tail.push(vec![event]);
    }

    pub(super) fn add(&self, event: TimelineEvent) {
        self.rows.lock().unwrap().push(event);
    }
}

impl Outbox for Table {
    async fn events(
        &self,
        session: SessionId,
        after: u32,
        limit: u32,
    ) -> Result<Vec<TimelineEvent>, StoreError> {
        self.last_read.send_replace(after);
        self.reads.fetch_add(1, Ordering::Relaxed);
        let rows = self.rows.lock().unwrap();
        let rows = rows
            .iter()
            .filter(|row| row.session_id == session && row.session_seq > after);
        Ok(rows.take(limit as usize).cloned().collect())
    }

    fn tail(&self, _session: SessionId) -> Arc<Tail> {
        Arc::clone(&self.tail)
    }

    async fn event_key(&self) -> Result<EventKey, StoreError> {
        Ok(EventKey(vec![7; 32]))
    }
}

pub(super) fn new_session() -> SessionId {
    SessionId(Uuid::now_v7())
}

pub(super) fn event(session_id: SessionId, session_seq: u32) -> TimelineEvent {
    TimelineEvent {
        session_id,
        session_seq,
        execution_id: Some(ExecutionId::derive(session_id, 1, 1)),
        sequence_number: Some(session_seq),
        stage: Some("analysis".into()),
        agent: Some("kubernetes".into()),
        iteration: Some(session_seq),
        attempt: Some(1),
        event_type: EventType::LlmResponse,
        status: EventStatus::Completed,
        content: format!("event {session_seq}"),
        metadata: json!({"n": session_seq}),
        created_at: chrono::DateTime::from_timestamp_micros(
            1_790_000_000_000_000 + i64::from(session_seq),
        )
        .unwrap(),
        truncated: false,
    }
}

pub(super) fn end(session_id: SessionId, session_seq: u32) -> TimelineEvent {
    TimelineEvent {
        execution_id: None,
        sequence_number: None,
        stage: None,
        agent: None,
        iteration: None,
        attempt: None,
        event_type: EventType::SessionCompleted,
        metadata: Value::Null,
        ..event(session_id, session_seq)
    }
}

/// `count` events, the last of which is the end event.
pub(super) fn history(session: SessionId, count: u32) -> Vec<TimelineEvent> {
    (1..count)
        .map(|seq| event(session, seq))
        .chain([end(session, count)])
        .collect()
}

/// The events of a session on the stream, as a foreign client reads them.
pub(super) async fn on_stream(
    jetstream: &async_nats::jetstream::Context,
    session: SessionId,
) -> Vec<TimelineEvent> {
    let subject = timeline_subject(session);
    let stream = jetstream.get_stream("TARSY_TIMELINE").await.unwrap();
    let mut events = Vec::new();
    let mut sequence = 0;
    while let Ok(message) = stream
        .raw_message_builder()
        .sequence(sequence + 1)
        .next_by_subject(&*subject)
        .send()
        .await
    {
        sequence = message.sequence;
        events.push(serde_json::from_slice(&message.payload).unwrap());
    }
    events
}

/// Polls until the session's subject has `count` messages.
pub(super) async fn until_on_stream(
    jetstream: &async_nats::jetstream::Context,
    session: SessionId,
    count: usize,
) {
    let subject = timeline_subject(session);
    loop {
        let mut stream = jetstream
            .get_stream_no_info("TARSY_TIMELINE")
            .await
            .unwrap();
        let published = message_count(&mut stream, &subject).await;
        if published >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await; // pacing of looks: a stream emits no signal
    }
}

async fn message_count(
    stream: &mut async_nats::jetstream::stream::Stream<()>,
    subject: &str,
) -> usize {
    use futures_util::TryStreamExt;
    let subjects = stream.info_with_subjects(subject).await.unwrap();
    subjects
        .try_collect::<Vec<(String, usize)>>()
        .await
        .unwrap()
        .into_iter()
        .map(|(_, count)| count)
        .sum()
}
