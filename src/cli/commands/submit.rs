//! `tarsy submit`: publishes an alert.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use serde_json::json;
use uuid::Uuid;

use super::database::Database;
use super::output::note;
use super::publish::PublishedSession;
use super::watch::follow::Sources;
use super::{addresses, link, load_config, public_url};
use crate::bus::{CHAIN, FORCE, NewAlert, PART, Priority, SESSION_ID, Subject, SubjectSuffix, TRACEPARENT};
use crate::cli::args::{GlobalArgs, SubmitArgs};
use crate::cli::exit::Exit;
use crate::cli::view::ViewArgs;
use crate::config::{Config, process_env};
use crate::investigation::alert::AlertStatus;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::{Hints, Intake, IntakeError, Part};
use crate::investigation::trace_context::TraceContext;

/// The trace of the program that runs the command, in the variable `TRACEPARENT`. An invalid one counts as none.
pub(super) fn caller() -> Option<String> {
    TraceContext::parse(&process_env("TRACEPARENT")?).map(|context| context.to_string())
}

pub(super) async fn run(global: &GlobalArgs, args: SubmitArgs) -> anyhow::Result<Exit> {
    let (body, name) = match text_of(&args.file) {
        Some(text) => {
            note(&format!("there is no file {}: the text itself is the alert", args.file.display()))?;
            (text.into_bytes(), "the text".to_owned())
        }
        None => (read(&args.file)?, named(&args.file)),
    };
    let parts = check(global, &name, &body, args.chain.as_deref())?;
    let has_several = parts.len() > 1;
    let session = args.session_id.unwrap_or_else(|| SessionId(Uuid::now_v7()));
    let addresses = addresses(global);
    let nats = addresses.nats_for_command("submit").await?;
    let force = args.force.then_some("true");
    let mut all = Vec::with_capacity(parts.len());
    for (at, part) in parts.into_iter().enumerate() {
        // The id is chosen here, so that the session can be watched before a worker claims it.
        let session = if at == 0 { session } else { session.of_part(part.index) };
        let place = has_several.then(|| part.index.to_string());
        let headers = json!({
            SESSION_ID: session.to_string(), FORCE: force, CHAIN: args.chain, PART: place, TRACEPARENT: caller(),
        });
        let priority = Priority::from(args.priority.unwrap_or(part.alert.severity));
        let alert = NewAlert { priority, suffix: args.suffix.clone(), body: body.clone(), headers };
        let published = nats.publish_alert(alert).await?;
        all.push(PublishedSession { session, published, priority, origin: None, link: link(global, session) });
    }
    // Without a database the timeline comes from the stream alone.
    let has_database = args.watch && addresses.database_url.is_some();
    let database = has_database.then(|| Database::of(global, "submit")).transpose()?;
    let public_url = public_url(global);
    let sources = args.watch.then(|| Sources { nats, store: database.map(|database| database.store), public_url });
    finish(all, sources, &args.view).await
}

