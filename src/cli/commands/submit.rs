//! `tarsy submit`: publishes an alert.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::json;
use uuid::Uuid;

use super::addresses;
use super::feed::Sources;
use crate::bus::{NewAlert, Priority, SESSION_ID};
use crate::cli::args::{GlobalArgs, SubmitArgs};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::view::Surroundings;
use crate::investigation::alert::Severity;
use crate::investigation::ids::SessionId;
use crate::store::Store;

pub(super) async fn run(global: &GlobalArgs, args: SubmitArgs) -> anyhow::Result<Exit> {
    let body = read(&args.file)?;
    ensure!(!body.trim_ascii().is_empty(), "{} is empty: nothing was published", named(&args.file));
    let session = args.session_id.unwrap_or_else(|| SessionId(Uuid::now_v7()));
    let addresses = addresses(global);
    let nats = addresses.nats_for_command("submit").await?;
    let alert = NewAlert {
        priority: priority(args.priority),
        suffix: args.suffix,
        body,
        // Chosen here, so that the session can be watched before it is claimed.
        headers: json!({SESSION_ID: session.to_string()}),
    };
    let published = nats.publish_alert(alert).await?;
    writeln!(std::io::stderr(), "{}", messages::published(&published.subject, published.sequence, session))?;
    if !args.watch {
        writeln!(std::io::stdout(), "{session}")?;
        return Ok(Exit::Done);
    }
    let database = addresses.database("tarsy submit").ok();
    let store = database.map(|options| Store::new(&options).map(Arc::new)).transpose()?;
    let options = args.view.options(&Surroundings::of_process());
    Sources { nats, store }.show(session, options, |_| Ok(())).await
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut body)
    } else {
        File::open(file).and_then(|mut file| file.read_to_end(&mut body))
    };
    read.with_context(|| format!("cannot read {}", named(file)))?;
    Ok(body)
}

fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

fn priority(severity: Severity) -> Priority {
    match severity {
        Severity::Critical => Priority::Critical,
        Severity::High => Priority::High,
        Severity::Normal => Priority::Normal,
        Severity::Low => Priority::Low,
    }
}
