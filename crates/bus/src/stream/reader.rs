//! Reads a stream in order through an ephemeral consumer.
//!
//! async-nats' ordered consumer can be silent for 16 s after a server was killed. This one notices a missing heartbeat
//! after about a second; its caller then opens another reader after the last message.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::{self, Context};

use crate::connection::Nats;
use crate::error::{Error, within};
use crate::stream::pull::{PullInbox, PullReply};

const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(1250);
const PULL_TIMEOUT: Duration = Duration::from_secs(30);
const INACTIVE_TIMEOUT: Duration = Duration::from_secs(10);
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
/// Long: each message of a page may be as large as the server's `max_payload`.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);
const BATCH_MESSAGES: usize = 256;
const PAGE_MESSAGES: usize = 32;

/// Reads messages in order and without a gap, until its first error.
#[derive(Debug)]
pub(crate) struct StreamReader {
    context: Context,
    consumer: Consumer<Config>,
    inbox: PullInbox,
    requests: usize,
    consumer_sequence: u64,
    /// Messages that the server may still send for the last request.
    left: usize,
}

/// A message of a stream.
#[derive(Debug)]
pub(crate) struct ReadMessage {
    pub message: async_nats::Message,
    pub stream_sequence: u64,
    /// Unix time in nanoseconds.
    pub(crate) stored_at_ns: i128,
}

impl StreamReader {
    /// Reads the messages on `filter` from stream sequence `from` on; 0 means from the first message.
    pub(crate) async fn open(
        nats: &Nats,
        stream: &str,
        filter: String,
        from: u64,
    ) -> Result<Self, Error> {
        let open = async {
            let inbox = PullInbox::open(nats).await?;
            let name = format!(
                "watch_{}",
                inbox.reply_to(0).rsplit('.').nth(1).unwrap_or_default()
            );
            let config = Config {
                // Only the request for a named consumer has the filter in its subject, where permissions apply to it.
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
                inactive_threshold: INACTIVE_TIMEOUT,
                ..Config::default()
            };
            let consumer = nats
                .jetstream
                .create_consumer_on_stream(config, stream)
                .await;
            let consumer =
                consumer.map_err(|error| Error::Unavailable(format!("{stream}: {error}")))?;
            Ok(Self {
                context: nats.jetstream.clone(),
                consumer,
                inbox,
                requests: 0,
                consumer_sequence: 0,
                left: 0,
            })
        };
        within::<_, Error>(OPEN_TIMEOUT, format!("{stream}: no consumer in time"), open).await
    }

    /// Waits for the next message. After an error the reader cannot be used any more. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<ReadMessage, Error> {
        loop {
            if self.left == 0 {
                self.request(BatchConfig {
                    batch: BATCH_MESSAGES,
                    expires: Some(PULL_TIMEOUT),
                    idle_heartbeat: HEARTBEAT_INTERVAL,
                    ..BatchConfig::default()
                })
                .await?;
            }
            if let Some(read) = self
                .next_of_request(HEARTBEAT_TIMEOUT, "a heartbeat is missing")
                .await?
            {
                return Ok(read);
            }
        }
    }

    /// The next stored message; `None` at the end of the stream. Do not mix it with `next`.
    pub(crate) async fn next_available(&mut self) -> Result<Option<ReadMessage>, Error> {
        loop {
            if self.left == 0 {
                self.request(BatchConfig {
                    batch: PAGE_MESSAGES,
                    no_wait: true,
                    ..BatchConfig::default()
                })
                .await?;
            }
            let is_first = self.left == PAGE_MESSAGES;
            let read = self
                .next_of_request(PAGE_TIMEOUT, "no answer from the stream")
                .await?;
            // A page that ends early does not show whether the stream has more messages: only the next page does.
            if read.is_some() || is_first {
                return Ok(read);
            }
        }
    }

    /// The next message of the last request; `None` when the request has ended. Waits for `limit` without a reply.
    async fn next_of_request(
        &mut self,
        limit: Duration,
        silence: &str,
    ) -> Result<Option<ReadMessage>, Error> {
        loop {
            let reply = tokio::time::timeout(limit, self.inbox.next()).await;
            match reply.map_err(|_| Error::Unavailable(silence.to_owned()))? {
                PullReply::Message(message) => return self.read(*message).map(Some),
                PullReply::Ended(number) if number + 1 == self.requests => {
                    self.left = 0;
                    return Ok(None);
                }
                PullReply::Heartbeat(_) | PullReply::Ended(_) => {}
                PullReply::Lost(reason) => return Err(Error::Unavailable(reason)),
            }
        }
    }

    fn read(&mut self, message: async_nats::Message) -> Result<ReadMessage, Error> {
        let message = jetstream::Message {
            message,
            context: self.context.clone(),
        };
        let info = message
            .info()
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        if info.consumer_sequence != self.consumer_sequence + 1 {
            return Err(Error::Unavailable(
                "a message of the stream was lost on its way".to_owned(),
            ));
        }
        self.consumer_sequence = info.consumer_sequence;
        self.left = self.left.saturating_sub(1);
        Ok(ReadMessage {
            stream_sequence: info.stream_sequence,
            stored_at_ns: info.published.unix_timestamp_nanos(),
            message: message.message,
        })
    }

    async fn request(&mut self, request: BatchConfig) -> Result<(), Error> {
        let reply_to = self.inbox.reply_to(self.requests);
        let batch = request.batch;
        let sent = self.consumer.request_batch(request, reply_to.into());
        within(OPEN_TIMEOUT, "the connection takes no pull request", sent).await?;
        self.requests += 1;
        self.left = batch;
        Ok(())
    }
}
