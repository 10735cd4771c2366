//! Implements the port `Queue`: finds the message of an alert, requeues a lost one, and publishes the other alerts of a
//! body with several.

use async_nats::header::NATS_MESSAGE_ID;

use super::claims::belongs_to;
use crate::connection::Nats;
use crate::headers::{self, PART, SESSION_ID};
use crate::names::{ALERTS, MessageKind, Priority};
use crate::stream::get::message_at;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{BrokerUnavailable, IdleAlert, Queue, Received};

impl Queue for Nats {
    async fn holds(
        &self,
        alert: SessionId,
        stream_sequence: u64,
    ) -> Result<bool, BrokerUnavailable> {
        // A stream that was lost and filled again has another alert under the same sequence.
        let message = message_at(self, ALERTS, stream_sequence).await?;
        Ok(message.is_some_and(|message| belongs_to(alert, &message)))
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerUnavailable> {
        let id = alert.alert_id;
        let Some(body) = alert.body.clone() else {
            return Err(BrokerUnavailable(format!(
                "alert {id} cannot be queued again: its body was not kept"
            )));
        };
        let mut copy = headers::for_copy_of_stored(&alert.headers);
        copy.insert(SESSION_ID, id.to_string());
        let published = self
            .enqueue(queue_subject(&alert.subject), copy, body)
            .await;
        match published {
            Ok(published) => Ok(published.sequence),
            Err(error) => Err(BrokerUnavailable(format!(
                "alert {id} is not queued again: {error}"
            ))),
        }
    }

    async fn publish_part(&self, received: &Received, part: u32) -> Result<(), BrokerUnavailable> {
        let id = received.alert_id.of_part(part).to_string();
        let mut copy = headers::for_copy_of_stored(&received.headers);
        copy.insert(SESSION_ID, id.as_str());
        copy.insert(PART, part.to_string());
        copy.insert(NATS_MESSAGE_ID, id);
        let body = received.body.clone().unwrap_or_default();
        let published = self
            .enqueue(queue_subject(&received.subject), copy, body)
            .await;
        match published {
            Ok(_) => Ok(()),
            Err(error) => Err(BrokerUnavailable(format!(
                "alert {part} of {} is not published: {error}",
                received.alert_id
            ))),
        }
    }
}

/// The subject that an alert was published on, if the queue accepts it, else the subject of alerts with normal
/// priority.
pub(crate) fn queue_subject(subject: &str) -> String {
    match Priority::of_subject(subject) {
        Some(_) => subject.to_owned(),
        None => Priority::Normal.subject(MessageKind::Alert),
    }
}
