//! The drills that are part of the program.

use super::{Drill, Recorded};

macro_rules! drill {
    ($name:literal, [$($file:literal),* $(,)?]) => {
        drill!($name, ["transcript.yaml"], [$($file),*])
    };
    ($name:literal, [$($transcript:literal),*], [$($file:literal),* $(,)?]) => {
        Drill {
            name: $name,
            alert: include_str!(concat!("../../../examples/drills/", $name, "/alert.json")),
            config: include_str!(concat!("../../../examples/drills/", $name, "/tarsy.yaml")),
            transcripts: &[$(include_str!(concat!("../../../examples/drills/", $name, "/", $transcript))),*],
            expected: Some(include_str!(concat!("../../../examples/drills/", $name, "/expected.yaml"))),
            rubric: Some(include_str!(concat!("../../../examples/drills/", $name, "/rubric.yaml"))),
            decisions: None,
            recorded: Recorded::Program {
                index: include_str!(concat!("../../../examples/drills/", $name, "/evidence/evidence.yaml")),
                files: &[$(($file, include_str!(concat!("../../../examples/drills/", $name, "/evidence/", $file)))),*],
            },
        }
    };
}

/// The drills that are part of the program, sorted by name.
pub const BUILTIN: [Drill; 8] = [
    Drill {
        decisions: Some(include_str!(
            "../../../examples/drills/approve-restart/decisions.yaml"
        )),
        ..drill!(
            "approve-restart",
            [
                "consumer_lag.txt",
                "pod_logs.txt",
                "reset_offsets.txt",
                "rollout_restart.txt",
                "thread_dump.txt",
            ]
        )
    },
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
        [
            "transcript.changes.yaml",
            "transcript.runtime.yaml",
            "transcript.synthesis.yaml"
        ],
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
        "sub-agents",
        [
            "transcript.db.yaml",
            "transcript.lead.yaml",
            "transcript.logs.yaml"
        ],
        [
            "locks.txt",
            "log_rate.txt",
            "orders.log",
            "session_4711.txt",
            "terminate_session.txt"
        ]
    ),
    drill!(
        "xid-wraparound",
        [
            "database_ages.txt",
            "query_range_age.json",
            "rollback_prepared.txt",
            "vacuum_log.txt",
            "xmin_holders.txt",
        ]
    ),
];

/// The built-in drill with this name.
pub fn builtin(name: &str) -> Option<Drill> {
    BUILTIN.into_iter().find(|drill| drill.name == name)
}
