//! The arguments of every command.
//!
//! Each argument is checked here; how arguments work together is decided where they are used. Secrets come from the
//! environment and are never printed with the help.

mod approvals;
mod checks;
mod config;
mod database;
mod familiar;
mod help;
mod hidden;
mod notify;
mod relevant;
mod routes;
mod skills;
mod sessions;
mod sources;
mod tools;
pub(crate) mod values;
mod verdicts;
mod listeners;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::cli::session_ref::{SessionRef, session_id};
use crate::cli::view::ViewArgs;
use crate::process::shutdown::StopOn;
use tarsy_bus::{NatsCredentials, SubjectSuffix};
use tarsy_config::url_pattern::UrlPattern;
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_llm::client::Credentials;
use tarsy_store::Secrets;

use values::{drill, duration, header_value};

pub use approvals::{
    ApprovalsApproveArgs, ApprovalsCommand, ApprovalsDenyArgs, ApprovalsExportArgs,
    ApprovalsFreezeArgs, ApprovalsListArgs, ApprovalsShowArgs, ApprovalsUnfreezeArgs, PersonArgs,
    RequestRef,
};
pub use checks::{
    CompletionsArgs, Controller, DoctorArgs, HealthArgs, InspectAlertArgs, InspectCommand,
    InspectReplyArgs, InspectStreamArgs, JsonArgs, ManArgs, MessageArgs, ModelsArgs, QueueArgs,
};
pub use config::{ExampleArgs, InitArgs};
pub use database::{MigrateArgs, PruneArgs};
pub use hidden::{EvidenceServerArgs, ParseError};
pub use listeners::{ReceiveArgs, WebArgs};
pub use notify::{
    DestinationsCheckArgs, DestinationsCommand, DestinationsTestArgs, NotifyCommand, NotifyTestArgs,
};
pub use routes::{RoutesCommand, RoutesTestArgs};
pub use sessions::{
    AskArgs, DeadLettersCommand, DeadLettersDropArgs, DeadLettersListArgs, DeadLettersRetryArgs,
    DeadLettersShowArgs, LetterRef, SessionsCancelArgs, SessionsCommand, SessionsListArgs,
    SessionsPastArgs, SessionsRerunArgs, SessionsSearchArgs, SessionsShowArgs,
};
pub use skills::{SkillsArgs, SkillsCheckArgs, SkillsCommand, SkillsShowArgs};
pub use sources::{SourcesCommand, SourcesInitArgs, SourcesShowArgs, SourcesTestArgs};
pub use tools::{ToolsArgs, ToolsCallArgs, ToolsCommand, ToolsGapsArgs, ToolsListArgs};
pub use verdicts::{VerdictArgs, VerdictsCommand, VerdictsExportArgs};

/// Investigates alerts with an LLM agent loop that survives the death of any of its parts
#[derive(Clone, Debug, Parser)]
#[command(name = "tarsy", version)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

const NATS_URL: &str = "The NATS servers, separated by commas; NATS_URL_FILE names a file with them [default: nats://127.0.0.1:4222]";
const DATABASE_URL: &str = "The Postgres database; DATABASE_URL_FILE names a file with it";

/// The options of every command.
#[derive(Args, Clone)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// The NATS servers.
    #[arg(long, global = true, value_name = "URL", env = "NATS_URL", hide_env_values = true, help = NATS_URL)]
    pub nats_url: Option<String>,
    /// The Postgres database.
    #[arg(long, global = true, value_name = "URL", env = "DATABASE_URL", hide_env_values = true, help = DATABASE_URL)]
    pub database_url: Option<String>,
    /// The LLM service, as [https://]host:port
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = "TARSY_LLM_ADDR",
        default_value = "127.0.0.1:50051"
    )]
    pub llm_addr: String,
    /// From variables only, because every user of the machine can read a command line.
    #[arg(skip)]
    pub llm_credentials: Credentials,
    #[arg(skip)]
    pub nats_credentials: NatsCredentials,
    #[arg(skip)]
    pub database_secrets: Secrets,
    /// The configuration file [default: tarsy.yaml, if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "TARSY_CONFIG")]
    pub config: Option<PathBuf>,
    /// How the log on standard error is written: text or json
    #[arg(
        long,
        global = true,
        hide_possible_values = true,
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log: LogFormat,
    /// How much is logged: error, warn, info, debug, trace, off [default: info for roles, else warn]
    #[arg(long, global = true, value_name = "LEVEL", env = "TARSY_LOG")]
    pub log_level: Option<LevelFilter>,
}

