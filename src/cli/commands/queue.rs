//! `tarsy queue`: how many alerts wait, which come next, and what the workers do.

use std::io::IsTerminal as _;

use chrono::Utc;
use serde_json::{Value, json};

use super::database::with_cause;
use super::output::{note, print, print_json, style};
use super::watch::waiting::WORKER_STATUS_TIMEOUT;
use super::{addresses, load_config, one_line_error};
use crate::cli::args::{GlobalArgs, QueueArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::queue::{self, QueuedAlert};
use crate::process::{masked, secrets};
use crate::roles::worker::message::hints;
use tarsy_bus::{Backlog, MessageKind, Nats, QueuedMessage};
use tarsy_core::intake::Intake;
use tarsy_engine::ports::WorkerStatus;
use tarsy_mask::Mask;

pub(super) async fn run(global: &GlobalArgs, args: QueueArgs) -> anyhow::Result<Exit> {
    // The permissions of a client that watches suffice.
    let nats = addresses(global).nats_for_command("watch").await?;
    let reader = AlertReader::by_config_or_environment(global);
    let wait = args.wait.unwrap_or(WORKER_STATUS_TIMEOUT);
    let statuses = nats.workers(wait);
    let contents = async {
        let backlog = nats.backlog().await.map_err(anyhow::Error::from)?;
        let next = next(&nats, &reader, &backlog, usize::try_from(args.limit)?).await;
        if !args.json {
            let shown = next.as_deref().unwrap_or_default();
            print(&queue::queue(&backlog, shown, Utc::now(), &style()))?;
            if let Err(error) = &next {
                note(&format!(
                    "cannot read the alerts that wait: {}",
                    one_line_error(error)
                ))?;
            }
            if std::io::stderr().is_terminal() {
                note(&format!("Waiting {} s for the workers …", wait.as_secs()))?;
            }
        }
        Ok((backlog, next.unwrap_or_default()))
    };
    // The queue is shown while the workers send their statuses.
    let (contents, workers) = tokio::join!(contents, statuses);
    let (backlog, next) = with_cause(&nats, contents).await?;
    let workers = workers?;
    if args.json {
        print_json(&as_json(&backlog, &next, &workers))?;
    } else {
        print(&queue::workers(&workers, &style()))?;
    }
    Ok(Exit::Done)
}

/// The first alerts that wait, in the order of the priorities.
async fn next(
    nats: &Nats,
    reader: &AlertReader,
    backlog: &[Backlog],
    limit: usize,
) -> anyhow::Result<Vec<QueuedAlert>> {
    let mut next = Vec::new();
    for Backlog {
        priority, pending, ..
    } in backlog
    {
        let room = limit.saturating_sub(next.len());
        if *pending > 0 && room > 0 {
            let found = nats.unclaimed(*priority, room).await?;
            next.extend(found.into_iter().map(|message| reader.read(message)));
        }
    }
    Ok(next)
}

/// Reads queued alerts, and masks their texts.
pub(super) struct AlertReader {
    mask: Mask,
    intake: Intake,
}

impl AlertReader {
    /// Builds the reader from the configuration.
    ///
    /// # Errors
    /// When the configuration or a file with secrets cannot be read.
    pub(super) fn by_config(global: &GlobalArgs) -> anyhow::Result<Self> {
        let config = load_config(global)?;
        Ok(Self {
            mask: secrets::mask(&config, Some(&addresses(global)))?,
            intake: Intake::new(config.sources.all()),
        })
    }

    /// Builds the reader from the configuration, or from the environment alone if there is none.
    fn by_config_or_environment(global: &GlobalArgs) -> Self {
        Self::by_config(global).unwrap_or_else(|_| Self {
            mask: secrets::of_process(Some(&addresses(global))),
            intake: Intake::default(),
        })
    }

    /// An alert that no worker has seen, with masked texts.
    pub(super) fn read(&self, message: QueuedMessage) -> QueuedAlert {
        let received = message.received;
        let body = received.body.as_deref().unwrap_or_default();
        let alert = masked::alert(&self.mask, &self.intake, body, &hints(&received)).ok();
        QueuedAlert {
            alert_id: received.alert_id,
            kind: message.kind,
            priority: message.priority,
            queued_at: received.queued_at,
            subject: self.mask.apply(&received.subject).into_owned(),
            title: alert.map(|masked| masked.alert.title),
        }
    }
}

fn as_json(backlog: &[Backlog], next: &[QueuedAlert], workers: &[WorkerStatus]) -> Value {
    let queues = backlog.iter().map(|of| {
        json!({
            "priority": of.priority.as_str(), "waiting": of.pending, "in_work": of.in_progress,
            "oldest_seconds": of.oldest.map(|oldest| oldest.as_secs()),
        })
    });
    let next = next.iter().map(|waiting| {
        json!({
            "session_id": waiting.alert_id, "priority": waiting.priority.as_str(), "queued_at": waiting.queued_at,
            "subject": waiting.subject, "title": waiting.title, "question": waiting.kind == MessageKind::Question,
        })
    });
    json!({"queues": queues.collect::<Vec<_>>(), "next": next.collect::<Vec<_>>(), "workers": workers})
}
