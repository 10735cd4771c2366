//! What the commands do: arguments in, adapters joined, an exit code out.

mod ask;
mod checks;
mod config;
mod dead_letters;
mod drill;
mod inspect;
mod prune;
mod reach;
mod roles;
mod sessions;
mod submit;
mod watch;

use std::io::{self, IsTerminal as _, Write as _};

use tracing::level_filters::LevelFilter;

use crate::cli::args::{Cli, Command, GlobalArgs, LogFormat};
use crate::cli::exit::Exit;
use crate::config::{Config, Faults, find, process_env};
use crate::roles::connect::{Addresses, BadAddress, LOCAL_NATS, from_file};
use crate::roles::secrets;
use crate::store;
use crate::telemetry::logs;

/// Runs a command to its end.
///
/// # Errors
/// What a person has to know, with its causes. A wrong configuration is reported and an exit code instead.
pub async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let Cli { global, command } = cli;
    let default = if command.is_role() { LevelFilter::INFO } else { LevelFilter::WARN };
    let format = match global.log {
        LogFormat::Text => logs::Format::Text { ansi: io::stderr().is_terminal() },
        LogFormat::Json => logs::Format::Json,
    };
    let is_role = command.is_role();
    logs::install(&levels(global.log_level.unwrap_or(default)), format)?;
    let global = match with_address_files(global) {
        Ok(global) => global,
        Err(faults) => {
            write_error(&faults.to_string());
            return Ok(Exit::BadConfiguration);
        }
    };
    logs::hide(secrets::of_process(Some(&addresses(&global))));
    let outcome = match command {
        Command::Worker(args) => roles::worker(&global, args).await,
        Command::LlmService(args) => roles::llm_service(args).await,
        Command::Receive(args) => roles::receive(&global, args).await,
        Command::EvidenceServer(args) => roles::evidence_server(args).await,
        Command::Migrate(args) => roles::migrate(&global, args).await,
        Command::Prune(args) => prune::run(&global, args).await,
        Command::Submit(args) => submit::run(&global, args).await,
        Command::Watch(args) => watch::run(&global, args).await,
        Command::Ask(args) => ask::run(&global, args).await,
        Command::Sessions(command) => sessions::run(&global, command).await,
        Command::DeadLetters(command) => dead_letters::run(&global, command).await,
        Command::Drill(args) => drill::run(&global, args).await,
        Command::Config(command) => config::run(&global, command),
        Command::Doctor(args) => checks::doctor(&global, args).await,
        Command::Tools(args) => checks::tools(&global, args).await,
        Command::Inspect(command) => inspect::run(&global, command),
        Command::Completions(args) => checks::completions(args),
    };
    outcome.or_else(|error| {
        if let Some(faults) = error.downcast_ref::<Faults>() {
            write_error(&faults.to_string());
            return Ok(Exit::BadConfiguration);
        }
        if is_bad_address(&error) {
            write_error(&format!("tarsy: {}", told(&error)));
            return Ok(Exit::BadConfiguration);
        }
        if !is_role && is_unread(&error) {
            return Ok(Exit::Unread);
        }
        let told = told(&error);
        let hidden = addresses(&global).hide(&told);
        Err(if hidden == told { error } else { anyhow::anyhow!(hidden) })
    })
}

/// Whether no waiting and no repetition can help: an address is missing, or cannot be read.
fn is_bad_address(error: &anyhow::Error) -> bool {
    let is_unreadable = |error: &store::Error| matches!(error, store::Error::BadUrl(_));
    error.is::<BadAddress>() || error.chain().filter_map(|cause| cause.downcast_ref()).any(is_unreadable)
}

/// Whether the output was closed early, as `head` does. A broken connection is an adapter's error, not this one.
fn is_unread(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Libraries say no more than warnings: the MCP crate would log whole messages, and nobody masks those.
fn levels(level: LevelFilter) -> String {
    if level <= LevelFilter::WARN { level.to_string() } else { format!("warn,tarsy={level}") }
}

/// Tells a person what went wrong. There is nobody to tell when standard error is closed.
pub fn write_error(text: &str) {
    writeln!(io::stderr(), "{}", text.trim_end()).ok();
}

/// An error and its causes in one line, each once: most libraries repeat their cause in their own words.
pub fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain() {
        let cause = one_line(&cause.to_string());
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// Lists keep their lines; what libpq wraps is joined.
fn one_line(text: &str) -> String {
    text.trim_end().replace("\n\t", " ")
}

fn load_config(global: &GlobalArgs) -> anyhow::Result<Config> {
    Ok(Config::load(find(global.config.clone()).as_deref(), &process_env)?)
}

/// The addresses that stand in files, put in where no option and no variable has them.
fn with_address_files(mut global: GlobalArgs) -> Result<GlobalArgs, Faults> {
    global.nats_url = from_file(global.nats_url, "NATS_URL", &process_env)?;
    global.database_url = from_file(global.database_url, "DATABASE_URL", &process_env)?;
    Ok(global)
}

fn addresses(global: &GlobalArgs) -> Addresses {
    Addresses {
        nats_url: global.nats_url.clone().unwrap_or_else(|| LOCAL_NATS.to_owned()),
        database_url: global.database_url.clone(),
        llm_addr: global.llm_addr.clone(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("database connection: {0}")]
    struct Repeating(#[source] io::Error);

    #[test]
    fn a_cause_is_told_once_and_in_one_line() {
        let refused = io::Error::other("no answer\n\tIs the server running?\n");
        let error = anyhow::Error::from(Repeating(refused)).context("cannot migrate");
        assert_eq!(told(&error), "cannot migrate: database connection: no answer Is the server running?");
    }

    #[test]
    fn only_a_closed_output_is_no_failure() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_unread(&broken().into()));
        assert!(is_unread(&Err::<(), _>(broken()).context("timeline").unwrap_err()));
        assert!(!is_unread(&Repeating(broken()).into()));
        assert!(!is_unread(&io::Error::from(io::ErrorKind::StorageFull).into()));
    }
}
