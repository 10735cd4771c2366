//! `tarsy destinations test`: the requests of a note about an alert, which are sent only with `--send`.

use anyhow::{Context as _, bail};
use chrono::{TimeDelta, Utc};
use uuid::Uuid;

use super::known;
use crate::cli::args::DestinationsTestArgs;
use crate::cli::commands::output::print;
use crate::cli::commands::submit;
use crate::cli::exit::Exit;
use crate::process::{masked, secrets};
use tarsy_config::Config;
use tarsy_core::alert::Alert;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{Hints, Intake};
use tarsy_core::notification::summary::{Outcome, Summary};
use tarsy_core::notification::{Moment, Notification, NotificationKey};
use tarsy_engine::ports::{Notifier as _, ProviderAnswer};
use tarsy_mask::Mask;
use tarsy_notifications::{Routes, preview};

const ANALYSIS: &str = "Cause: tarsy destinations test was run, and nothing was investigated [1]\n\
                        Sure: yes\nEvidence:\n- this note [1]\nDo next: `tarsy destinations list`";

pub(super) async fn run(config: &Config, args: DestinationsTestArgs) -> anyhow::Result<Exit> {
    let name = known(config, &args.name)?;
    let Some(destination) = config
        .destinations
        .get(name)
        .and_then(|configured| configured.destination())
    else {
        bail!("{name} is no destination");
    };
    let mask = secrets::mask(config, None)?;
    let alert = alert(config, &mask, &args)?;
    let message = message(config, &args, alert);
    let requests = preview(destination, &message).map_err(anyhow::Error::msg)?;
    for request in requests {
        let what = match request.purpose {
            "lookup" => "# looks up a reference that the alert does not have",
            "find" => "# lists the notes, only after an answer that got lost",
            _ => "# adds the note",
        };
        print(&[what.to_owned(), request.http])?;
    }
    if !args.send {
        return Ok(Exit::Done);
    }
    let routes = Routes::new(config.notification_routes(), mask);
    match routes.send(message, None).await {
        ProviderAnswer::Accepted { .. } | ProviderAnswer::Found { .. } => {
            print(&[format!("{name} has taken the note")])?;
            Ok(Exit::Done)
        }
        ProviderAnswer::NoPlace { reason } => {
            bail!("{name} has nothing to add a note to: {reason}")
        }
        ProviderAnswer::Rejected { reason } => bail!("{name} rejects the note: {reason}"),
        ProviderAnswer::Unavailable { reason, .. } => {
            bail!("{name} has not taken the note: {reason}")
        }
    }
}

/// The first alert of the file, as a worker reads it.
fn alert(config: &Config, mask: &Mask, args: &DestinationsTestArgs) -> anyhow::Result<Alert> {
    let body = submit::read(&args.alert)?;
    let hints = Hints {
        source: args.source.clone(),
        ..Hints::default()
    };
    let read = masked::alert(mask, &Intake::new(config.sources.all()), &body, &hints);
    let read = read.with_context(|| format!("{} is not an alert", submit::named(&args.alert)))?;
    Ok(read.alert)
}

fn message(config: &Config, args: &DestinationsTestArgs, alert: Alert) -> Notification {
    let session = SessionId(Uuid::now_v7());
    let ended_at = Utc::now();
    let summary = Summary {
        title: format!("A test, no investigation: {}", alert.title),
        severity: Some(alert.severity),
        chain: Some(config.defaults.chain.clone()),
        outcome: (args.moment != Moment::Started).then_some(Outcome::Completed),
        analysis: (args.moment != Moment::Started).then(|| ANALYSIS.to_owned()),
        refs: alert.refs,
        began_at: Some(ended_at - TimeDelta::seconds(7)),
        ended_at: (args.moment != Moment::Started).then_some(ended_at),
        ..Summary::default()
    };
    Notification {
        key: NotificationKey {
            session,
            route: args.name.clone(),
            moment: args.moment,
            request: None,
        },
        about: session,
        summary,
        url: config
            .web
            .public_url
            .as_ref()
            .map(|url| url.session(session)),
        template: None,
        may_repeat: false,
        stays_in_thread: false,
    }
}
