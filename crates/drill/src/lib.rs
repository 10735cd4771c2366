//! Drills: recorded incidents that run the whole system without a model or a cluster.
//!
//! A drill has a transcript (`transcript`, `repeat`) that the scripted model of `llm/` plays, evidence (`evidence`)
//! that the server of `mcp/` serves, and the expected result (`expected`). A real model is judged by a rubric instead
//! (`judging`). Where a call waits for a person, the drill has their decision (`decisions`). `gate` lets tests hold a
//! drill at a chosen point. Some drills are part of the program (`builtin`), others are folders of their authors
//! (`folder`).

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod builtin;
mod folder;
pub mod transcript;
mod repeat;
pub mod evidence;
pub mod decisions;
pub mod gate;
pub mod expected;
pub mod judging;

use std::path::Path;

use self::decisions::{Decision, DecisionsError};
use self::evidence::{Evidence, EvidenceError};
use self::expected::Expected;
use self::judging::rubric::Rubric;
use tarsy_config::Faults;

pub use builtin::{BUILTIN, builtin};
pub use folder::{FolderError, Player, transcript_files};

/// The folder of the recorded answers.
const EVIDENCE: &str = "evidence";

/// A recorded incident. Its texts live as long as the process: they are part of the program, or were read once.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    /// The name of its folder.
    pub name: &'static str,
    /// The captured alert, as a producer publishes it.
    pub alert: &'static str,
    /// The configuration file, without the MCP server of the evidence.
    pub config: &'static str,
    /// A [`transcript::Transcript`], or one for each agent; empty without a recording.
    pub transcripts: &'static [&'static str],
    expected: Option<&'static str>,
    rubric: Option<&'static str>,
    decisions: Option<&'static str>,
    recorded: Recorded,
}

/// The place of the recorded answers of tools.
#[derive(Clone, Copy, Debug)]
enum Recorded {
    /// The files are in the program: the index, and the files that it names.
    Program {
        index: &'static str,
        files: &'static [(&'static str, &'static str)],
    },
    /// The files are in the drill's folder, beside the others; the path is absolute.
    Folder(&'static Path),
}

impl Drill {
    /// The recorded answers of its tools.
    ///
    /// # Errors
    /// When a recorded file is invalid or cannot be read; tests check all built-in drills.
    pub fn evidence(&self) -> Result<Evidence, EvidenceError> {
        match self.recorded {
            Recorded::Program { index, files } => Evidence::parse(index, |file| {
                let found = files.iter().find(|(name, _)| *name == file);
                found
                    .map(|(_, text)| (*text).to_owned())
                    .ok_or_else(|| std::io::ErrorKind::NotFound.into())
            }),
            Recorded::Folder(folder) => Evidence::read(&folder.join(EVIDENCE)),
        }
    }

    /// The folder of a drill that is no part of the program.
    pub fn folder(&self) -> Option<&'static Path> {
        match self.recorded {
            Recorded::Program { .. } => None,
            Recorded::Folder(folder) => Some(folder),
        }
    }

    /// The word that names it on a command line: its name, or the path of its folder.
    pub fn reference(&self) -> String {
        self.folder().map_or_else(
            || self.name.to_owned(),
            |folder| folder.display().to_string(),
        )
    }

    /// The reference to the evidence for the evidence server: its name, or its path.
    pub fn evidence_reference(&self) -> String {
        self.folder().map_or_else(
            || self.name.to_owned(),
            |folder| folder.join(EVIDENCE).display().to_string(),
        )
    }

    /// The summary of its alert.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn title(&self) -> Result<String, serde_json::Error> {
        let alert: serde_json::Value = serde_json::from_str(self.alert)?;
        let summary = alert
            .pointer("/commonAnnotations/summary")
            .and_then(|summary| summary.as_str());
        Ok(summary.unwrap_or_default().to_owned())
    }

    /// The result that its investigation has to reach.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn expected(&self) -> Result<Expected, String> {
        Expected::parse(self.expected.unwrap_or_default())
    }

    /// The rubric for the report of a real model; `server` is the name of the MCP server that serves the evidence.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn rubric(&self, server: &str) -> Result<Rubric, Faults> {
        Rubric::parse(self.rubric.unwrap_or_default(), &self.tools(server))
    }

    /// The decisions of people in it; empty for a drill in which no call waits for a person. `server` is the name of
    /// the MCP server that serves the evidence.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn decisions(&self, server: &str) -> Result<Vec<Decision>, DecisionsError> {
        match self.decisions {
            Some(text) => Decision::parse_all(text, &self.tools(server)),
            None => Ok(Vec::new()),
        }
    }

    /// The full names of its tools.
    fn tools(&self, server: &str) -> Vec<String> {
        let tools = self
            .evidence()
            .map(|evidence| evidence.tools)
            .unwrap_or_default();
        let names = tools.iter().map(|tool| format!("{server}.{}", tool.name));
        names.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_config::Config;

    #[test]
    fn every_builtin_drill_can_be_read() {
        for drill in BUILTIN {
            drill.evidence().unwrap();
            drill.expected().unwrap();
            drill.rubric("drill").unwrap();
            drill.decisions("drill").unwrap();
            assert_ne!(drill.title().unwrap(), "");
            Config::parse(drill.name, drill.config, &|_| None).unwrap();
        }
        assert!(builtin("no-such-drill").is_none());
    }

    #[test]
    fn every_answer_of_a_builtin_drill_has_a_text() {
        for drill in BUILTIN {
            for tool in drill.evidence().unwrap().tools {
                assert!(!tool.answers.is_empty(), "{}", tool.name);
                assert!(
                    tool.answers
                        .iter()
                        .all(|answer| answer.hang || !answer.text.is_empty()),
                    "{}",
                    tool.name
                );
            }
        }
    }
}
