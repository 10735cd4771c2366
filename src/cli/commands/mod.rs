//! Runs the commands: takes arguments, connects to servers, prints a result and returns an exit code.
//!
//! `roles` runs the long-lived processes. The other modules are one command or group of commands each. They share
//! `database` (calls with short time limits), `publish` (what happens after an alert is published),
//! `person` (publishes as one person) and `output`.

mod roles;
mod submit;
mod watch;
mod ask;
mod queue;
mod sessions;
mod approvals;
mod verdicts;
mod dead_letters;
mod drill;
mod prune;
mod init;
mod config;
mod checks;
mod shell;
mod models;
mod tools;
mod notify;
mod destinations;
mod sources;
mod routes;
mod skills;
mod inspect;
mod database;
mod publish;
mod person;
mod output;

use std::io::{self, IsTerminal as _, Write as _};

use tracing::level_filters::LevelFilter;

pub use shell::answer_shell;

use crate::cli::args::{Cli, Command, GlobalArgs, LogFormat};
use crate::cli::exit::Exit;
use crate::process::connect::{Addresses, BadAddress, LOCAL_NATS, from_file, llm_credentials};
use crate::process::{credentials, secrets};
use tarsy_config::{Config, Faults, Web, find, process_env};
use tarsy_core::ids::SessionId;
use tarsy_core::public_url::PublicUrl;
use tarsy_telemetry::logs;
use tarsy_telemetry::process_mask::ProcessMask;
use tarsy_telemetry::traces::{Settings, Traces};

/// Runs a command to its end.
///
/// # Errors
/// When the command fails. A wrong configuration is printed here and becomes an exit code.
pub async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let Cli { global, command } = cli;
    let default = if command.is_role() {
        LevelFilter::INFO
    } else {
        LevelFilter::WARN
    };
    let format = match global.log {
        LogFormat::Text => logs::Format::Text {
            ansi: io::stderr().is_terminal(),
        },
        LogFormat::Json => logs::Format::Json,
    };
    let traced = command
        .traced_as()
        .map(|role| Settings::read(role, &process_env))
        .transpose();
    let mask = ProcessMask::default();
    let started = traced.and_then(|settings| Traces::start(settings.flatten(), mask.clone()));
    let (recorder, traces) = match started {
        Ok(started) => started,
        Err(faults) => {
            write_error(&faults.to_string());
            return Ok(Exit::BadConfiguration);
        }
    };
    logs::install(
        &levels(global.log_level.unwrap_or(default)),
        format,
        recorder,
        mask.clone(),
    )?;
    let outcome = Box::pin(perform(global, command, mask)).await;
    traces.flush().await;
    outcome
}

async fn perform(global: GlobalArgs, command: Command, mask: ProcessMask) -> anyhow::Result<Exit> {
    let is_role = command.is_role();
    let global = match with_address_files(global) {
        Ok(global) => global,
        Err(faults) => {
            write_error(&faults.to_string());
            return Ok(Exit::BadConfiguration);
        }
    };
    mask.set(secrets::of_process(Some(&addresses(&global))));
    let outcome = match command {
        Command::Worker(args) => Box::pin(roles::worker(&global, args, &mask)).await,
        Command::LlmService(args) => roles::llm_service(&global, args, &mask).await,
        Command::Receive(args) => roles::receive(&global, args, &mask).await,
        Command::Web(args) => roles::web(&global, args, &mask).await,
        Command::EvidenceServer(args) => roles::evidence_server(args).await,
        Command::Migrate(args) => roles::migrate(&global, args).await,
        Command::Prune(args) => prune::run(&global, args).await,
        Command::Submit(args) => submit::run(&global, args).await,
        Command::Watch(args) => watch::run(&global, args).await,
        Command::Ask(args) => ask::run(&global, args).await,
        Command::Queue(args) => queue::run(&global, args).await,
        Command::Sessions(command) => sessions::run(&global, command).await,
        Command::Approvals(command) => approvals::run(&global, command).await,
        Command::Verdict(args) => verdicts::judge(&global, args).await,
        Command::Verdicts(command) => verdicts::run(&global, command).await,
        Command::DeadLetters(command) => dead_letters::run(&global, command).await,
        Command::Drill(args) => drill::run(&global, args).await,
        Command::Init(args) => init::run(&global, args).await,
        Command::Config(command) => config::run(&global, command),
        Command::Doctor(args) => checks::doctor(&global, args).await,
        Command::Health(args) => checks::health(args).await,
        Command::Models(args) => models::run(&global, args).await,
        Command::Tools(args) => tools::run(&global, args).await,
        Command::Notify(command) => notify::run(&global, command).await,
        Command::Destinations(command) => destinations::run(&global, command).await,
        Command::Sources(command) => sources::run(&global, command),
        Command::Routes(command) => routes::run(&global, command),
        Command::Skills(command) => skills::run(&global, command).await,
        Command::Inspect(command) => inspect::run(&global, command),
        Command::Completions(args) => shell::completions(args),
        Command::Man(args) => shell::man(args),
    };
    outcome.or_else(|error| {
        if let Some(faults) = error.downcast_ref::<Faults>() {
            write_error(&faults.to_string());
            return Ok(Exit::BadConfiguration);
        }
        if !is_role && is_output_closed(&error) {
            return Ok(Exit::OutputClosed);
        }
        write_error(&format!(
            "tarsy: {}",
            addresses(&global).redact(&one_line_error(&error))
        ));
        Ok(if is_configuration(&error) {
            Exit::BadConfiguration
        } else {
            Exit::Failed
        })
    })
}

