//! A stream read in order through a consumer of our own, which leaves nothing behind.
//!
//! async-nats' ordered consumer can be silent for 16 s after a server was killed. This one misses a heartbeat after
//! about a second, and whoever reads it opens another one behind the last message it got.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::{self, Context};

use crate::bus::connection::Nats;
use crate::bus::error::Error;
use crate::bus::queue::pull::{Answer, Inbox};

const HEARTBEAT: Duration = Duration::from_millis(500);
const HEARTBEAT_MISSING: Duration = Duration::from_millis(1250);
const EXPIRES: Duration = Duration::from_secs(30);
const INACTIVE: Duration = Duration::from_secs(10);
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// A page of messages may be as large as the server's `max_payload` each.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);
const BATCH: usize = 256;
const PAGE: usize = 32;

/// An ordered, gap-free reader, until its first error.
#[derive(Debug)]
pub(crate) struct Reader {
    context: Context,
    consumer: Consumer<Config>,
    inbox: Inbox,
    requests: usize,
    consumer_sequence: u64,
    /// What is left of the last request.
    left: usize,
}

/// A message and where it is on the stream.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) message: async_nats::Message,
    pub(crate) stream_sequence: u64,
    /// Unix time in nanoseconds.
    pub(crate) stored_at_ns: i128,
}

impl Reader {
    /// Reads what `filter` lets through from stream sequence `from` on; from the first message for 0.
    pub(crate) async fn open(nats: &Nats, stream: &str, filter: String, from: u64) -> Result<Self, Error> {
        let opened = tokio::time::timeout(OPEN_TIMEOUT, async {
            let inbox = Inbox::open(nats).await?;
            let name = format!("watch_{}", inbox.reply_to(0).rsplit('.').nth(1).unwrap_or_default());
            let config = Config {
                // Named, so that the server can police the filter: it is part of the subject of the request.
                name: Some(name),
                filter_subject: filter,
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
            let consumer = nats.jetstream().create_consumer_on_stream(config, stream).await;
            let consumer = consumer.map_err(|error| Error::Unavailable(format!("{stream}: {error}")))?;
            let context = nats.jetstream().clone();
            Ok(Self { context, consumer, inbox, requests: 0, consumer_sequence: 0, left: 0 })
        });
        opened.await.unwrap_or_else(|_| Err(Error::Unavailable(format!("{stream}: no consumer in time"))))
    }

    /// The next message, when it comes. After an error the reader is of no more use. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Read, Error> {
        loop {
            if self.left == 0 {
                self.ask(BatchConfig {
                    batch: BATCH,
                    expires: Some(EXPIRES),
                    idle_heartbeat: HEARTBEAT,
                    ..BatchConfig::default()
                })
                .await?;
            }
            let answer = tokio::time::timeout(HEARTBEAT_MISSING, self.inbox.next()).await;
            match answer.map_err(|_| Error::Unavailable("a heartbeat is missing".to_owned()))? {
                Answer::Message(message) => return self.read(*message),
                Answer::Over(number) if number + 1 == self.requests => self.left = 0,
                Answer::Heartbeat(_) | Answer::Over(_) => {}
                Answer::Lost(reason) => return Err(Error::Unavailable(reason)),
            }
        }
    }

    /// The next message that is there now; `None` when there is none. Not to be mixed with `next`.
    pub(crate) async fn next_stored(&mut self) -> Result<Option<Read>, Error> {
        if self.left == 0 {
            self.ask(BatchConfig { batch: PAGE, no_wait: true, ..BatchConfig::default() }).await?;
        }
        let mut is_first = self.left == PAGE;
        loop {
            let answer = tokio::time::timeout(PAGE_TIMEOUT, self.inbox.next()).await;
            match answer.map_err(|_| Error::Unavailable("no answer from the stream".to_owned()))? {
                Answer::Message(message) => return self.read(*message).map(Some),
                Answer::Over(number) if number + 1 == self.requests => {
                    self.left = 0;
                    if is_first {
                        return Ok(None);
                    }
                    // The page ended early: only the next one tells whether that was all.
                    is_first = true;
                    self.ask(BatchConfig { batch: PAGE, no_wait: true, ..BatchConfig::default() }).await?;
                }
                Answer::Heartbeat(_) | Answer::Over(_) => {}
                Answer::Lost(reason) => return Err(Error::Unavailable(reason)),
            }
        }
    }

    fn read(&mut self, message: async_nats::Message) -> Result<Read, Error> {
        let message = jetstream::Message { message, context: self.context.clone() };
        let info = message.info().map_err(|error| Error::Unavailable(error.to_string()))?;
        if info.consumer_sequence != self.consumer_sequence + 1 {
            return Err(Error::Unavailable("a message of the stream was lost on its way".to_owned()));
        }
        self.consumer_sequence = info.consumer_sequence;
        self.left = self.left.saturating_sub(1);
        let (stream_sequence, stored_at_ns) = (info.stream_sequence, info.published.unix_timestamp_nanos());
        Ok(Read { message: message.message, stream_sequence, stored_at_ns })
    }

    async fn ask(&mut self, request: BatchConfig) -> Result<(), Error> {
        let reply_to = self.inbox.reply_to(self.requests);
        let batch = request.batch;
        let sent = tokio::time::timeout(OPEN_TIMEOUT, self.consumer.request_batch(request, reply_to.into())).await;
        let sent = sent.map_err(|_| Error::Unavailable("the connection takes no pull request".to_owned()))?;
        sent.map_err(|error| Error::Unavailable(error.to_string()))?;
        self.requests += 1;
        self.left = batch;
        Ok(())
    }
}
