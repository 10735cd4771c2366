//! `tarsy doctor` and `tarsy completions`.

use std::io::Write as _;

use clap::CommandFactory as _;
use futures_util::StreamExt as _;

use super::addresses;
use super::output::{json_line, print};
use crate::cli::args::{Cli, CompletionsArgs, DoctorArgs, GlobalArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::checks;
use crate::cli::view::TerminalEnv;
use crate::config::find;
use crate::roles::doctor;
use crate::roles::models::Ask;

pub(super) async fn doctor(global: &GlobalArgs, args: DoctorArgs) -> anyhow::Result<Exit> {
    let style = TerminalEnv::of_process().style();
    let mut found = Vec::new();
    let ask = if args.probe { Ask::OneWord(doctor::PROBE_TIMEOUT) } else { Ask::Nothing };
    let mut checks = if args.permissions {
        doctor::permissions::run(&addresses(global)).boxed()
    } else {
        doctor::run(&addresses(global), find(global.config.clone()), ask).boxed()
    };
    while let Some(check) = checks.next().await {
        let lines = if args.json { vec![json_line(&check)?] } else { checks::check(&check, &style) };
        print(&lines)?;
        found.push(check);
    }
    if !args.json {
        print(&[checks::sum(&found)])?;
    }
    let failed = found.iter().any(|check| check.verdict == doctor::Verdict::Fail);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

pub(super) fn completions(args: CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tarsy", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}
