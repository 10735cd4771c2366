//! The metrics of `tarsy worker`.

use super::common::{CALL_BUCKETS, TOOL_BUCKETS};
use super::metric::{
    AGENTS, Metric, POLICIES, PROVIDERS, ROUTES, SERVERS, counter, gauge, numbers, seconds,
};
use strum::VariantNames;
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::ports::PRUNED_TABLES;

const FIRST_CHUNK_BUCKETS: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0];
const STORE_BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 10.0];
const SESSION_BUCKETS: &[f64] = &[
    0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0, 7200.0,
];

const FIRST_EVENT_BUCKETS: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
const ITERATION_BUCKETS: &[f64] = &[
    1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0,
];

/// The services without which a worker claims nothing.
const SERVICES: &[&str] = &["nats", "database", "llm-service", "providers"];
const PRIORITIES: &[&str] = &["critical", "high", "normal", "low"];
/// The channels of decisions; `none` for a message whose subject names none.
const CHANNELS: &[&str] = &["web", "slack", "cli", "link", "drill", "none"];
const DECISION_REFUSALS: &[&str] = &[
    "malformed",
    "wrong_channel",
    "bad_signature",
    "unknown_person",
    "no_right",
    "no_groups",
    "own_question",
    "frozen",
    "ended",
    "decided",
    "again",
    "expired",
    "other_call",
    "changed",
    "late",
    "too_many",
    "unknown",
    "not_ended",
];
const NOTIFICATION_KINDS: &[&str] = &["slack", "teams", "webhook", "email", "destination"];
/// `repeated`: sent after an attempt whose answer is not known; `found`: such an attempt had sent it.
const NOTIFICATION_OUTCOMES: &[&str] = &[
    "sent", "repeated", "found", "filtered", "failed", "given_up",
];
const REFUSABLE: &[&str] = &["checkpoint", "step", "finish", "renew"];
const CHANGES: &[&str] = &["firing", "severity", "resolved"];
const DEAD_REASONS: &[&str] = &[
    "undecodable",
    "empty",
    "too_large",
    "used_id",
    "invalid_id",
    "unknown_chain",
    "unknown_tools",
    "invalid_parent",
    "attempts_exhausted",
];

/// The operations of the store; a test compares them with it.
const DB_OPERATIONS: &[&str] = &[
    "receive",
    "open",
    "join",
    "waited",
    "alert_updates",
    "give_up",
    "claim",
    "inherited",
    "renew",
    "renew_one",
    "release",
    "session",
    "entries",
    "attempts",
    "result",
    "thread",
    "past",
    "checkpoint",
    "step",
    "finish",
    "history",
    "event_key",
    "settlement_status",
    "settle",
    "refund_attempt",
    "cancel",
    "sweep",
    "requeued",
    "recover",
    "prune",
    "words",
    "skills",
    "probe",
    "approvals",
    "vote",
    "notify_claim",
    "notify_record",
    "notify_backlog",
];

/// The reason why an answer is asked for again.
const ASKED_AGAIN: &[&str] = &[
    "max_tokens",
    "safety",
    "recitation",
    "malformed_tool_call",
    "context_window",
    "paused",
    "error",
    "other",
    "call_in_text",
    "not_looked",
    "no_cause",
    "no_source",
    "unknown_source",
    "unsupported",
];

/// The marks of analyses; `none` is one without a mark.
const MARKS: &[&str] = &[
    "none",
    "unknown",
    "no_cause",
    "unsupported",
    "unknown_source",
    "not_combined",
    "weakened",
    "disputed",
    "missing_server",
    "of_stage",
    "calls_failed",
    "no_source",
    "incomplete",
    "not_looked",
    "no_tools",
];

/// The reasons for a forced conclusion, as `stop_reason` has them.
const FORCED: &[&str] = &[
    "max_iterations",
    "repeated_calls",
    "budget",
    "context_window",
    "alert_resolved",
    "cut_answers",
    "time_budget",
    "approval_expired",
];

/// The outcomes of requests for approvals.
const APPROVAL_OUTCOMES: &[&str] = &[
    "approved",
    "denied",
    "denied_session",
    "expired",
    "withdrawn",
    "lapsed",
    "tool_changed",
    "frozen",
    "not_asked",
];

/// The causes that end the wait of a session without a worker.
const WAKE_CAUSES: &[&str] = &["decision", "expiry", "resolved"];

