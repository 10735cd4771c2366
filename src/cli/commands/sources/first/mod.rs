//! `tarsy sources init`: a first source for the bodies of an unknown system, as YAML with a remark for each key that
//! was not found.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::cli::args::SourcesInitArgs;
use crate::cli::commands::output::{note, print};
use crate::cli::commands::submit;
use crate::cli::exit::Exit;
use tarsy_config::{Config, source_name_fault};
use tarsy_core::intake::guess::{Guess, GuessedLabels, GuessedLink, GuessedWords, WordMeaning};
use tarsy_core::intake::{Hints, Intake};

const NAME: &str = "my-source";

pub(super) fn print_guess(config: &Config, args: &SourcesInitArgs) -> anyhow::Result<Exit> {
    let named = submit::named(&args.file);
    let body = submit::read(&args.file)?;
    let value: Value = serde_json::from_slice(&body).with_context(|| {
        format!("{named} is no JSON: a body that is plain text needs no source")
    })?;
    ensure!(
        value.is_object() || value.is_array(),
        "{named} is no JSON object: its text needs no source"
    );
    let name = args.name.clone().unwrap_or_else(|| name_of_file(args));
    let known = Intake::new(config.sources.all());
    let reader = known
        .part(&body, &Hints::default())
        .map(|part| part.alert.source)
        .unwrap_or_default();
    if known.sources().contains(&reader) {
        note(&format!(
            "{reader} reads this body already; {name:?} may be `like: {reader}` instead"
        ))?;
    }
    let text = yaml(&name, &Guess::new(&value));
    check(&name, &text)?;
    print(&[text.trim_end().to_owned()])?;
    Ok(Exit::Done)
}

/// The name of the file, if it can be that of a source.
fn name_of_file(args: &SourcesInitArgs) -> String {
    let stem = args
        .file
        .file_stem()
        .map(|stem| stem.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let is_word =
        stem.chars().any(|c| c.is_ascii_alphabetic()) && source_name_fault(&stem).is_none();
    if is_word { stem } else { NAME.to_owned() }
}

/// The program refuses to print a source that it would not read.
fn check(name: &str, text: &str) -> anyhow::Result<()> {
    let file = format!("sources:\n{text}");
    Config::parse(name, &file, &|_| None).context("no source could be made of this body")?;
    Ok(())
}

/// The source under its name, indented for the section `sources`.
pub(super) fn yaml(name: &str, guess: &Guess) -> String {
    let lines = [
        given(
            "recognise",
            recognise(guess),
            "fewer than two fields; only /hooks/<name> leads to this source",
        ),
        optional("parse", list(&guess.parse)),
        optional("each", guess.each.as_deref().map(each)),
        given(
            "type",
            text(guess.alert_type.as_ref()),
            "the name of the rule or check; the title is taken",
        ),
        given(
            "title",
            text(guess.title.as_ref()),
            "the type and what the labels name are taken",
        ),
        given(
            "severity",
            guess.severity.as_ref().map(words),
            "the priority of the queue is taken",
        ),
        given(
            "status",
            guess.status.as_ref().map(status),
            "every body fires, and none ends an alert",
        ),
        given(
            "key",
            list(&guess.key),
            "no name or id of a condition; each other body is a new alert",
        ),
        optional("labels", labels(&guess.labels)),
        optional("links", links(&guess.links)),
        given(
            "runbook",
            text(guess.runbook.as_ref()),
            "an address of a runbook",
        ),
        given("at", text(guess.at.as_ref()), "the time of the change"),
    ];
    let mut yaml = format!("  {name}:\n");
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    for line in &lines {
        yaml.push_str(&format!("    {line}\n"));
    }
    // A source without a key would be refused.
    if lines.iter().all(|line| line.starts_with('#')) {
        yaml.push_str("    text: all\n");
    }
    yaml
}

/// A key, or a remark about its absence.
fn given(key: &str, value: Option<String>, absent: &str) -> String {
    value.map_or_else(
        || format!("# {key}: not found: {absent}"),
        |value| format!("{key}: {value}"),
    )
}

fn optional(key: &str, value: Option<String>) -> String {
    value
        .map(|value| format!("{key}: {value}"))
        .unwrap_or_default()
}

fn text(expression: Option<&String>) -> Option<String> {
    expression.map(|expression| quoted(expression))
}

/// An empty pointer is the body itself.
fn each(pointer: &str) -> String {
    if pointer.is_empty() {
        "''".to_owned()
    } else {
        quoted(pointer)
    }
}

fn list(expressions: &[String]) -> Option<String> {
    sequence(expressions.iter().map(|expression| quoted(expression)))
}

/// A sequence of YAML, if it has items.
fn sequence(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
}

fn recognise(guess: &Guess) -> Option<String> {
    list(&guess.recognise).map(|pointers| format!("{{has: {pointers}}}"))
}

/// The words of a table may be all or only those of this body.
fn words(words: &GuessedWords) -> String {
    let GuessedWords { from, map } = words;
    if map.is_empty() {
        return quoted(from);
    }
    let map: Vec<String> = map
        .iter()
        .map(|WordMeaning { word, meaning }| format!("{}: {meaning}", single_quoted(word)))
        .collect();
    format!(
        "{{from: {}, map: {{{}}}}}  # add the other words",
        quoted(from),
        map.join(", ")
    )
}

fn status(found: &GuessedWords) -> String {
    if found.map.len() > 1 {
        words(found).replace("  # add the other words", "")
    } else {
        words(found)
    }
}

fn labels(labels: &[GuessedLabels]) -> Option<String> {
    sequence(labels.iter().map(|labels| match labels {
        GuessedLabels::Object(pointer) => format!("{{object: {}}}", quoted(pointer)),
        GuessedLabels::Split { list, separator } => {
            format!("{{list: {}, split: '{separator}'}}", quoted(list))
        }
        GuessedLabels::Pairs { list, name, value } => {
            format!("{{list: {}, name: {name}, value: {value}}}", quoted(list))
        }
    }))
}

fn links(links: &[GuessedLink]) -> Option<String> {
    let links: Vec<String> = links
        .iter()
        .map(|GuessedLink { name, url }| format!("{}: {}", single_quoted(name), quoted(url)))
        .collect();
    (!links.is_empty()).then(|| format!("{{{}}}", links.join(", ")))
}

/// A text that YAML reads as it is, with quotes only where it needs them.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with('/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
    if is_plain {
        text.to_owned()
    } else {
        single_quoted(text)
    }
}

fn single_quoted(text: &str) -> String {
    let is_name = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        && !matches!(
            text,
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_name {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests;
