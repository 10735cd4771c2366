//! Drills: recorded incidents that run the whole system without a model or a cluster.
//!
//! A drill has a transcript (`transcript`, `repeat`) that the scripted model of `llm/` plays, evidence (`evidence`)
//! that the server of `mcp/` serves, and the expected result (`expected`). A real model is judged by a rubric instead
//! (`judging`). `gate` lets tests hold a drill at a chosen point.

pub mod transcript;
mod repeat;
pub mod evidence;
pub mod gate;
pub mod expected;
pub mod judging;

use self::evidence::{Evidence, EvidenceError};
use self::expected::Expected;
use self::judging::rubric::Rubric;
use crate::config::Faults;

/// A drill that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    /// The name of its folder.
    pub name: &'static str,
    /// The captured alert, as a producer publishes it.
    pub alert: &'static str,
    /// The configuration file, without the MCP server of the evidence.
    pub config: &'static str,
    /// A [`transcript::Transcript`], or one for each agent.
    pub transcripts: &'static [&'static str],
    expected: &'static str,
    rubric: &'static str,
    index: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! drill {
    ($name:literal, [$($file:literal),* $(,)?]) => {
        drill!($name, ["transcript.yaml"], [$($file),*])
    };
    ($name:literal, [$($transcript:literal),*], [$($file:literal),* $(,)?]) => {
        Drill {
            name: $name,
            alert: include_str!(concat!("../../examples/drills/", $name, "/alert.json")),
            config: include_str!(concat!("../../examples/drills/", $name, "/tarsy.yaml")),
            transcripts: &[$(include_str!(concat!("../../examples/drills/", $name, "/", $transcript))),*],
            expected: include_str!(concat!("../../examples/drills/", $name, "/expected.yaml")),
            rubric: include_str!(concat!("../../examples/drills/", $name, "/rubric.yaml")),
            index: include_str!(concat!("../../examples/drills/", $name, "/evidence/evidence.yaml")),
            files: &[$(($file, include_str!(concat!("../../examples/drills/", $name, "/evidence/", $file)))),*],
        }
    };
}

/// The drills that are part of the program, sorted by name.
pub const BUILTIN: [Drill; 6] = [
    drill!(
        "bad-deploy",
        [
            "deployment_logs.txt",
            "job_of_release.txt",
            "jobs.txt",
            "query_range_errors.json",
            "query_range_routes.json",
            "rollback_deployment.txt",
            "rollout_history.txt",
        ]
    ),
    drill!(
        "bad-deploy-team",
        ["transcript.changes.yaml", "transcript.runtime.yaml", "transcript.synthesis.yaml"],
        [
            "deployment_logs.txt",
            "query_range_connections.json",
            "query_range_errors.json",
            "query_range_replicas.json",
            "revision_diff.txt",
            "rollback_deployment.txt",
            "rollout_history_gateway.txt",
            "rollout_history_quotes.txt",
        ]
    ),
    drill!(
        "disk-full",
        [
            "database_sizes.txt",
            "directory_sizes.txt",
            "directory_sizes_wal.txt",
            "disk_usage.txt",
            "drop_replication_slot.txt",
            "journal_debezium.txt",
            "journal_postgres.txt",
            "replication_slots.txt",
            "settings.txt",
            "stat_archiver.txt",
            "stat_replication.txt",
        ]
    ),
    drill!("log-trail", ["journal_page.txt", "journal_page_318.txt"]),
    drill!(
        "oom-killed",
        [
            "deployment_history.txt",
            "describe_pod.txt",
            "pod_events.txt",
            "pod_logs_current.txt",
            "pod_logs_previous.txt",
            "query_range_limit.json",
            "query_range_memory.json",
            "query_range_restarts.json",
            "query_range_rss.json",
            "restart_deployment.txt",
        ]
    ),
    drill!(
        "xid-wraparound",
        ["database_ages.txt", "query_range_age.json", "rollback_prepared.txt", "vacuum_log.txt", "xmin_holders.txt",]
    ),
];

/// The built-in drill with this name.
pub fn builtin(name: &str) -> Option<Drill> {
    BUILTIN.into_iter().find(|drill| drill.name == name)
}

impl Drill {
    /// The recorded answers of its tools.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn evidence(&self) -> Result<Evidence, EvidenceError> {
        Evidence::parse(self.index, |file| {
            let found = self.files.iter().find(|(name, _)| *name == file);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
        })
    }

    /// The summary of its alert.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn title(&self) -> Result<String, serde_json::Error> {
        let alert: serde_json::Value = serde_json::from_str(self.alert)?;
        let summary = alert.pointer("/commonAnnotations/summary").and_then(|summary| summary.as_str());
        Ok(summary.unwrap_or_default().to_owned())
    }

    /// The result that its investigation has to reach.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn expected(&self) -> Result<Expected, String> {
        Expected::parse(self.expected)
    }

    /// The rubric for the report of a real model; `server` is the name of the MCP server that serves the evidence.
    ///
    /// # Errors
    /// When the recorded file is invalid; tests check all built-in drills.
    pub fn rubric(&self, server: &str) -> Result<Rubric, Faults> {
        let tools = self.evidence().map(|evidence| evidence.tools).unwrap_or_default();
        let names: Vec<String> = tools.iter().map(|tool| format!("{server}.{}", tool.name)).collect();
        Rubric::parse(self.rubric, &names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn every_builtin_drill_can_be_read() {
        for drill in BUILTIN {
            drill.evidence().unwrap();
            drill.expected().unwrap();
            drill.rubric("drill").unwrap();
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
                assert!(tool.answers.iter().all(|answer| answer.hang || !answer.text.is_empty()), "{}", tool.name);
            }
        }
    }
}