/// People need minutes or hours.
const WAIT_BUCKETS: &[f64] = &[
    60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 86_400.0,
];

/// The verdicts of reviews.
const VERDICTS: &[&str] = &[
    "stands", "weakened", "refuted", "replaced", "missing", "failed", "unknown",
];

/// The confidence that models state; `none` is an analysis without the word.
const SURE: &[&str] = &["none", "certain", "likely", "unsure"];

/// Exported by `tarsy worker`.
pub(super) const WORKER: &[Metric] = &[
    counter("tarsy_alerts_received_total", "messages claimed from the alert stream, redeliveries included")
        .by("priority", PRIORITIES),
    counter("tarsy_alerts_redelivered_total", "messages claimed that had been delivered before"),
    counter("tarsy_dead_letters_total", "alerts published as dead letters").by("reason", DEAD_REASONS),
    counter("tarsy_sessions_opened_total", "sessions opened"),
    counter("tarsy_sessions_resumed_total", "sessions resumed after their worker died or released them"),
    counter("tarsy_routes_total", "alerts that got a place, by the route that matched; none: no route did")
        .by("route", ROUTES),
    counter("tarsy_alerts_limited_total", "alerts above max_per_hour of their route, which are not investigated")
        .by("route", ROUTES),
    counter("tarsy_alerts_joined_total", "alerts joined to an existing session, by reason (open, cooldown)")
        .by("reason", &["open", "cooldown"]),
    counter("tarsy_alert_updates_total", "changes that joined alerts brought to open sessions").by("change", CHANGES),
    counter(
        "tarsy_tool_server_waits_total",
        "times that an alert went back to the queue because an MCP server was unavailable",
    ),
    counter("tarsy_decisions_recorded_total", "decisions of people that count, by channel").by("channel", CHANNELS),
    counter("tarsy_decisions_refused_total", "decisions of people that do not count, by reason; the log has the channel")
        .by("reason", DECISION_REFUSALS),
    gauge("tarsy_decisions_pending", "messages of people that no worker has recorded; one worker at a time exports this"),
    counter("tarsy_notifications_total", "attempts to send a notification, by kind of route")
        .by("kind", NOTIFICATION_KINDS)
        .by("outcome", NOTIFICATION_OUTCOMES),
    gauge("tarsy_notifications_oldest_seconds", "how long the oldest notification has been due; 0 if none is"),
    counter("tarsy_runbook_fetches_total", "runbooks requested from their hosts; a page of the last minutes is not")
        .by("outcome", &["fetched", "failed", "timed_out"]),
    counter("tarsy_skills_loaded_total", "texts of skills that agents have loaded"),
    counter("tarsy_sessions_without_tools_total", "sessions opened without the tools of an unavailable MCP server"),
    counter("tarsy_sessions_released_total", "sessions released for another worker").by(
        "reason",
        &[
            "drain",
            "model_unavailable",
            "model_broke",
            "store_refused",
            "store_timed_out",
            "store_unavailable",
            "store_behind",
            "incompatible",
        ],
    ),
    counter("tarsy_forged_events_total", "timeline messages without a valid seal of a worker, ignored"),
    counter("tarsy_lost_commits_total", "sessions whose commits the database had lost, as the timeline stream shows"),
    counter(
        "tarsy_returns_counted_total",
        "releases that counted as an attempt because the session itself caused them repeatedly",
    )
    .by("reason", &["model_broke", "store_refused", "store_timed_out"]),
    counter("tarsy_sessions_lost_total", "sessions that another worker took over before this one had released them"),
    counter("tarsy_rows_pruned_total", "rows deleted because of their age").by("table", &PRUNED_TABLES),
    counter("tarsy_sweeps_total", "orphaned items recovered by the sweeper, by kind")
        .by("found", &["overdue", "requeued", "settled"]),
    counter("tarsy_lease_renewals_failed_total", "times that the leases of a worker were not renewed"),
    counter("tarsy_heartbeats_failed_total", "times that the heartbeats of a worker were not sent"),
    gauge(
        "tarsy_worker_paused",
        "1 while the worker claims nothing because this service, or providers of models, cannot be used",
    )
    .by("service", SERVICES),
    seconds("tarsy_drain_duration_seconds", TOOL_BUCKETS, "from the stop signal to the release of the last session"),
    gauge("tarsy_draining", "1 while this worker finishes its last calls and releases its sessions"),
    counter("tarsy_sessions_finished_total", "sessions ended")
        .by("status", &["completed", "failed", "cancelled", "timed_out"]),
    seconds(
        "tarsy_session_wait_seconds",
        SESSION_BUCKETS,
        "from the publication of an alert to the opening of its session",
    ),
    seconds("tarsy_session_duration_seconds", SESSION_BUCKETS, "from the opening of a session to its end"),
    seconds(
        "tarsy_time_to_first_event_seconds",
        FIRST_EVENT_BUCKETS,
        "from the time in the id of a session to the acknowledgement of its first timeline event",
    ),
    gauge("tarsy_sessions_running", "sessions that this worker runs now"),
    gauge("tarsy_settling", "ended sessions and placed alerts whose settlement this worker has not finished"),
    gauge("tarsy_timeline_available", "1 while the timeline stream accepts events; sessions continue without it"),
    gauge("tarsy_worker_slots", "sessions that this worker can run at the same time"),
    gauge("tarsy_worker_slot_utilization_ratio", "running sessions divided by slots, 0 to 1"),
    gauge("tarsy_queue_pending", "alerts that no worker has claimed yet; one worker at a time exports this")
        .by("priority", PRIORITIES),
    gauge("tarsy_queue_in_progress", "alerts that are claimed and not settled; one worker at a time exports this")
        .by("priority", PRIORITIES),
    gauge(
        "tarsy_queue_oldest_alert_age_seconds",
        "age of the oldest unsettled alert, 0 if there is none; by one worker",
    )
    .by("priority", PRIORITIES),
    gauge(
        "tarsy_queue_poll_timestamp_seconds",
        "time of the last successful queue poll in Unix seconds, by the worker that polls",
    ),
    counter("tarsy_claim_stalls_total", "restarts of the claim loop because alerts waited while slots were free"),
    counter("tarsy_writes_refused_total", "writes refused by the fence because another worker owns the session")
        .by("statement", REFUSABLE),
    seconds(
        "tarsy_iteration_duration_seconds",
        CALL_BUCKETS,
        "duration of an iteration: a model call and its tool calls",
    ),
    numbers("tarsy_execution_iterations", ITERATION_BUCKETS, "iterations of an execution that ended"),
    counter("tarsy_model_calls_total", "model calls ended, by outcome")
        .by("provider", PROVIDERS)
        .by("outcome", &["answered", "failed", "unavailable"]),
    seconds(
        "tarsy_model_call_duration_seconds",
        CALL_BUCKETS,
        "from the request to the end of the answer or to the failure",
    )
    .by("provider", PROVIDERS),
    seconds(
        "tarsy_model_first_chunk_seconds",
        FIRST_CHUNK_BUCKETS,
        "from the request to the first chunk of the answer",
    )
    .by("provider", PROVIDERS),
    counter("tarsy_model_tokens_total", "tokens of answered model calls; cached tokens are part of input")
        .by("provider", PROVIDERS)
        .by("direction", &["input", "cached", "output", "thinking"]),
    counter(
        "tarsy_provider_fallbacks_total",
        "switches from a provider that has failed to the next one of its agent, by the error code",
    )
    .by("provider", PROVIDERS)
    .by("code", ErrorCode::VARIANTS),
    counter("tarsy_model_retries_total", "requests that the LLM service sent to a provider again")
        .by("provider", PROVIDERS),
    counter("tarsy_model_answers_too_large_total", "model answers dropped because they exceed a size limit"),
    counter(
        "tarsy_tools_refused_total",
        "tools that a provider refused, so that the investigation went on without them",
    )
    .by("provider", PROVIDERS),
    counter("tarsy_tool_calls_not_run_total", "tool calls requested by a model and not sent")
        .by("reason", &["too_many", "no_time", "time_budget", "frozen"]),
    counter(
        "tarsy_context_elisions_total",
        "times that the oldest tool results were left out because a conversation was too long",
    ),
    counter("tarsy_tool_calls_total", "tool calls ended")
        .by("server", SERVERS)
        .by("outcome", &["done", "failed", "lost"]),
    counter("tarsy_tool_argument_checks_total", "tool calls whose arguments were compared with the schema of the tool")
        .by("outcome", &["fit", "unfit", "unchecked"]),
    counter(
        "tarsy_answers_asked_again_total",
        "answers of a model that did not count, or not yet, and were asked for again",
    )
    .by("reason", ASKED_AGAIN),
    counter(
        "tarsy_conclusions_forced_total",
        "conclusions that agents with tools were asked for before their own end, by the reason",
    )
    .by("reason", FORCED),
    counter("tarsy_analyses_total", "analyses of agents, by mark and by how sure the model says that it is")
        .by("mark", MARKS)
        .by("sure", SURE),
    counter("tarsy_agents_dispatched_total", "sub-agents whose results their parents got, by agent and outcome")
        .by("agent", AGENTS)
        .by("outcome", &["completed", "failed", "timed_out", "cancelled", "empty"]),
    counter("tarsy_approvals_requested_total", "calls that people were asked about, by policy")
        .by("policy", POLICIES),
    counter(
        "tarsy_approvals_ended_total",
        "ends of requests for approvals, and calls that needed a person and were not asked about (not_asked)",
    )
    .by("outcome", APPROVAL_OUTCOMES),
    seconds("tarsy_approval_wait_seconds", WAIT_BUCKETS, "from a request for an approval to its end"),
    counter("tarsy_sessions_woken_total", "sessions that waited for people and were queued again, by what woke them")
        .by("cause", WAKE_CAUSES),
    gauge("tarsy_approvals_open", "calls that wait for the decision of a person, 10,000 at most; one worker at a time exports this"),
    gauge("tarsy_sessions_waiting", "sessions that wait for people without a worker, by the first 10,000 requests; by one worker"),
    gauge(
        "tarsy_approval_oldest_ratio",
        "the largest part of its time that an open request for an approval has waited, 0 to 1; 0 without one; by one worker",
    ),
    counter("tarsy_sessions_parked_total", "times that a session gave up its worker because it only waited for people"),
    counter("tarsy_verdicts_total", "verdicts of people about analyses")
        .by("verdict", &["right", "partly", "wrong"]),
    counter("tarsy_reviews_total", "reviews of analyses that were due, by their verdict").by("verdict", VERDICTS),
    counter(
        "tarsy_mcp_tools_omitted_total",
        "tools in the lists of MCP servers that could not be offered, and odd members of tools that were",
    )
    .by("part", &["tool", "member"]),
    counter("tarsy_tool_result_summaries_total", "long tool results that a model was asked to summarise")
        .by("outcome", &["done", "failed"]),
    gauge("tarsy_mcp_session_connections", "connections to MCP servers that belong to one session (scope: session)"),
    seconds("tarsy_tool_call_duration_seconds", TOOL_BUCKETS, "from the request to the result or to the failure")
        .by("server", SERVERS),
    seconds("tarsy_checkpoint_duration_seconds", STORE_BUCKETS, "time to commit a checkpoint, retries included"),
    counter("tarsy_events_published_total", "timeline events acknowledged by the stream"),
    counter("tarsy_event_publish_failures_total", "times that the events of a session could not be published"),
    seconds(
        "tarsy_event_publish_duration_seconds",
        STORE_BUCKETS,
        "time until the stream acknowledged a timeline event",
    ),
    seconds(
        "tarsy_db_query_duration_seconds",
        STORE_BUCKETS,
        "time of one try of an operation at the database, without the wait for a connection",
    )
    .by("operation", DB_OPERATIONS),
    gauge("tarsy_db_pool_size", "most database connections of the pool that sessions share"),
    gauge("tarsy_db_pool_in_use", "database connections in use, of the pool that sessions share"),
    gauge("tarsy_db_pool_waiting", "statements waiting for a database connection"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::approvals::{Channel, Refusal};
    use tarsy_engine::ports::{DeadReason, WakeCause};

    #[test]
    fn every_channel_and_refusal_of_a_decision_is_a_label_value() {
        let refusals = Refusal::ALL.map(Refusal::as_str);
        // And those of a message without a form, and of a verdict about a session that runs.
        assert_eq!(DECISION_REFUSALS.len(), refusals.len() + 2);
        assert!(
            refusals.iter().all(|word| DECISION_REFUSALS.contains(word)),
            "{refusals:?}"
        );
        assert_eq!(CHANNELS[..5], Channel::ALL.map(Channel::as_str));
    }

    #[test]
    fn every_cause_that_wakes_a_session_is_a_label_value() {
        assert_eq!(WAKE_CAUSES, WakeCause::ALL.map(WakeCause::as_str));
    }

    #[test]
    fn every_reason_for_a_dead_letter_is_a_label_value() {
        assert_eq!(DEAD_REASONS, DeadReason::ALL.map(DeadReason::as_str));
    }
}
