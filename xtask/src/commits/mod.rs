//! A check of commit messages: the form that CONTRIBUTING.md gives.
//!
//! Commits before `START` have other forms, and merges and the first commit of a history have none. The date decides,
//! not an id, so that a shallow clone checks the commits that it has, and a rebased commit stays a new one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, bail};

/// Commits at or after this time are checked: 2026-11-29 03:00 UTC, in seconds since 1970. CONTRIBUTING.md names it.
const START: u64 = 1_795_921_200;
const MAX_SUBJECT: usize = 72;
const PARTS: [&str; 3] = ["Problem:", "Solution:", "Checked:"];

/// The outcome of the check.
#[derive(Debug)]
pub enum Outcome {
    /// All messages have the form; the number of checked commits, and whether older ones are not in this clone.
    Passed {
        /// The number of commits since the start.
        checked: usize,
        /// The history of the clone.
        history: History,
    },
    /// A line for each fault.
    Refused(Vec<String>),
    /// The reason for which there is nothing to check.
    Skipped(&'static str),
}

/// The part of the history that a clone has.
#[derive(Debug, PartialEq, Eq)]
pub enum History {
    /// All commits.
    Whole,
    /// The last commits only.
    Shallow,
}

impl Outcome {
    /// The lines that users see.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Passed {
                checked,
                history: History::Whole,
            } => {
                vec![format!("messages of {checked} commits: ok")]
            }
            Self::Passed {
                checked,
                history: History::Shallow,
            } => vec![
                format!("messages of {checked} commits: ok"),
                "SKIPPED: the messages of commits that this shallow clone does not have: git fetch --unshallow".to_owned(),
            ],
            Self::Refused(faults) => faults
                .iter()
                .cloned()
                .chain(["CONTRIBUTING.md has the form of a message".to_owned()])
                .collect(),
            Self::Skipped(reason) => {
                vec![format!("SKIPPED: the messages of commits: {reason}")]
            }
        }
    }
}

/// Checks the history of the repository whose root this folder is.
///
/// # Errors
/// When git fails.
pub fn check(root: &Path) -> anyhow::Result<Outcome> {
    let Ok(top) = git(root, &["rev-parse", "--show-toplevel"]) else {
        return Ok(Outcome::Skipped("git is not on PATH"));
    };
    // The files of an archive can lie within another repository.
    let is_root = top.status.success()
        && fs::canonicalize(text(&top).trim()).ok() == Some(root.canonicalize()?);
    if !is_root {
        return Ok(Outcome::Skipped("this folder is no clone"));
    }
    if !git(root, &["rev-parse", "--verify", "--quiet", "HEAD"])?
        .status
        .success()
    {
        return Ok(Outcome::Skipped("there is no commit"));
    }
    let shallow = git(root, &["rev-parse", "--is-shallow-repository"])?;
    let history = match text(&shallow).trim() {
        "true" => History::Shallow,
        _ => History::Whole,
    };
    let mut arguments = vec!["log", "--no-merges", "-z", "--format=%h%x1f%ct%x1f%B"];
    if history == History::Whole {
        // A first commit imports files and changes none. In a shallow clone, the last one with its parents cut off
        // looks like a first one.
        arguments.push("--min-parents=1");
    }
    let log = git(root, &arguments)?;
    if !log.status.success() {
        bail!("git log: {}", String::from_utf8_lossy(&log.stderr).trim());
    }
    let mut faults = Vec::new();
    let mut checked = 0;
    for commit in commits(&text(&log))? {
        checked += 1;
        let found = faults_of(&commit.message);
        faults.extend(found.iter().map(|fault| format!("{}: {fault}", commit.id)));
    }
    if !faults.is_empty() {
        return Ok(Outcome::Refused(faults));
    }
    Ok(Outcome::Passed { checked, history })
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output();
    output.context("git cannot be started")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

struct Commit {
    id: String,
    message: String,
}

/// The commits of a log since the start.
fn commits(log: &str) -> anyhow::Result<Vec<Commit>> {
    let mut found = Vec::new();
    for record in log.split('\0').filter(|record| !record.is_empty()) {
        let mut fields = record.splitn(3, '\u{1f}');
        let (Some(id), Some(time), Some(message)) = (fields.next(), fields.next(), fields.next())
        else {
            bail!("git log printed another form: {record:?}");
        };
        let time: u64 = time
            .parse()
            .with_context(|| format!("{id}: {time:?} is no time"))?;
        if time >= START {
            found.push(Commit {
                id: id.to_owned(),
                message: message.to_owned(),
            });
        }
    }
    Ok(found)
}

/// One line for each rule that a message breaks.
fn faults_of(message: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    let length = subject.chars().count();
    if length > MAX_SUBJECT {
        faults.push(format!(
            "the subject has {length} characters, at most {MAX_SUBJECT}: {subject}"
        ));
    }
    let mut rest = body;
    for part in PARTS {
        match after(rest, part) {
            Some(found) => rest = found,
            None => faults.push(format!("the body has no \"{part}\" with a text: {subject}")),
        }
    }
    faults
}

/// The text after the line that begins with this word, if the word has a text before the next paragraph.
fn after<'t>(body: &'t str, part: &str) -> Option<&'t str> {
    let mut rest = body;
    loop {
        let (line, next) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some(begin) = line.strip_prefix(part) {
            let follows = next.lines().next().unwrap_or_default();
            let has_text = [begin, follows].iter().any(|text| !text.trim().is_empty());
            return has_text.then_some(next);
        }
        if next.is_empty() {
            return None;
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests;
