//! `tarsy receive --slack-only`: takes clicks and mentions of people in Slack, and publishes what they decide and ask.
//!
//! A process of its own with a broker user of its own: it takes no alerts, so the process that reads the bodies of
//! strangers cannot decide.

use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::hooks::{self, Renewal};
use super::{HEADER_TIMEOUT, Options, Serves, link};
use crate::process::people::channel_keys;
use crate::process::shutdown::print_ready_and_metrics;
use serde_json::json;

use tarsy_bus::{
    ASKED_BY, ChannelKeys, Error, Nats, NewAlert, NewPeopleMessage, Priority, SESSION_ID, SLACK,
    THREAD,
};
use tarsy_config::{Config, Env, Secret, SecretSource, SlackApp, environment_fault, process_env};
use tarsy_core::alert::refs::SlackThread;
use tarsy_core::approvals::{PeopleSubject, Sender};
use tarsy_http::listener::Limits;
use tarsy_notifications::answer_addresses;
use tarsy_receiver::PublishError;
use tarsy_receiver::proof::HmacKeys;
use tarsy_receiver::slack::{SlackClick, SlackQuestion, SlackQueue, SlackSettings, serve};
use tarsy_telemetry::http::Readiness;
use tarsy_telemetry::metrics::Configured;
use tarsy_telemetry::names::Role;
use tarsy_telemetry::serving::Serving;

/// The key of the configuration, for messages.
const KEY: &str = "receive.slack";
/// The delay for clients while the broker is unavailable.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Receives until `shutdown` is cancelled, then finishes the open requests.
///
/// # Errors
/// When retrying cannot help: the file has no `receive.slack`, a secret cannot be read, an address is taken, the broker
/// is too old.
pub async fn run_slack(
    options: Options,
    config: &Config,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let app = config.receive.slack.as_ref().with_context(|| {
        format!("--slack-only needs {KEY} in tarsy.yaml: {{app, team, signing_secret_file}}")
    })?;
    let secrets = secrets(app, &process_env)?;
    let keys = HmacKeys::new(&read(&secrets)?);
    let renewal = Renewal::of_keys(KEY, secrets, &keys);
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listen on {}", options.listen))?;
    let address = listener.local_addr()?;
    let (telemetry, ready) = Serving::start(
        options.metrics_listen,
        Role::Receive,
        &Configured::default(),
    )
    .await?;
    let settings = SlackSettings {
        app: app.app.clone(),
        team: app.team.clone(),
        keys,
        answers: answer_addresses(config),
        header_timeout: HEADER_TIMEOUT,
        limits: Limits {
            connections: usize::try_from(config.receive.connections)?,
            per_address: usize::try_from(config.receive.connections_per_address)?,
        },
    };
    tracing::info!(%address, metrics = %telemetry.address, app = app.app, "receiver of Slack started");
    print_ready_and_metrics(address, telemetry.address)?;
    let (broker, nats) = watch::channel(None);
    let queue = People {
        nats,
        keys: channel_keys(config),
    };
    let receiver = tokio::spawn(serve(listener, settings, queue, shutdown.clone()));
    let linked = tokio::select! {
        result = link(&options.addresses, &broker, &ready, Serves::Slack) => result,
        never = hooks::keep_up(vec![renewal]) => match never {},
        () = shutdown.cancelled() => Ok(()),
    };
    ready.send_replace(Readiness::NotReady("draining".to_owned()));
    shutdown.cancel();
    receiver.await.context("receiver of Slack")?;
    telemetry.end().await;
    tracing::info!("receiver of Slack stopped");
    linked
}

fn secrets(app: &SlackApp, env: Env<'_>) -> anyhow::Result<Vec<Secret>> {
    let places = app.secrets();
    let found = places.iter().map(|place| match place {
        SecretSource::File(file) => Ok(Secret::in_file(KEY, file)),
        SecretSource::Variable(name) => Secret::find(name, env)?.ok_or_else(|| {
            let problem = format!("is not set, and {KEY} names it; accepted: it or {name}_FILE");
            environment_fault(name, problem).into()
        }),
    });
    found.collect()
}

fn read(secrets: &[Secret]) -> anyhow::Result<Vec<String>> {
    let read: Result<_, _> = secrets.iter().map(Secret::read).collect();
    read.with_context(|| format!("the signing secret of {KEY}"))
}

/// The streams of what people decide and ask, once there is a connection.
#[derive(Debug)]
struct People {
    nats: watch::Receiver<Option<Nats>>,
    /// Sign what is published, if the channel has a key.
    keys: ChannelKeys,
}

impl People {
    /// The connection. A message that waits in the buffer of a lost one would be published in addition to the person's
    /// next click.
    fn connected(&self) -> Result<Nats, PublishError> {
        let nats = self.nats.borrow().clone();
        nats.filter(|nats| nats.connection_state().connected)
            .ok_or_else(|| unavailable("the broker is unavailable"))
    }
}

impl SlackQueue for People {
    async fn publish(&self, click: SlackClick) -> Result<(), PublishError> {
        let nats = self.connected()?;
        let body = serde_json::to_vec(&click.message)
            .map_err(|error| PublishError::Invalid(error.to_string()))?;
        let message = NewPeopleMessage {
            subject: PeopleSubject {
                topic: click.topic,
                sender: Sender::Slack,
            },
            id: click.id,
            body,
        };
        match nats.publish_of_person(&message, &self.keys).await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(click.id, &error)),
        }
    }

    async fn ask(&self, question: SlackQuestion) -> Result<(), PublishError> {
        let nats = self.connected()?;
        let SlackThread { channel, ts } = &question.thread;
        let message = NewAlert {
            priority: Priority::High,
            suffix: SLACK.parse().ok(),
            headers: json!({
                SESSION_ID: question.id.to_string(),
                THREAD: format!("{channel}/{ts}"),
                ASKED_BY: format!("slack:{}", question.user),
            }),
            body: question.text.into_bytes(),
        };
        // Slack repeats an event whose answer it has not seen.
        match nats.publish_question_once(message).await {
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::warn!(session_id = %question.id, "question of a thread not published: {error}");
                Err(unavailable("the broker did not store the question"))
            }
        }
    }
}

/// The log has the broker's own words; the person sees that it failed.
fn refused(vote: uuid::Uuid, error: &Error) -> PublishError {
    tracing::warn!(%vote, "decision of a person not published: {error}");
    unavailable("the broker did not store the decision")
}

fn unavailable(reason: &str) -> PublishError {
    PublishError::Unavailable {
        reason: reason.to_owned(),
        retry_after: RETRY_DELAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_comes_from_its_file_or_variable_and_a_missing_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        std::fs::write(&file, "first\n").unwrap();
        let app = SlackApp {
            signing_secret_file: Some(file.display().to_string()),
            second_secret_env: Some("SECOND".to_owned()),
            ..SlackApp::default()
        };
        let found = secrets(&app, &|name| {
            (name == "SECOND").then(|| "second".to_owned())
        });
        let found = found.unwrap();
        assert_eq!(read(&found).unwrap(), ["first", "second"]);
        let fault = secrets(&app, &|_| None).unwrap_err().to_string();
        assert!(
            fault.contains("SECOND") && fault.contains("receive.slack"),
            "{fault}"
        );
    }
}
