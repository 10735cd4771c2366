//! Publishes messages of people.

use uuid::Uuid;

use crate::roles::web::backend::Backend;
use tarsy_bus::NewPeopleMessage;
use tarsy_core::approvals::{PeopleSubject, Sender, Topic};
use tarsy_web::ports::{NoRecord, Refusal, Unavailable};

impl Backend {
    /// Publishes a message. Only one that the stream cannot have is refused; the answer has the reason for which a
    /// record of another one may be missing.
    pub(super) async fn publish_of_person<T: serde::Serialize>(
        &self,
        topic: Topic,
        id: Uuid,
        message: &T,
    ) -> Result<NoRecord, Refusal> {
        let subject = PeopleSubject {
            topic,
            sender: Sender::Web,
        };
        let nats = self.connected().await?;
        let name = subject.to_string();
        // A server answers nothing to a message that it does not permit.
        if let Ok(granted) = nats.granted().await
            && !granted.may_publish(&name)
        {
            return Err(Refusal::Unavailable(Unavailable(format!(
                "nats does not permit this server to publish on {name}: deploy/nats/web.conf has its permissions"
            ))));
        }
        let body = serde_json::to_vec(message)
            .map_err(|error| Refusal::Invalid(format!("the message cannot be written: {error}")))?;
        let message = NewPeopleMessage { subject, id, body };
        match nats.publish_of_person(&message, &self.deciders.keys).await {
            Ok(_) => Ok(NoRecord::NotYet),
            // Its acknowledgement is late or lost: the stream may have it.
            Err(tarsy_bus::Error::Unavailable(reason)) => {
                tracing::warn!(subject = name, %id, "message of a person not confirmed: {reason}");
                Ok(NoRecord::Unconfirmed)
            }
            Err(error) => Err(self.unavailable("nats", &error).into()),
        }
    }
}