impl fmt::Debug for GlobalArgs {
    /// Omits the addresses, which may contain passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            llm_addr,
            config,
            log,
            log_level,
            ..
        } = self;
        let mut text = f.debug_struct("GlobalArgs");
        text.field("llm_addr", llm_addr)
            .field("config", config)
            .field("log", log)
            .field("log_level", log_level);
        text.finish_non_exhaustive()
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One object a line
    Json,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Claim alerts and investigate them
    Worker(WorkerArgs),
    /// Serve language models over gRPC
    LlmService(LlmServiceArgs),
    /// Receive alerts over HTTP from Alertmanager, Grafana and others, and queue them
    Receive(ReceiveArgs),
    /// Serve pages and a JSON API that show investigations
    Web(WebArgs),
    /// Migrate the database and the streams to this version; safe to repeat
    Migrate(MigrateArgs),
    /// Delete old investigations and alerts
    Prune(PruneArgs),
    /// Publish an alert
    Submit(SubmitArgs),
    /// Show an investigation from its first event, then live
    Watch(WatchArgs),
    /// Ask a question about an investigation that is over, and follow the answer
    Ask(AskArgs),
    /// Show what waits in the queue and what the workers do
    Queue(QueueArgs),
    /// List, show, rerun or cancel investigations
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// List, show and decide about calls that wait for a person, or freeze all changes
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Say whether the analysis of an investigation was right
    Verdict(VerdictArgs),
    /// Export the investigations whose analyses people judged
    #[command(subcommand)]
    Verdicts(VerdictsCommand),
    /// List, show, retry or drop undeliverable alerts
    #[command(subcommand)]
    DeadLetters(DeadLettersCommand),
    /// Run the whole system against recorded evidence
    Drill(DrillArgs),
    /// Write a first tarsy.yaml, based on what this machine has
    Init(InitArgs),
    /// Check or show the configuration, or print an example
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check everything that tarsy needs, one line each; exit code 1 if something fails
    Doctor(DoctorArgs),
    /// Ask a role of this machine whether it takes work; exit code 1 if it does not
    Health(HealthArgs),
    /// List the configured models, and whether each can be called
    Models(ModelsArgs),
    /// List the tools of the MCP servers with the reason why each is offered, or call one
    Tools(ToolsArgs),
    /// Try a route of notifications
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// List, check or try the destinations of notes
    #[command(subcommand)]
    Destinations(DestinationsCommand),
    /// List, show or test the sources of alerts, or begin a new one
    #[command(subcommand)]
    Sources(SourcesCommand),
    /// Show which route an alert takes, and what becomes of it
    #[command(subcommand)]
    Routes(RoutesCommand),
    /// Check, list and show the skills of the operators
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Show how tarsy reads an alert or an answer
    #[command(subcommand)]
    Inspect(InspectCommand),
    /// Print completions for a shell, which propose commands, options and sessions
    Completions(CompletionsArgs),
    /// Print the manual page of a command, or write those of all commands
    Man(ManArgs),
    /// Serve a drill's recorded evidence; see [`Cli::read`].
    #[command(skip)]
    EvidenceServer(EvidenceServerArgs),
}

