//! Builds a message from a body on the command line and its arguments, without a queue.

use anyhow::bail;
use chrono::Utc;
use serde_json::Value;
use uuid::Uuid;

use crate::cli::args::MessageArgs;
use crate::cli::commands::sources::unknown_source;
use tarsy_core::ids::SessionId;
use tarsy_core::sources::Sources;
use tarsy_engine::ports::Received;

/// The message that the arguments describe.
pub(in crate::cli::commands) fn received(args: &MessageArgs) -> Received {
    let headers = args.headers.iter().filter_map(|(name, value)| {
        let canonical = tarsy_bus::ALLOWED
            .into_iter()
            .find(|allowed| allowed.eq_ignore_ascii_case(name))?;
        Some((canonical.to_owned(), value.clone().into()))
    });
    Received {
        alert_id: SessionId(Uuid::nil()),
        body_sha256: [0; 32],
        body: None,
        headers: Value::Object(headers.collect()),
        subject: args
            .priority
            .map(|priority| format!("tarsy.alerts.{}", priority.as_str()))
            .unwrap_or_default(),
        stream_sequence: 0,
        queued_at: Utc::now(),
    }
}

/// Checks that there is the source which the arguments name.
///
/// # Errors
/// When none of `sources` has its name.
pub(in crate::cli::commands) fn check_source(
    args: &MessageArgs,
    sources: &Sources,
) -> anyhow::Result<()> {
    match &args.source {
        Some(name) if !sources.contains(name) => bail!("{}", unknown_source(sources, name)),
        Some(_) | None => Ok(()),
    }
}
