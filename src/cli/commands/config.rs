//! `tarsy config`: checks and shows the configuration, and prints an example.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::load_config;
use crate::cli::args::{ConfigCommand, ExampleArgs, GlobalArgs, JsonArgs};
use crate::cli::exit::Exit;
use crate::cli::render::json::line;
use crate::config::{Config, EXAMPLE, EXAMPLES, Fault, describe, example_of, find, hints, process_env, show};

pub(super) fn run(global: &GlobalArgs, command: ConfigCommand) -> anyhow::Result<Exit> {
    let (text, exit) = match command {
        ConfigCommand::Example(args) => (example(&args), Exit::Done),
        ConfigCommand::Show(args) => {
            let config = load_config(global)?;
            (if args.json { line(&config)? } else { show(&config) }, Exit::Done)
        }
        ConfigCommand::Check(args) => check(find(global.config.clone()).as_deref(), args)?,
    };
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(exit)
}

fn example(args: &ExampleArgs) -> String {
    if args.list {
        return EXAMPLES.iter().map(|example| format!("{:<20}{}\n", example.case, example.about)).collect();
    }
    let chosen = args.case.as_deref().and_then(example_of);
    chosen.map_or(EXAMPLE, |example| example.text).to_owned()
}

/// The faults are the result of this command, so they are printed on standard output.
fn check(file: Option<&Path>, args: JsonArgs) -> anyhow::Result<(String, Exit)> {
    let name = file.map_or_else(|| "built-in configuration".to_owned(), |file| file.display().to_string());
    match Config::load(file, &process_env) {
        Ok(config) if args.json => Ok((
            line(&json!({"file": name, "faults": [], "defined": describe(&config), "hints": hints(&config)}))?,
            Exit::Done,
        )),
        Ok(config) => {
            let hints: String = hints(&config).iter().map(|hint| format!("\n  {hint}")).collect();
            Ok((format!("{name}: no faults; {}{hints}", describe(&config)), Exit::Done))
        }
        Err(found) if args.json => {
            let one = |fault: &Fault| json!({"key": fault.key, "line": fault.line, "problem": fault.problem});
            let faults: Vec<Value> = found.faults.iter().map(one).collect();
            Ok((line(&json!({"file": name, "faults": faults}))?, Exit::BadConfiguration))
        }
        Err(faults) => Ok((faults.to_string(), Exit::BadConfiguration)),
    }
}