/// The option of a role that another process starts.
#[derive(Args, Clone, Copy, Debug)]
pub struct ParentArgs {
    /// Ends with the process that started it: when standard input ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

impl ParentArgs {
    /// The event that stops the role.
    pub fn stop_on(self) -> StopOn {
        if self.with_parent {
            StopOn::SignalOrParentExit
        } else {
            StopOn::Signal
        }
    }
}

/// Arguments of `worker`.
#[derive(Args, Clone, Debug)]
pub struct WorkerArgs {
    /// Name on timelines and in logs [default: host name and process id]
    #[arg(long, env = "TARSY_WORKER_NAME")]
    pub name: Option<String>,
    /// Address of metrics and health; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_LISTEN",
        default_value = "127.0.0.1:0"
    )]
    pub listen: SocketAddr,
    /// The pod of this worker: metadata.uid of Kubernetes
    #[arg(long, value_name = "UID", env = "TARSY_POD_UID")]
    pub pod_uid: Option<String>,
    /// A directory that lives as long as the pod: a worker started again there goes on with its sessions at once
    #[arg(long, value_name = "DIRECTORY", env = "TARSY_POD_STATE")]
    pub pod_state: Option<PathBuf>,
    /// Investigations at the same time [default: worker.slots]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub slots: Option<u32>,
    #[command(flatten)]
    pub parent: ParentArgs,
    /// Uses the configuration of a drill
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "config")]
    pub drill: Option<String>,
    /// The real model of the drill
    #[arg(long, value_name = "JSON", hide = true, requires = "drill")]
    pub drill_provider: Option<String>,
    /// Counts the calls that arrive at the drill's tools
    #[arg(long, value_name = "FILE", hide = true, requires = "drill")]
    pub drill_calls_file: Option<PathBuf>,
    /// The present time for the drill's model
    #[arg(long, value_name = "TIME", hide = true, requires = "drill")]
    pub clock_at: Option<DateTime<Utc>>,
}

/// Arguments of `llm-service`.
#[derive(Args, Clone, Debug)]
pub struct LlmServiceArgs {
    /// Address of the service; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_LLM_LISTEN",
        default_value = "127.0.0.1:50051"
    )]
    pub listen: SocketAddr,
    /// Address of metrics and health; port 0 takes a free one and prints it
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TARSY_METRICS_LISTEN",
        default_value = "127.0.0.1:0"
    )]
    pub metrics_listen: SocketAddr,
    /// Variables, beside those of known providers, whose values requests may use as keys; `*` stands for any characters
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub allow_key_env: Vec<String>,
    /// Addresses, beside those of known providers, that requests may name, as `scheme://host[:port][/path]` with `*`
    #[arg(long, value_name = "PATTERN", num_args = 1.., value_parser = UrlPattern::parse)]
    pub allow_base_url: Vec<UrlPattern>,
    /// Serves every client beyond this machine, without a token and without asking for certificates
    #[arg(long)]
    pub allow_unauthenticated: bool,
    /// Recordings that the scripted provider replays: the .yaml files of a directory, or a drill's folder
    #[arg(long, value_name = "DIRECTORY")]
    pub transcripts: Option<PathBuf>,
    #[command(flatten)]
    pub parent: ParentArgs,
    /// Counts the calls of each execution, for tests
    #[arg(long, value_name = "FILE", env = "TARSY_MODEL_CALLS_FILE", hide = true)]
    pub calls_file: Option<PathBuf>,
    /// The socket of the gates that every answer waits at, for tests
    #[arg(long, value_name = "SOCKET", env = "TARSY_GATES", hide = true)]
    pub gates: Option<PathBuf>,
    /// The pause between two pieces of a recorded answer [default: that of the recording]
    #[arg(long, value_name = "DURATION", value_parser = duration, hide = true)]
    pub pace: Option<Duration>,
    /// Answers alerts and questions without a recording with the recording `generic`, for tests
    #[arg(long, env = "TARSY_ANSWER_UNKNOWN", hide = true)]
    pub answer_unknown: bool,
}

