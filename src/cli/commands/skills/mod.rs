//! `tarsy skills`: checks, lists and shows the skills of the configured directories.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::cli::args::{GlobalArgs, SkillsArgs, SkillsCheckArgs, SkillsCommand, SkillsShowArgs};
use crate::cli::commands::output::{json_lines, note, print, print_json, style};
use crate::cli::commands::{load_config, one_line_error, write_error};
use crate::cli::exit::Exit;
use crate::cli::render::text;
use crate::process::{skills, tools};
use tarsy_config::Config;
use tarsy_skills::{Library, SourcedSkill, findings, missing_tools};

pub(super) async fn run(global: &GlobalArgs, command: SkillsCommand) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    if config.skills.directories.is_empty() {
        note(
            "no directory is configured: skills.directories names them, docs/skills.md explains them",
        )?;
    }
    let library = skills::library(&config)?;
    match command {
        SkillsCommand::Check(args) => check(&config, &library, &args).await,
        SkillsCommand::List(args) => list(&library, &args),
        SkillsCommand::Show(args) => show(&library, &args),
    }
}

async fn check(config: &Config, library: &Library, args: &SkillsCheckArgs) -> anyhow::Result<Exit> {
    let offered = if args.tools {
        offered_tools(config).await
    } else {
        BTreeMap::new()
    };
    let mut lines = Vec::new();
    let mut values = Vec::new();
    for fault in &library.faults {
        let path = fault.path.display().to_string();
        lines.push(format!("{path}: left out: {}", fault.why));
        values.push(json!({"path": path, "left_out": fault.why}));
    }
    for known in &library.skills {
        let missing = missing_tools(known, &offered)
            .into_iter()
            .map(|tool| format!("it names {tool}, which its server does not offer"));
        for finding in findings(known).into_iter().chain(missing) {
            let name = &known.skill.name;
            lines.push(format!("{name}: {finding}"));
            values.push(json!({"skill": name, "finding": finding}));
        }
    }
    for unknown in skills::unknown(config, library) {
        values.push(json!({"finding": unknown}));
        lines.push(unknown);
    }
    let exit = if lines.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    };
    if args.json {
        print(&json_lines(&values)?)?;
        return Ok(exit);
    }
    print(&cleaned(lines))?;
    note(&skills::counted(library))?;
    Ok(exit)
}

/// The tools that each server offers. A server that does not answer is reported, and its tools are not compared.
async fn offered_tools(config: &Config) -> BTreeMap<String, BTreeSet<String>> {
    let names = config.mcp_servers.keys();
    let listed = join_all(names.clone().map(|name| tools::list(config, name))).await;
    let mut offered = BTreeMap::new();
    for (name, listed) in names.zip(listed) {
        match listed {
            Ok(inventory) => {
                let tools = inventory.offered.into_iter().map(|tool| tool.name);
                offered.insert(name.clone(), tools.collect());
            }
            Err(error) => write_error(&format!(
                "{name}: {}; its tools are not compared",
                one_line_error(&error)
            )),
        }
    }
    offered
}

fn list(library: &Library, args: &SkillsArgs) -> anyhow::Result<Exit> {
    if args.json {
        let values: Vec<Value> = library.skills.iter().map(described).collect();
        print(&json_lines(&values)?)?;
        return Ok(Exit::Done);
    }
    let lines = library.skills.iter().map(|known| {
        let skill = &known.skill;
        let description = skill.description.replace('\n', " ");
        format!("{}: {description}", skill.name)
    });
    print(&cleaned(lines.collect()))?;
    if !library.faults.is_empty() {
        note("others are left out: tarsy skills check says why")?;
    }
    Ok(Exit::Done)
}

fn show(library: &Library, args: &SkillsShowArgs) -> anyhow::Result<Exit> {
    let name = &args.name;
    let known = library
        .named(name)
        .with_context(|| format!("there is no skill {name}: tarsy skills list names them"))?;
    let skill = &known.skill;
    let shown = match &args.file {
        None => &skill.body,
        Some(file) => skill
            .files
            .get(file)
            .with_context(|| format!("the skill {name} has no file {file}"))?,
    };
    if args.json {
        let mut value = described(known);
        crate::cli::commands::output::add(&mut value, "text", shown.text.clone());
        print_json(&value)?;
        return Ok(Exit::Done);
    }
    if args.file.is_none() {
        let mut lines = vec![
            format!("{name}: {}", skill.description.replace('\n', " ")),
            format!("file: {}", known.path.display()),
        ];
        lines.extend(
            known
                .shown
                .iter()
                .map(|(key, value)| format!("{key}: {value}")),
        );
        lines.extend(skill.files.keys().map(|file| format!("references/{file}")));
        lines.push(String::new());
        print(&cleaned(lines))?;
    }
    print(&[text::clean(&shown.text, style().charset)])?;
    Ok(Exit::Done)
}

/// A skill without its texts, for programs.
fn described(known: &SourcedSkill) -> Value {
    let skill = &known.skill;
    let files: Vec<&String> = skill.files.keys().collect();
    json!({
        "name": skill.name, "description": skill.description, "path": known.path.display().to_string(),
        "bytes": skill.body.text.len(), "sha256": skill.body.hash.to_string(), "files": files,
    })
}

fn cleaned(lines: Vec<String>) -> Vec<String> {
    let charset = style().charset;
    lines
        .into_iter()
        .map(|line| text::clean(&line, charset))
        .collect()
}
