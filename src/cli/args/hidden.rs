//! The hidden command that only drills run. It is parsed separately, so that help, suggestions and completions do not
//! show it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, FromArgMatches as _, Parser, Subcommand};

use super::{Cli, Command, GlobalArgs, familiar};

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

/// The reason why the arguments name no command to run.
#[derive(Debug)]
pub enum ParseError {
    /// The arguments are wrong or ask for help; the error has the text and the stream to print it on.
    Clap(clap::Error),
    /// The arguments name no command; the text is the help of the group that they name.
    NoCommand(String),
}

impl Cli {
    /// Parses the arguments of a process; the first is the name of the program.
    ///
    /// # Errors
    /// When the arguments are wrong, ask for help or name no command.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, ParseError> {
        let arguments = familiar::translated(arguments.into_iter().collect());
        if arguments
            .get(1)
            .is_some_and(|command| command == "evidence-server")
        {
            let Hidden {
                global,
                command: HiddenCommand::EvidenceServer(args),
            } = Hidden::try_parse_from(arguments).map_err(ParseError::Clap)?;
            return Ok(Self {
                global,
                command: Command::EvidenceServer(args),
            });
        }
        let parsed = Self::shown().try_get_matches_from(&arguments);
        let read = parsed.and_then(|mut matches| Self::from_arg_matches_mut(&mut matches));
        read.map_err(|error| with_usage(error, &arguments))
    }
}

/// The error with the usage that the help shows: clap would list every option whose variable is set as required. A
/// missing command becomes the help.
fn with_usage(mut error: clap::Error, arguments: &[OsString]) -> ParseError {
    let mut root = Cli::shown();
    root.build();
    let mut command = &mut root;
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        if command.find_subcommand(word).is_some() {
            let Some(found) = command.find_subcommand_mut(word) else {
                return ParseError::Clap(error);
            };
            command = found;
        }
    }
    if error.kind() == ErrorKind::MissingSubcommand {
        return ParseError::NoCommand(command.render_help().to_string());
    }
    if error.get(ContextKind::Usage).is_some() {
        error.insert(
            ContextKind::Usage,
            ContextValue::StyledStr(command.render_usage()),
        );
    }
    let name = command.get_name().to_owned();
    ParseError::Clap(familiar::with_tip(error, &name))
}

impl Command {
    /// Whether the command runs until a signal stops it.
    pub fn is_role(&self) -> bool {
        matches!(
            self,
            Self::Worker(_)
                | Self::LlmService(_)
                | Self::Receive(_)
                | Self::Web(_)
                | Self::EvidenceServer(_)
        )
    }

    /// The role in the name of the service that traces of this command belong to, empty for a command of people; `None`
    /// if the command has no part in a trace.
    pub fn traced_as(&self) -> Option<&'static str> {
        match self {
            Self::Worker(_) => Some("worker"),
            Self::LlmService(_) => Some("llm-service"),
            Self::Receive(_) => Some("receive"),
            Self::Submit(_) | Self::Ask(_) => Some(""),
            Self::EvidenceServer(_)
            | Self::Web(_)
            | Self::Migrate(_)
            | Self::Prune(_)
            | Self::Watch(_)
            | Self::Queue(_)
            | Self::Sessions(_)
            | Self::Approvals(_)
            | Self::Verdict(_)
            | Self::Verdicts(_)
            | Self::DeadLetters(_)
            | Self::Drill(_)
            | Self::Init(_)
            | Self::Config(_)
            | Self::Doctor(_)
            | Self::Health(_)
            | Self::Models(_)
            | Self::Tools(_)
            | Self::Notify(_)
            | Self::Destinations(_)
            | Self::Sources(_)
            | Self::Routes(_)
            | Self::Skills(_)
            | Self::Inspect(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
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
    /// Answers without the recorded delays
    #[arg(long)]
    pub no_delays: bool,
}
