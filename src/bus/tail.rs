//! A session's subject on the stream, read through a consumer of our own.
//!
//! async-nats' ordered consumer can be silent for 16 s after a server was killed. This one misses a heartbeat after
//! about a second, and whoever reads it opens another one behind the last message it got.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::{self, Context};

use super::connection::Nats;
use super::error::Error;
use super::names::{TIMELINE, timeline_subject};
use super::pull::{Answer, Inbox};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;

const HEARTBEAT: Duration = Duration::from_millis(500);
const HEARTBEAT_MISSING: Duration = Duration::from_millis(1250);
const EXPIRES: Duration = Duration::from_secs(30);
const INACTIVE: Duration = Duration::from_secs(10);
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const BATCH: usize = 256;

/// An ordered, gap-free reader, until its first error.
#[derive(Debug)]
pub(super) struct Tail {
    context: Context,
    consumer: Consumer<Config>,
    inbox: Inbox,
    requests: usize,
    in_batch: usize,
    consumer_sequence: u64,
}

/// An event and where it is on the stream.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) stream_sequence: u64,
    /// `None` for a message that is no event.
    pub(super) event: Option<TimelineEvent>,
}

impl Tail {
    /// Reads the messages of `session` from stream sequence `from` on; from the first for 0.
    pub(super) async fn open(nats: &Nats, session: SessionId, from: u64) -> Result<Self, Error> {
        let opened = tokio::time::timeout(OPEN_TIMEOUT, async {
            let inbox = Inbox::open(nats).await?;
            let name = format!("watch_{}", inbox.reply_to(0).rsplit('.').nth(1).unwrap_or_default());
            let config = Config {
                // Named, so that the server can police the filter: it is part of the subject of the request.
                name: Some(name),
                filter_subject: timeline_subject(session),
                deliver_policy: match from {
                    0 => DeliverPolicy::All,
                    start_sequence => DeliverPolicy::ByStartSequence { start_sequence },
                },
                ack_policy: AckPolicy::None,
                replay_policy: ReplayPolicy::Instant,
                memory_storage: true,
                num_replicas: 1,
                inactive_threshold: INACTIVE,
                ..Config::default()
            };
            let consumer = nats.jetstream().create_consumer_on_stream(config, TIMELINE).await;
            let consumer = consumer.map_err(|error| Error::Away(error.to_string()))?;
            let context = nats.jetstream().clone();
            let mut tail = Self { context, consumer, inbox, requests: 0, in_batch: 0, consumer_sequence: 0 };
            tail.ask().await?;
            Ok(tail)
        });
        opened.await.unwrap_or_else(|_| Err(Error::Away("no consumer in time".to_owned())))
    }

    /// The next message. After an error the reader is of no more use. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Placed, Error> {
        loop {
            let answer = tokio::time::timeout(HEARTBEAT_MISSING, self.inbox.next()).await;
            match answer.map_err(|_| Error::Away("a heartbeat is missing".to_owned()))? {
                Answer::Message(message) => return self.placed(*message).await,
                Answer::Over(number) if number + 1 == self.requests => self.ask().await?,
                Answer::Heartbeat(_) | Answer::Over(_) => {}
                Answer::Lost(reason) => return Err(Error::Away(reason)),
            }
        }
    }

    async fn placed(&mut self, message: async_nats::Message) -> Result<Placed, Error> {
        let message = jetstream::Message { message, context: self.context.clone() };
        let info = message.info().map_err(|error| Error::Away(error.to_string()))?;
        if info.consumer_sequence != self.consumer_sequence + 1 {
            return Err(Error::Away("a message of the stream was lost on its way".to_owned()));
        }
        self.consumer_sequence = info.consumer_sequence;
        let stream_sequence = info.stream_sequence;
        let event = serde_json::from_slice(&message.payload);
        if let Err(error) = &event {
            tracing::warn!(subject = %message.subject, stream_sequence, %error, "a message on the timeline is no event");
        }
        self.in_batch += 1;
        if self.in_batch == BATCH {
            self.ask().await?;
        }
        Ok(Placed { stream_sequence, event: event.ok() })
    }

    async fn ask(&mut self) -> Result<(), Error> {
        let number = self.requests;
        self.requests += 1;
        self.in_batch = 0;
        let request =
            BatchConfig { batch: BATCH, expires: Some(EXPIRES), idle_heartbeat: HEARTBEAT, ..BatchConfig::default() };
        let sent = self.consumer.request_batch(request, self.inbox.reply_to(number).into()).await;
        sent.map_err(|error| Error::Away(error.to_string()))
    }
}

/// The last event on a session's subject, if there is one.
pub(super) async fn last_event(nats: &Nats, session: SessionId) -> Result<Option<TimelineEvent>, Error> {
    use async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
    let away = |error: &dyn std::error::Error| Error::Away(error.to_string());
    let read = async {
        let stream = nats.jetstream().get_stream_no_info(TIMELINE).await.map_err(|error| away(&error))?;
        match stream.get_last_raw_message_by_subject(&timeline_subject(session)).await {
            Ok(message) => Ok(serde_json::from_slice(&message.payload).ok()),
            Err(error) if matches!(error.kind(), NoMessageFound) => Ok(None),
            Err(error) => Err(away(&error)),
        }
    };
    let read = tokio::time::timeout(OPEN_TIMEOUT, read).await;
    read.unwrap_or_else(|_| Err(Error::Away("no answer from the stream".to_owned())))
}
