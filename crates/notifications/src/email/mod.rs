//! Sends a notification by e-mail. `message` writes it, `dialogue` is the connection to the server, `lines` its bytes
//! before TLS, and `verdict` says what became of a message.
//!
//! The `Message-ID` follows from the id of the notification, so a mail program recognises a repetition. A name and a
//! password are sent over TLS only, or within this machine.

mod dialogue;
mod lines;
mod message;
mod verdict;

use std::time::Duration;

use data_encoding::BASE64;
use lettre::transport::smtp::authentication::Credentials;
use tokio::time::{Instant, timeout, timeout_at};

use self::dialogue::Dialogue;
use self::message::Email;
use super::answer::unavailable;
use super::secret::Secrets;
use tarsy_config::EmailRoute;
use tarsy_core::notification::Notification;
use tarsy_engine::ports::{Arrival, ProviderAnswer};

/// A farewell does not delay the record of an answer for longer.
const MAX_FAREWELL: Duration = Duration::from_secs(1);
/// The time of an attempt beyond the limit of its route: secrets are read before, and the farewell comes behind. Both
/// stay within the lease of a row, three times a limit of a second or more.
pub(super) const MARGIN: Duration = Duration::from_millis(1_500);

/// The e-mail of a route, with the password.
pub(super) struct Sender<'a> {
    route: &'a EmailRoute,
    credentials: Option<Credentials>,
    /// The time limit of the dialogue.
    limit: Duration,
}

impl<'a> Sender<'a> {
    /// Reads the password. The mask also learns the forms in which it is sent, because a server may repeat a command.
    ///
    /// # Errors
    /// A text with the reason, without the password.
    pub(super) async fn new(
        route: &'a EmailRoute,
        secrets: &Secrets,
        limit: Duration,
    ) -> Result<Self, String> {
        let mut credentials = None;
        if let Some(login) = &route.smtp.login {
            let password = secrets.text(&login.password).await?;
            let plain = format!("\0{}\0{password}", login.username);
            let sent = [plain.as_str(), password.as_str()];
            secrets
                .0
                .learn(sent.map(|text| BASE64.encode(text.as_bytes())));
            credentials = Some(Credentials::new(login.username.clone(), password));
        }
        Ok(Self {
            route,
            credentials,
            limit,
        })
    }

    /// Sends a message; `first` is the receipt of the session's first one.
    pub(super) async fn deliver(
        &self,
        message: &Notification,
        first: Option<&str>,
    ) -> ProviderAnswer {
        let email = match Email::new(self.route, message, first) {
            Ok(email) => email,
            Err(reason) => return ProviderAnswer::Rejected { reason },
        };
        let deadline = Instant::now() + self.limit;
        let opened = timeout_at(deadline, self.open(&email)).await;
        let mut ready = match opened {
            Ok(Ok(ready)) => ready,
            Ok(Err(answer)) => return answer,
            // Without its content the server has no message.
            Err(_elapsed) => return unavailable(self.late(), Arrival::Refused),
        };
        let sent = timeout_at(deadline, ready.dialogue.content(&email.bytes)).await;
        let answer = match sent {
            Ok(Ok(())) => ready.answer(&email),
            Ok(Err(failure)) => failure.verdict(),
            Err(_elapsed) => return unavailable(self.late(), Arrival::Unknown),
        };
        timeout(MAX_FAREWELL, ready.dialogue.quit()).await.ok();
        answer
    }

    /// Whether the server is reached, protects the connection as the route wants, and takes the password.
    ///
    /// # Errors
    /// A text with the reason.
    pub(super) async fn check(&self) -> Result<(), String> {
        let mut dialogue = Dialogue::open(self.route, self.credentials.as_ref())
            .await
            .map_err(|failure| failure.to_string())?;
        timeout(MAX_FAREWELL, dialogue.quit()).await.ok();
        Ok(())
    }

    /// Names sender and recipients, so that the content may follow.
    async fn open(&self, email: &Email) -> Result<Ready, ProviderAnswer> {
        let opened = Dialogue::open(self.route, self.credentials.as_ref()).await;
        let mut dialogue = opened.map_err(|failure| failure.verdict())?;
        let named = dialogue.name(email).await;
        let refused = named.map_err(|failure| failure.verdict())?;
        if refused.len() == email.to.len() {
            let reason = refused.join("; ");
            timeout(MAX_FAREWELL, dialogue.quit()).await.ok();
            return Err(ProviderAnswer::Rejected { reason });
        }
        let asked = dialogue.ask().await;
        asked.map_err(|failure| failure.verdict())?;
        Ok(Ready { dialogue, refused })
    }

    fn late(&self) -> String {
        format!("no answer within {} s", self.limit.as_secs_f64())
    }
}

/// A dialogue whose next part is the content.
struct Ready {
    dialogue: Dialogue,
    /// The answers that refuse a recipient for ever.
    refused: Vec<String>,
}

impl Ready {
    /// The answer after the content was taken. A refused recipient is reported, although the others have the message.
    fn answer(&self, email: &Email) -> ProviderAnswer {
        if self.refused.is_empty() {
            return ProviderAnswer::Accepted {
                receipt: Some(email.id.clone()),
            };
        }
        ProviderAnswer::Rejected {
            reason: format!(
                "sent, but not to {} of {} recipients: {}",
                self.refused.len(),
                email.to.len(),
                self.refused.join("; ")
            ),
        }
    }
}

#[cfg(test)]
mod tests;
