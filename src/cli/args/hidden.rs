//! The command that drills call and people do not: apart, so that no list, suggestion or completion names it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use super::{Cli, Command, GlobalArgs};

#[derive(Parser)]
#[command(name = "tarsy", version)]
struct Hidden {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: HiddenCommand,
}

#[derive(Subcommand)]
enum HiddenCommand {
    /// Serve a drill's recorded evidence as an MCP server on standard input and output
    EvidenceServer(EvidenceServerArgs),
}

/// Arguments that name nothing to do.
#[derive(Debug)]
pub enum Unread {
    /// They are wrong, or ask for help: says what to print, and where.
    Said(clap::Error),
    /// They name no command: the help of what they name.
    NoCommand(String),
}

impl Cli {
    /// Reads the arguments of a process, the program's name first.
    ///
    /// # Errors
    /// When they are wrong, or ask for help.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Unread> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        if arguments.get(1).is_some_and(|command| command == "evidence-server") {
            let Hidden { global, command: HiddenCommand::EvidenceServer(args) } =
                Hidden::try_parse_from(arguments).map_err(Unread::Said)?;
            return Ok(Self { global, command: Command::EvidenceServer(args) });
        }
        Self::try_parse_from(&arguments).map_err(|error| told(error, &arguments))
    }
}

/// The error with the usage of its command as the help shows it: clap would name every variable that is set as if it had
/// to be given. Who names no command gets the help.
fn told(mut error: clap::Error, arguments: &[OsString]) -> Unread {
    let mut root = Cli::command();
    root.build();
    let mut command = &mut root;
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        if command.find_subcommand(word).is_some() {
            let Some(found) = command.find_subcommand_mut(word) else { return Unread::Said(error) };
            command = found;
        }
    }
    if error.kind() == ErrorKind::MissingSubcommand {
        return Unread::NoCommand(command.render_help().to_string());
    }
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    }
    Unread::Said(error)
}

impl Command {
    /// Whether it runs until it is told to stop.
    pub fn is_role(&self) -> bool {
        match self {
            Self::Worker(_) | Self::LlmService(_) | Self::Receive(_) | Self::EvidenceServer(_) => true,
            Self::Migrate(_)
            | Self::Prune(_)
            | Self::Submit(_)
            | Self::Watch(_)
            | Self::Ask(_)
            | Self::Sessions(_)
            | Self::DeadLetters(_)
            | Self::Drill(_)
            | Self::Config(_)
            | Self::Doctor(_)
            | Self::Tools(_)
            | Self::Inspect(_)
            | Self::Completions(_) => false,
        }
    }
}

/// Arguments of `evidence-server`.
#[derive(Args, Clone, Debug)]
pub struct EvidenceServerArgs {
    /// Name of the drill, or a folder of evidence
    pub drill: String,
    /// The socket of the drill's gates, for tests
    #[arg(long, value_name = "SOCKET", env = "TARSY_GATES")]
    pub gates: Option<PathBuf>,
    /// Counts the calls, for tests
    #[arg(long, value_name = "FILE", env = "TARSY_TOOL_CALLS_FILE")]
    pub calls_file: Option<PathBuf>,
    /// Answers at once, however long the recorded tool took
    #[arg(long)]
    pub no_delays: bool,
}