/// Prints every published alert; the first one is watched if there are sources.
async fn finish(all: Vec<PublishedSession>, sources: Option<Sources>, view: &ViewArgs) -> anyhow::Result<Exit> {
    let mut all = all.into_iter();
    let Some(first) = all.next() else { return Ok(Exit::Done) };
    let Some(sources) = sources else {
        first.finish(None, view).await?;
        for other in all {
            other.finish(None, view).await?;
        }
        return Ok(Exit::Done);
    };
    for other in all {
        note(&other.remark())?;
    }
    first.finish(Some(sources), view).await
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

/// How to send a text, for a name that may be meant as one.
fn hint(file: &Path) -> String {
    let name = file.display().to_string();
    if !name.contains(' ') {
        return String::new();
    }
    format!("; a text instead of a file: echo '{}' | tarsy submit -", name.replace('\'', "'\\''"))
}

/// The argument itself, if it can only be meant as the text of an alert: several words that are not the name of a file
/// and do not look like a path. A misspelt path must not be investigated.
fn text_of(argument: &Path) -> Option<String> {
    let text = argument.to_str()?;
    let looks_like_a_path =
        text.contains('/') || argument.extension().is_some_and(|end| !end.to_string_lossy().contains(' '));
    (text.trim().contains(char::is_whitespace) && !looks_like_a_path && !argument.exists()).then(|| text.to_owned())
}

/// The alerts of a body, never none. Refuses one that a worker with the configuration of this machine would give up.
///
/// # Errors
/// With the reason that the dead letter would have, or why the body asks for nothing.
fn check(global: &GlobalArgs, name: &str, body: &[u8], chain: Option<&str>) -> anyhow::Result<Vec<Part>> {
    let config = load_config(global)?;
    let parts = match intake(&config).read(body, &Hints::default()) {
        Ok(parts) => parts,
        Err(IntakeError::Empty) => bail!("{name} is empty: nothing was published"),
        Err(error @ IntakeError::Undecodable) => bail!("{name} is not an alert: {error}; nothing was published"),
    };
    if parts.iter().all(|part| part.alert.status == AlertStatus::Ignored) {
        let reason = parts.first().and_then(|part| part.alert.ignored_because.as_deref()).unwrap_or("it is no alert");
        bail!("{name} asks for no investigation: {reason}; nothing was published");
    }
    let (bytes, limit) = (body.len(), config.worker.max_alert_bytes);
    ensure!(
        u64::try_from(bytes)? <= limit,
        "{name} has {bytes} bytes, and workers take at most {limit} (worker.max_alert_bytes): nothing was published"
    );
    check_chain(&config, chain)?;
    Ok(parts)
}

fn intake(config: &Config) -> Intake {
    Intake::new(config.sources.all())
}

/// Refuses a chain that the configuration does not define.
///
/// # Errors
/// With the chains that there are.
pub(super) fn check_chain(config: &Config, chain: Option<&str>) -> anyhow::Result<()> {
    if let (Some(chain), Some(known)) = (chain, config.named_chains()) {
        let known_names = known.join(", ");
        ensure!(
            known.contains(&chain),
            "there is no chain \"{chain}\"; there are: {known_names}; nothing was published"
        );
    }
    Ok(())
}

/// The name of the input in messages.
pub(super) fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

/// Priority and suffix of the subject of an alert or a question. A suffix that cannot be published is left out.
pub(super) fn queue_of(subject: &str) -> (Priority, Option<SubjectSuffix>) {
    let Some(Subject { priority, suffix, .. }) = Subject::parse(subject) else {
        return (Priority::Normal, None);
    };
    (priority, suffix.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_words_that_look_like_no_path_are_an_alert_themselves() {
        for text in ["disk full", "disk 94 % full on db-3", "db-3.example is down"] {
            assert_eq!(text_of(Path::new(text)).as_deref(), Some(text));
        }
        for path in ["alert.jsn", "my alert.json", "alerts/disk full", "disk", "-", ""] {
            assert_eq!(text_of(Path::new(path)), None, "{path:?}");
        }
        assert_eq!(
            hint(Path::new("it's full.now")),
            "; a text instead of a file: echo 'it'\\''s full.now' | tarsy submit -"
        );
        assert_eq!(hint(Path::new("alert.jsn")), "");
    }

    #[test]
    fn an_alert_goes_back_to_the_queue_that_it_came_from() {
        let of = |subject: &str| {
            let (priority, suffix) = queue_of(subject);
            (priority.as_str(), suffix.map(|suffix| suffix.to_string()))
        };
        assert_eq!(of("tarsy.alerts.critical"), ("critical", None));
        assert_eq!(of("tarsy.alerts.low.disk-full.eu"), ("low", Some("disk-full.eu".to_owned())));
        assert_eq!(of("tarsy.alerts.high.a:b"), ("high", None));
        assert_eq!(of("tarsy.questions.high.question"), ("high", Some("question".to_owned())));
        assert_eq!(of("anything"), ("normal", None));
    }
}