/// Arguments of `submit`.
#[derive(Args, Clone, Debug)]
pub struct SubmitArgs {
    /// The file of the alert, which is any text or JSON; - reads standard input; or several words, the alert itself
    pub file: PathBuf,
    /// Which queue it waits in: critical, high, normal or low [default: the severity in the alert, else normal]
    #[arg(long, short, value_name = "PRIORITY")]
    pub priority: Option<Severity>,
    /// Further tokens of the subject, after tarsy.alerts and the priority
    #[arg(long, value_name = "TOKENS")]
    pub suffix: Option<SubjectSuffix>,
    /// Id of its session, a UUID of version 7 [default: a new one]
    #[arg(long, value_name = "UUID", value_parser = session_id)]
    pub session_id: Option<SessionId>,
    /// The chain of agents that investigates it [default: that of its type]
    #[arg(long, value_name = "CHAIN", value_parser = header_value)]
    pub chain: Option<String>,
    /// Investigate although the same alert was investigated within the cooldown
    #[arg(long)]
    pub force: bool,
    /// Follow the investigation to its end
    #[arg(long, short)]
    pub watch: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// Arguments of `watch`.
#[derive(Args, Clone, Debug)]
pub struct WatchArgs {
    /// The id, or at least six characters of its beginning or end [default: the newest session]
    pub session: Option<SessionRef>,
    /// Every event of every session, one line each, until Ctrl-C
    #[arg(long, conflicts_with = "session")]
    pub all: bool,
    /// The investigation and every question about it, one after another
    #[arg(long, conflicts_with = "all")]
    pub thread: bool,
    /// Only the events of the agent of this name, such as a sub-agent, and the end
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// Arguments of `drill`.
#[derive(Args, Clone, Debug)]
pub struct DrillArgs {
    /// Which recorded incident: one that --list names, or a folder of your own
    #[arg(value_name = "NAME|FOLDER", default_value = "oom-killed", value_parser = drill)]
    pub name: String,
    /// Name the recorded incidents and run none
    #[arg(long)]
    pub list: bool,
    /// Kill the worker that owns the investigation in the middle of it
    #[arg(long)]
    pub kill: bool,
    /// The person denies the calls that they would approve: for a drill with decisions of people (approve-restart)
    #[arg(long)]
    pub no_approve: bool,
    /// When it is over, investigate the same alert again: the second investigation is shown the first one
    #[arg(long, conflicts_with = "provider")]
    pub again: bool,
    /// When it is over, ask this about it
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
    /// Ask a real model instead of replaying a recording: a provider of tarsy.yaml, or gemini, openai, anthropic, xai,
    /// ollama; a rubric judges its report, with exit code 4 unless it is solved
    #[arg(long, value_name = "NAME[:MODEL]")]
    pub provider: Option<String>,
    /// Address of a server that speaks the API of the provider; the provider's key is sent there if it is set
    #[arg(long, value_name = "URL", requires = "provider")]
    pub base_url: Option<String>,
    /// Checks the provider's key and server, and runs nothing
    #[arg(long, hide = true, requires = "provider")]
    pub check_provider: bool,
    /// Print the drill's configuration, for a system of your own with its tools, and run nothing
    #[arg(long)]
    pub print_config: bool,
    /// The servers end with the drill: no command is named that needs them
    #[arg(long, hide = true)]
    pub servers_end: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// The commands about the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// List every fault of the configuration; exit code 78 if there is one
    Check(JsonArgs),
    /// Print the configuration with everything resolved and no secret in it
    Show(JsonArgs),
    /// Print a configuration to begin with
    Example(ExampleArgs),
    /// Print the JSON Schema of the file, for editors
    Schema,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_hidden_command_of_drills_is_parsed_but_not_listed() {
        let read = |words: &[&str]| Cli::read(words.iter().map(OsString::from));
        let cli = read(&["tarsy", "evidence-server", "oom-killed", "--no-delays"]).unwrap();
        assert!(matches!(cli.command, Command::EvidenceServer(_)));
        let Err(ParseError::Clap(error)) = read(&["tarsy", "evidence"]) else {
            panic!("read")
        };
        let message = error.to_string();
        assert!(!message.contains("evidence-server"), "{message}");
        assert!(
            Cli::command()
                .get_subcommands()
                .all(|command| command.get_name() != "evidence-server")
        );
    }

    #[test]
    fn no_password_is_printed_with_the_arguments() {
        let cli = Cli::parse_from([
            "tarsy",
            "--database-url",
            "postgres://u:word@h/d",
            "--nats-url",
            "w:word@h",
            "migrate",
        ]);
        let printed = format!("{cli:?}");
        assert!(
            printed.contains("Migrate") && !printed.contains("word"),
            "{printed}"
        );
    }
}
