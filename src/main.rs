//! The one binary of tarsy.

use std::process::ExitCode;

use tarsy::cli::args::{Cli, Unread};
use tarsy::cli::commands::{run, told, write_error};
use tarsy::cli::exit::Exit;

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(Unread::Said(error)) => error.exit(),
        Err(Unread::NoCommand(help)) => {
            write_error(&help);
            return Exit::Usage.into();
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            write_error(&format!("tarsy: no runtime: {error}"));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(run(cli)).unwrap_or_else(|error| {
        write_error(&format!("tarsy: {}", told(&error)));
        Exit::Failed
    });
    // A database call that hangs must not hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    exit.into()
}
