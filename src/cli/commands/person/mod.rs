//! The person of a command, and the publication of what they decide.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::{addresses, load_config};
use crate::cli::args::{GlobalArgs, PersonArgs};
use crate::process::people::channel_keys;
use tarsy_bus::{ChannelKeys, Nats, NewPeopleMessage};
use tarsy_core::approvals::Sender;

/// The time that a worker has to record a message before the command ends.
pub(super) const RECORD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two looks at the record.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(200);

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

    /// Publishes; returns when the stream has the message.
    pub(super) async fn publish(&self, message: &NewPeopleMessage) -> anyhow::Result<()> {
        let published = self.nats.publish_of_person(message, &self.keys).await;
        published.context("not sent")?;
        Ok(())
    }
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
