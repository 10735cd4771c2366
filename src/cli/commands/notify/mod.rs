//! `tarsy notify test`: sends a message to one route, with the configuration and the secrets of this machine.

use anyhow::{bail, ensure};
use chrono::{TimeDelta, Utc};
use uuid::Uuid;

use super::load_config;
use super::output::print;
use crate::cli::args::{GlobalArgs, NotifyCommand, NotifyTestArgs};
use crate::cli::exit::Exit;
use crate::process::secrets;
use tarsy_config::Config;
use tarsy_core::alert::Severity;
use tarsy_core::alert::refs::Refs;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::summary::{Outcome, Summary};
use tarsy_core::notification::{Moment, Notification, NotificationKey};
use tarsy_engine::ports::{Notifier as _, ProviderAnswer};
use tarsy_notifications::Routes;

pub(super) async fn run(global: &GlobalArgs, command: NotifyCommand) -> anyhow::Result<Exit> {
    let NotifyCommand::Test(args) = command;
    test(&load_config(global)?, args).await
}

async fn test(config: &Config, NotifyTestArgs { route }: NotifyTestArgs) -> anyhow::Result<Exit> {
    let known: Vec<&str> = config.notifications.keys().map(String::as_str).collect();
    let Some(found) = config.notifications.get(&route) else {
        ensure!(
            !known.is_empty(),
            "the configuration has no routes: see notifications in tarsy config example"
        );
        bail!(
            "there is no route \"{route}\"; there are: {}",
            known.join(", ")
        );
    };
    let session = SessionId(Uuid::now_v7());
    let message = Notification {
        key: NotificationKey {
            session,
            route: route.clone(),
            moment: Moment::Ended,
            request: None,
        },
        about: session,
        summary: sample(config),
        url: config
            .web
            .public_url
            .as_ref()
            .map(|url| url.session(session)),
        template: found.template.clone(),
        may_repeat: false,
        stays_in_thread: false,
    };
    let routes = Routes::new(config.notifications.clone(), secrets::mask(config, None)?);
    match routes.send(message, None).await {
        ProviderAnswer::Accepted { .. } | ProviderAnswer::Found { .. } => {
            print(&[format!(
                "{route} ({}) has taken the message",
                found.kind.as_str()
            )])?;
            Ok(Exit::Done)
        }
        ProviderAnswer::NoPlace { reason } => bail!("{route} has no place for it: {reason}"),
        ProviderAnswer::Rejected { reason } => bail!("{route} rejects the message: {reason}"),
        ProviderAnswer::Unavailable { reason, .. } => {
            bail!("{route} has not taken the message: {reason}")
        }
    }
}

/// A made-up investigation, whose title says that it is a test.
fn sample(config: &Config) -> Summary {
    let ended_at = Utc::now();
    Summary {
        title: "A test of this route: no alert, no investigation".to_owned(),
        severity: Some(Severity::Low),
        chain: Some(config.defaults.chain.clone()),
        outcome: Some(Outcome::Completed),
        analysis: Some(
            "Cause: tarsy notify test was run [1]\nEvidence: this message [1]".to_owned(),
        ),
        mark: None,
        review: None,
        error: None,
        refs: Refs::default(),
        began_at: Some(ended_at - TimeDelta::seconds(7)),
        ended_at: Some(ended_at),
        seen_before: None,
        request: None,
    }
}
