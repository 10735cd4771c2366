//! The person of a command, and the publication of what they decide.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

use super::output::note;
use super::{addresses, load_config};
use crate::cli::args::{GlobalArgs, PersonArgs};
use crate::process::people::channel_keys;
use tarsy_bus::{ChannelKeys, Nats, NewPeopleMessage};
use tarsy_core::approvals::Sender;

/// The time that a worker has to record a message before the command ends.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two looks at the record.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// A connection as one person.
pub(super) struct AsPerson {
    nats: Nats,
    keys: ChannelKeys,
    pub(super) sender: Sender,
}

impl AsPerson {
    /// Connects. The person is the one of the option, else the one for whom the broker permits decisions.
    pub(super) async fn connect(global: &GlobalArgs, args: &PersonArgs) -> anyhow::Result<Self> {
        let keys = channel_keys(&load_config(global)?);
        let nats = addresses(global).nats_for_command("approvals").await?;
        let sender = match &args.person {
            Some(sender) => sender.clone(),
            None => permitted(&nats).await?,
        };
        Ok(Self { nats, keys, sender })
    }

    /// Publishes; returns when the stream has the message, or may have it. Only what it cannot have is an error.
    pub(super) async fn publish(&self, message: &NewPeopleMessage) -> anyhow::Result<()> {
        let subject = message.subject.to_string();
        // A server answers nothing to a message that it does not permit.
        if let Ok(granted) = self.nats.granted().await
            && !granted.may_publish(&subject)
        {
            bail!("not sent: nats does not permit this login to publish on {subject}");
        }
        match self.nats.publish_of_person(message, &self.keys).await {
            Ok(_) => Ok(()),
            Err(tarsy_bus::Error::Unavailable(reason)) => note(&format!(
                "it may have been sent: nats has not confirmed it ({reason})"
            )),
            Err(error) => Err(error).context("not sent"),
        }
    }
}

/// The looks at the record of a message. A database that cannot be read is not the end of them: the message is sent.
pub(super) struct Looks {
    until: Instant,
    fault: Option<anyhow::Error>,
}

impl Looks {
    pub(super) fn begin() -> Self {
        Self {
            until: Instant::now() + RECORD_TIMEOUT,
            fault: None,
        }
    }

    /// The value of a look; none if the record is missing, or cannot be read.
    pub(super) fn found<T>(&mut self, look: anyhow::Result<Option<T>>) -> Option<T> {
        match look {
            Ok(found) => {
                self.fault = None;
                found
            }
            Err(error) => {
                self.fault = Some(error);
                None
            }
        }
    }

    /// Waits for the next look. After the last one it says why the record could not be read.
    pub(super) async fn next(&self) -> anyhow::Result<Next> {
        if Instant::now() < self.until {
            sleep(LOOK_INTERVAL).await; // interval between looks
            return Ok(Next::Look);
        }
        if let Some(fault) = &self.fault {
            note(&format!("the record could not be read: {fault:#}"))?;
        }
        Ok(Next::End)
    }
}

/// The step after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Look,
    End,
}

async fn permitted(nats: &Nats) -> anyhow::Result<Sender> {
    let granted = nats.granted().await?;
    match granted.person().and_then(Sender::cli) {
        Some(sender) => Ok(sender),
        None => bail!(
            "the login at the broker is that of no single person. Fix: use a login with the role decider \
             (deploy/nats/decider.conf), or name yourself with --as"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_cannot_be_read_is_no_record_and_no_error() {
        let mut looks = Looks::begin();
        assert_eq!(looks.found::<u8>(Err(anyhow::anyhow!("no answer"))), None);
        assert!(looks.fault.is_some());
        assert_eq!(looks.found(Ok(Some(1))), Some(1));
        assert!(looks.fault.is_none());
    }
}
