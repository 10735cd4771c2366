//! `tarsy config`: checks and shows the configuration, and prints an example or the schema.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::admin::init::{self, Existing};
use crate::cli::args::{ConfigCommand, ExampleArgs, GlobalArgs, JsonArgs};
use crate::cli::exit::Exit;
use crate::cli::render::json::line;
use crate::process::secrets::may_be_secret;
use crate::process::shown::{without_literal_secrets, without_users};
use crate::process::skills;
use tarsy_config::{
    Composed, Config, EXAMPLE, EXAMPLES, Resolved, Template, compose, describe, example_of, find,
    hints, process_env, schema, show,
};

pub(super) fn run(global: &GlobalArgs, command: ConfigCommand) -> anyhow::Result<Exit> {
    let (text, exit) = match command {
        ConfigCommand::Example(ExampleArgs {
            case: Some(case),
            into: Some(file),
            ..
        }) => add(&case, &file)?,
        ConfigCommand::Example(args) => (example(&args), Exit::Done),
        ConfigCommand::Show(args) => {
            let file = find(global.config.clone());
            let secrets = secrets_in(file.as_deref())?;
            let config = Config::load(file.as_deref(), &process_env)?;
            let config = without_literal_secrets(&config, &secrets);
            let shown = if args.json {
                line(&config)?
            } else {
                show(&config)
            };
            (without_users(&secrets.unresolved(&shown)), Exit::Done)
        }
        ConfigCommand::Schema => (schema(), Exit::Done),
        ConfigCommand::Check(args) => check(find(global.config.clone()).as_deref(), args)?,
    };
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(exit)
}

/// The values of the variables in a file that may be secrets.
fn secrets_in(file: Option<&Path>) -> anyhow::Result<Resolved> {
    let mut resolved = Resolved::default();
    let text = file.map(read).transpose()?.flatten();
    resolved.add(
        &Template::new(text.unwrap_or_default()),
        &process_env,
        may_be_secret,
    );
    Ok(resolved)
}

fn example(args: &ExampleArgs) -> String {
    if args.list {
        return EXAMPLES
            .iter()
            .map(|example| format!("{:<20}{}\n", example.case, example.about))
            .collect();
    }
    let chosen = args.case.as_deref().and_then(example_of);
    chosen.map_or(EXAMPLE, |example| example.text).to_owned()
}

/// Adds an example to a file, unless that would give it a fault.
fn add(case: &str, file: &Path) -> anyhow::Result<(String, Exit)> {
    let example = example_of(case).map_or(EXAMPLE, |example| example.text);
    let name = file.display().to_string();
    let old = read(file)?;
    let composed = match &old {
        None => Composed {
            text: example.to_owned(),
            added: vec![format!("the example {case}")],
            kept: Vec::new(),
        },
        Some(old) => compose(old, example).with_context(|| name.clone())?,
    };
    Config::parse(&name, &composed.text, &process_env)?;
    let kept: String = composed
        .kept
        .iter()
        .map(|entry| format!("\n  kept {entry}, which the file has"))
        .collect();
    if composed.added.is_empty() {
        return Ok((
            format!("{name} has everything of the example {case} already{kept}"),
            Exit::Done,
        ));
    }
    let existing = if old.is_some() {
        Existing::Replace
    } else {
        Existing::Keep
    };
    init::write(file, &composed.text, existing).with_context(|| format!("cannot write {name}"))?;
    Ok((
        format!("{name}: added {}{kept}", composed.added.join(", ")),
        Exit::Done,
    ))
}

/// The text of a file; `None` if there is none.
fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// The hints of the configuration, and the names in it that no skill has.
fn all_hints(config: &Config) -> Vec<String> {
    let unknown = skills::library(config).map(|library| skills::unknown(config, &library));
    let mut all = unknown.unwrap_or_default();
    all.extend(hints(config));
    all
}

/// The faults are the result of this command, so they are printed on standard output.
fn check(file: Option<&Path>, args: JsonArgs) -> anyhow::Result<(String, Exit)> {
    let name = file.map_or_else(
        || "built-in configuration".to_owned(),
        |file| file.display().to_string(),
    );
    match Config::load(file, &process_env) {
        Ok(config) if args.json => Ok((
            line(
                &json!({"file": name, "faults": [], "defined": describe(&config), "hints": all_hints(&config)}),
            )?,
            Exit::Done,
        )),
        Ok(config) => {
            let hints: String = all_hints(&config)
                .iter()
                .map(|hint| format!("\n  {hint}"))
                .collect();
            Ok((
                format!("{name}: no faults; {}{hints}", describe(&config)),
                Exit::Done,
            ))
        }
        Err(found) if args.json => {
            let faults = found.faults.iter().map(
                |fault| json!({"key": fault.key, "line": fault.line, "problem": fault.problem}),
            );
            let faults: Vec<Value> = faults.collect();
            Ok((
                line(&json!({"file": name, "faults": faults}))?,
                Exit::BadConfiguration,
            ))
        }
        Err(faults) => Ok((faults.to_string(), Exit::BadConfiguration)),
    }
}
