//! `tarsy submit`: publishes an alert.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::anyhow;
use uuid::Uuid;

use super::database::Database;
use super::output::note;
use super::publish::PublishedSession;
use super::watch::follow::Sources;
use super::{addresses, load_config};
use crate::admin::publishing::submissions::{Draft, Outgoing, Readable, Rules, messages};
use crate::cli::args::{GlobalArgs, SubmitArgs};
use crate::cli::exit::Exit;
use crate::cli::view::ViewArgs;
use tarsy_bus::{CHAIN, FORCE, LEFT_OUT, TRACEPARENT};
use tarsy_config::{Config, process_env};
use tarsy_core::ids::SessionId;
use tarsy_core::trace_context::TraceContext;

/// The trace of the program that runs the command, in the variable `TRACEPARENT`. An invalid one counts as none.
pub(super) fn caller() -> Option<String> {
    TraceContext::parse(&process_env("TRACEPARENT")?).map(|context| context.to_string())
}

pub(super) async fn run(global: &GlobalArgs, args: SubmitArgs) -> anyhow::Result<Exit> {
    let (body, name) = match text_of(&args.file) {
        Some(text) => {
            note(&format!(
                "there is no file {}: the text itself is the alert",
                args.file.display()
            ))?;
            (text.into_bytes(), "the text".to_owned())
        }
        None => (read(&args.file)?, named(&args.file)),
    };
    let rules = Rules::from_config(&load_config(global)?);
    let mut read = rules
        .read(&name, &body, usize::MAX)
        .map_err(anyhow::Error::msg)?;
    rules
        .check_chain(args.chain.as_deref())
        .map_err(anyhow::Error::msg)?;
    // The id is chosen here, so that the session can be watched before a worker claims it.
    let session = args.session_id.unwrap_or_else(|| SessionId(Uuid::now_v7()));
    let addresses = addresses(global);
    let nats = addresses.nats_for_command("submit").await?;
    if read.body.len() > nats.max_alert_bytes() {
        read = rules
            .read(&name, &body, nats.max_alert_bytes())
            .map_err(anyhow::Error::msg)?;
    }
    let Readable {
        parts,
        body,
        left_out,
    } = read;
    if left_out.is_some() {
        note(&format!(
            "{name} is larger than what is stored of an alert: its worst parts are published"
        ))?;
    }
    let force = args.force.then(|| "true".to_owned());
    let headers = [
        (FORCE, force),
        (CHAIN, args.chain),
        (TRACEPARENT, caller()),
        (LEFT_OUT, left_out),
    ];
    let draft = Draft {
        session,
        priority: args.priority,
        suffix: args.suffix,
        headers: headers
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
            .collect(),
    };
    let mut all = Vec::with_capacity(parts.len());
    for Outgoing { session, alert } in messages(&parts, &body, &draft) {
        let priority = alert.priority;
        let published = nats.publish_alert(alert).await?;
        all.push(PublishedSession {
            session,
            published,
            priority,
            origin: None,
        });
    }
    // Without a database the timeline comes from the stream alone.
    let has_database = args.watch && addresses.database_url.is_some();
    let database = has_database
        .then(|| Database::new(global, "submit"))
        .transpose()?;
    let sources = args
        .watch
        .then(|| Sources::new(global, nats, database.map(|database| database.store)));
    finish(global, all, sources, &args.view).await
}

/// Prints every published alert; the first one is watched if there are sources.
async fn finish(
    global: &GlobalArgs,
    all: Vec<PublishedSession>,
    sources: Option<Sources>,
    view: &ViewArgs,
) -> anyhow::Result<Exit> {
    let mut all = all.into_iter();
    let Some(first) = all.next() else {
        return Ok(Exit::Done);
    };
    let Some(sources) = sources else {
        first.finish(global, None, view).await?;
        for other in all {
            other.finish(global, None, view).await?;
        }
        return Ok(Exit::Done);
    };
    for other in all {
        note(&other.remark())?;
    }
    first.finish(global, Some(sources), view).await
}

/// The bytes of a file or of standard input.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut body)
    } else {
        File::open(file).and_then(|mut file| file.read_to_end(&mut body))
    };
    read.map_err(|error| anyhow!("cannot read {}: {error}{}", named(file), hint(file)))?;
    Ok(body)
}

/// A hint about sending a text, for a file name that may be meant as one.
fn hint(file: &Path) -> String {
    let name = file.display().to_string();
    if !name.contains(' ') {
        return String::new();
    }
    format!(
        "; a text instead of a file: echo '{}' | tarsy submit -",
        name.replace('\'', "'\\''")
    )
}

/// The argument itself, if it can only be meant as the text of an alert: several words that are not the name of a file
/// and do not look like a path. A misspelt path must not be investigated.
fn text_of(argument: &Path) -> Option<String> {
    let text = argument.to_str()?;
    let looks_like_a_path = text.contains('/')
        || argument
            .extension()
            .is_some_and(|end| !end.to_string_lossy().contains(' '));
    (text.trim().contains(char::is_whitespace) && !looks_like_a_path && !argument.exists())
        .then(|| text.to_owned())
}

/// Refuses a chain that the configuration does not define.
///
/// # Errors
/// With the chains that there are.
pub(super) fn check_chain(config: &Config, chain: Option<&str>) -> anyhow::Result<()> {
    Rules::from_config(config)
        .check_chain(chain)
        .map_err(anyhow::Error::msg)
}

/// The name of the input in messages.
pub(super) fn named(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_words_that_look_like_no_path_are_an_alert_themselves() {
        for text in [
            "disk full",
            "disk 94 % full on db-3",
            "db-3.example is down",
        ] {
            assert_eq!(text_of(Path::new(text)).as_deref(), Some(text));
        }
        for path in [
            "alert.jsn",
            "my alert.json",
            "alerts/disk full",
            "disk",
            "-",
            "",
        ] {
            assert_eq!(text_of(Path::new(path)), None, "{path:?}");
        }
        assert_eq!(
            hint(Path::new("it's full.now")),
            "; a text instead of a file: echo 'it'\\''s full.now' | tarsy submit -"
        );
        assert_eq!(hint(Path::new("alert.jsn")), "");
    }
}