/// Whether an address or a login is missing, invalid or refused, so that a retry cannot help.
fn is_configuration(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<BadAddress>()
            || cause
                .downcast_ref()
                .is_some_and(tarsy_store::Error::is_configuration)
            || cause
                .downcast_ref()
                .is_some_and(tarsy_bus::Error::is_configuration)
    })
}

/// Whether the reader closed the output early, as `head` does. A broken connection to a server is another error.
fn is_output_closed(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The filter of the log. Libraries log warnings at most: the MCP crate would log whole messages, which are not masked.
/// The NATS client logs each refused login, which `bus` reports with its cause.
fn levels(level: LevelFilter) -> String {
    let quiet = "rmcp=off,async_nats::connector=off";
    if level <= LevelFilter::WARN {
        format!("{level},{quiet}")
    } else {
        format!("warn,{quiet},tarsy={level}")
    }
}

/// Prints an error; a closed standard error is ignored.
pub fn write_error(text: &str) {
    writeln!(io::stderr(), "{}", text.trim_end()).ok();
}

/// An error, its causes and what mends it in one line, each once: most libraries repeat their cause in their message.
pub fn one_line_error(error: &anyhow::Error) -> String {
    let message = joined_causes(error);
    let fix = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<tarsy_store::Error>()?.fix())
        .or_else(|| {
            let mut causes = error.chain();
            let fix = causes.find_map(|cause| cause.downcast_ref::<tarsy_bus::Error>()?.fix())?;
            Some(fix.to_owned())
        });
    match fix {
        Some(fix) => format!("{}. Fix: {fix}", message.trim_end_matches('.')),
        None => message,
    }
}

fn joined_causes(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        // libpq wraps its messages; lists keep their lines.
        let cause = cause.to_string().trim_end().replace("\n\t", " ");
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

fn load_config(global: &GlobalArgs) -> anyhow::Result<Config> {
    Ok(Config::load(
        find(global.config.clone()).as_deref(),
        &process_env,
    )?)
}

/// The address of the pages, by the configuration of this machine. A command does not fail because of a link.
fn public_url(global: &GlobalArgs) -> Option<PublicUrl> {
    let web = Web::load(find(global.config.clone()).as_deref(), &process_env);
    web.inspect_err(|faults| tracing::warn!("no links: {faults}"))
        .unwrap_or_default()
        .public_url
}

/// The page of a session.
fn link(global: &GlobalArgs, session: SessionId) -> Option<String> {
    public_url(global).map(|url| url.session(session))
}

/// Reads the addresses from files where no option and no variable has them.
fn with_address_files(mut global: GlobalArgs) -> Result<GlobalArgs, Faults> {
    let nats = from_file(global.nats_url, "NATS_URL", &process_env)?;
    let database = from_file(global.database_url, "DATABASE_URL", &process_env)?;
    global.nats_credentials = credentials::of_nats(nats.file, &process_env)?;
    global.database_secrets = credentials::of_database(database.file, &process_env)?;
    global.nats_url = nats.text;
    // Compose files pass on a variable that is not set as a blank one.
    global.database_url = database.text.filter(|url| !url.trim().is_empty());
    global.llm_credentials = llm_credentials(&process_env)?;
    Ok(global)
}

fn addresses(global: &GlobalArgs) -> Addresses {
    Addresses {
        nats_url: global
            .nats_url
            .clone()
            .unwrap_or_else(|| LOCAL_NATS.to_owned()),
        database_url: global.database_url.clone(),
        llm_addr: global.llm_addr.clone(),
        llm_credentials: global.llm_credentials.clone(),
        nats_credentials: global.nats_credentials.clone(),
        database_secrets: global.database_secrets.clone(),
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
    fn an_error_ends_with_what_mends_it_and_tells_a_refused_login_from_an_outage() {
        let refused = tarsy_store::Error::NotAllowed {
            role: "sre".to_owned(),
            rights: "USAGE on the schema".to_owned(),
        };
        let error = anyhow::Error::from(refused).context("cannot list");
        let expected = "cannot list: database role sre lacks USAGE on the schema. Fix: GRANT USAGE ON SCHEMA public TO sre";
        assert_eq!(
            (one_line_error(&error).as_str(), is_configuration(&error)),
            (expected, false)
        );
        let url = tarsy_bus::Error::Url {
            url: "http://a".to_owned(),
            reason: "no".to_owned(),
        };
        assert!(is_configuration(&anyhow::Error::from(url).context("x")));
    }

    #[test]
    fn a_cause_is_printed_once_and_in_one_line() {
        let refused = io::Error::other("no answer\n\tIs the server running?\n");
        let error = anyhow::Error::from(Repeating(refused)).context("cannot migrate");
        assert_eq!(
            one_line_error(&error),
            "cannot migrate: database connection: no answer Is the server running?"
        );
    }

    #[test]
    fn a_closed_output_differs_from_other_io_errors() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_output_closed(&broken().into()));
        assert!(is_output_closed(
            &Err::<(), _>(broken()).context("timeline").unwrap_err()
        ));
        assert!(!is_output_closed(&Repeating(broken()).into()));
        assert!(!is_output_closed(
            &io::Error::from(io::ErrorKind::StorageFull).into()
        ));
    }
}
