//! The binary: parses the arguments, runs the command and returns its exit code.

use std::process::ExitCode;

use tarsy::cli::args::{Cli, ParseError};
use tarsy::cli::commands::{answer_shell, one_line_error, run, write_error};
use tarsy::cli::exit::Exit;

fn main() -> ExitCode {
    answer_shell();
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(ParseError::Clap(error)) => error.exit(),
        Err(ParseError::NoCommand(help)) => {
            write_error(&help);
            return Exit::Usage.into();
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            write_error(&format!("tarsy: cannot start the runtime: {error}"));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(run(cli)).unwrap_or_else(|error| {
        write_error(&format!("tarsy: {}", one_line_error(&error)));
        Exit::Failed
    });
    // A database call that hangs must not keep the process alive.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    exit.into()
}
