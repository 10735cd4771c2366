//! `JetStreamPeople`, which delivers the messages of people to a worker: implements the port `PeopleMessages`.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream;
use async_nats::jetstream::consumer::Consumer;
use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use uuid::Uuid;

use super::signature::{ChannelKeys, SIGNATURE, Signed};
use crate::connection::Nats;
use crate::error::{Error, within};
use crate::names::{PEOPLE, RECORDER};
use crate::queue::claims::stored_at;
use crate::queue::delivery::JetStreamDelivery;
use crate::stream::pull::{PullInbox, PullReply};
use tarsy_core::approvals::PeopleSubject;
use tarsy_engine::ports::{BrokerUnavailable, PeopleMessage, PeopleMessages, Proof};

/// The messages that one request asks for. What a worker has asked for waits for it, so these are few.
const BATCH: usize = 8;
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
const PULL_TIMEOUT: Duration = Duration::from_secs(30);
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The messages of people, through the durable consumer that all workers share.
#[derive(Debug)]
pub struct JetStreamPeople {
    nats: Nats,
    keys: ChannelKeys,
    /// `None` before the first request and after an error.
    pulling: Option<Pulling>,
}

#[derive(Debug)]
struct Pulling {
    consumer: Consumer<Config>,
    inbox: PullInbox,
    requests: usize,
    /// Messages that the server may still send for the last request.
    left: usize,
}

impl JetStreamPeople {
    pub fn new(nats: &Nats, keys: ChannelKeys) -> Self {
        Self {
            nats: nats.clone(),
            keys,
            pulling: None,
        }
    }

    async fn receive(&mut self) -> Result<PeopleMessage<JetStreamDelivery>, Error> {
        loop {
            let pulling = match &mut self.pulling {
                Some(pulling) => pulling,
                None => self.pulling.insert(Pulling::open(&self.nats).await?),
            };
            let message = pulling.next().await?;
            if let Some(read) = self.read(message) {
                return Ok(read);
            }
        }
    }

    /// `None` for a message that the consumer has not delivered, which nothing can answer.
    fn read(&self, message: async_nats::Message) -> Option<PeopleMessage<JetStreamDelivery>> {
        let reply = message.reply.clone()?;
        let message = jetstream::Message {
            message,
            context: self.nats.jetstream.clone(),
        };
        let stored_at = stored_at(message.info().ok()?.published.unix_timestamp_nanos());
        let subject = message.subject.to_string();
        let address = PeopleSubject::parse(&subject);
        let header = |name: &str| {
            let headers = message.headers.as_ref()?;
            headers.get(name).map(|value| value.as_str().to_owned())
        };
        let id = header(NATS_MESSAGE_ID.as_ref());
        let signed = Signed {
            subject: &subject,
            id: id.as_deref().unwrap_or_default(),
            body: &message.payload,
        };
        let proof = match &address {
            Some(address) => {
                let channel = address.sender.channel();
                self.keys
                    .prove(channel, &signed, header(SIGNATURE).as_deref())
            }
            None => Proof::Invalid,
        };
        Some(PeopleMessage {
            id: id.and_then(|id| Uuid::try_parse(&id).ok()),
            proof,
            body: message.payload.to_vec(),
            stored_at,
            delivery: JetStreamDelivery {
                client: self.nats.client.clone(),
                reply,
            },
            address,
            subject,
        })
    }
}

impl PeopleMessages for JetStreamPeople {
    type Delivery = JetStreamDelivery;

    async fn next(&mut self) -> Result<PeopleMessage<JetStreamDelivery>, BrokerUnavailable> {
        let received = self.receive().await;
        if received.is_err() {
            // What the last request still delivers comes again after the consumer's `ack_wait`.
            self.pulling = None;
        }
        Ok(received?)
    }
}

impl Pulling {
    async fn open(nats: &Nats) -> Result<Self, Error> {
        let open = async {
            let inbox = PullInbox::open(nats).await?;
            let stream = nats.jetstream.get_stream_no_info(PEOPLE).await;
            let stream =
                stream.map_err(|error| Error::Unavailable(format!("{PEOPLE}: {error}")))?;
            let consumer = stream.get_consumer(RECORDER).await;
            let consumer = consumer
                .map_err(|error| Error::Unavailable(format!("{PEOPLE}/{RECORDER}: {error}")))?;
            Ok(Self {
                consumer,
                inbox,
                requests: 0,
                left: 0,
            })
        };
        within::<_, Error>(OPEN_TIMEOUT, format!("{PEOPLE}: no consumer in time"), open).await
    }

    /// Waits for the next message. Cancel safe: a request that was sent and not counted ends by itself.
    async fn next(&mut self) -> Result<async_nats::Message, Error> {
        loop {
            if self.left == 0 {
                self.request().await?;
            }
            let reply = tokio::time::timeout(HEARTBEAT_TIMEOUT, self.inbox.next()).await;
            let silence = "decisions of people: a heartbeat is missing";
            match reply.map_err(|_| Error::Unavailable(silence.to_owned()))? {
                PullReply::Message(message) => {
                    self.left = self.left.saturating_sub(1);
                    return Ok(*message);
                }
                PullReply::Ended(number) if number + 1 == self.requests => self.left = 0,
                PullReply::Heartbeat(_) | PullReply::Ended(_) => {}
                PullReply::Lost(reason) => return Err(Error::Unavailable(reason)),
            }
        }
    }

    async fn request(&mut self) -> Result<(), Error> {
        let request = BatchConfig {
            batch: BATCH,
            expires: Some(PULL_TIMEOUT),
            idle_heartbeat: HEARTBEAT_INTERVAL,
            ..BatchConfig::default()
        };
        let reply_to = self.inbox.reply_to(self.requests);
        let sent = self.consumer.request_batch(request, reply_to.into());
        within(OPEN_TIMEOUT, "the connection takes no pull request", sent).await?;
        self.requests += 1;
        self.left = BATCH;
        Ok(())
    }
}
