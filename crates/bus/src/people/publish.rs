//! Publishes what a person decides. It is stored when the stream has acknowledged it, and recorded by a worker.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use uuid::Uuid;

use super::signature::{ChannelKeys, SIGNATURE, Signed};
use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::Error;
use crate::headers;
use crate::names::PEOPLE;
use crate::queue::publish::publish_error;
use tarsy_core::approvals::PeopleSubject;

/// A message of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPeopleMessage {
    pub subject: PeopleSubject,
    /// The id of the vote: a repetition with the same id is the same vote.
    pub id: Uuid,
    /// A text in JSON.
    pub body: Vec<u8>,
}

/// A message that the stream has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeoplePublished {
    pub sequence: u64,
    /// The stream had a message with the same id already.
    pub is_repeated: bool,
}

impl Nats {
    /// Signs and publishes a message; returns when the stream has acknowledged it.
    ///
    /// # Errors
    /// When the key of the channel cannot be read, the message is not stored, or it is not known to be stored, which is
    /// [`Error::Unavailable`] alone. It may be sent again with the same id.
    pub async fn publish_of_person(
        &self,
        message: &NewPeopleMessage,
        keys: &ChannelKeys,
    ) -> Result<PeoplePublished, Error> {
        let subject = message.subject.to_string();
        let id = message.id.to_string();
        let signed = Signed {
            subject: &subject,
            id: &id,
            body: &message.body,
        };
        let channel = message.subject.sender.channel();
        let signature = keys
            .sign(channel, &signed)
            .map_err(|reason| Error::Rejected {
                subject: subject.clone(),
                reason,
            })?;
        let mut headers = HeaderMap::new();
        if let Some(signature) = signature {
            headers::insert(&mut headers, SIGNATURE, &signature)?;
        }
        headers.insert(NATS_MESSAGE_ID, id);
        let publish = self.jetstream.publish_with_headers(
            subject.clone(),
            headers,
            message.body.clone().into(),
        );
        let ack = match tokio::time::timeout(REQUEST_TIMEOUT, async { publish.await?.await }).await
        {
            Ok(Ok(ack)) => ack,
            Ok(Err(error)) => return Err(publish_error(subject, &error)),
            Err(_) => {
                return Err(Error::Unavailable(format!(
                    "no answer to a publish on {subject}"
                )));
            }
        };
        if ack.stream != PEOPLE {
            return Err(Error::Rejected {
                subject,
                reason: format!("stream {} stores it instead of {PEOPLE}", ack.stream),
            });
        }
        Ok(PeoplePublished {
            sequence: ack.sequence,
            is_repeated: ack.duplicate,
        })
    }
}
