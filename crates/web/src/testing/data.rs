//! A session as the store has it, and its events.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::ports::WorkerSystem;
use tarsy_core::alert::Severity;
use tarsy_core::chain::RunStatus;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::ids::{ExecutionId, SessionId, WorkerId};
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::ToolCallState;
use tarsy_reports::system::{
    ProviderReport, ProviderState, ServerReport, ServerState, ShownConfig, SystemReport, ToolCounts,
};
use tarsy_reports::{
    AlertReport, DispositionKind, ExecutionReport, ModelReport, QuestionReport, SessionEntry,
    SessionLine, SessionReport, StageReport, Tokens, ToolCallReport,
};

const OOM_KILLED: &str = include_str!("../../../../tests/fixtures/timelines/oom_killed.jsonl");

/// An investigation with parallel calls, a takeover by another worker, a failed call, a cut result and escape codes.
pub(crate) fn story() -> Vec<TimelineEvent> {
    OOM_KILLED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn id(last: &str) -> SessionId {
    SessionId::parse(&format!("0198b2c4-5d6e-7f80-9a1b-2c3d{last}")).unwrap()
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-11-21T14:02:00Z")
        .unwrap()
        .to_utc()
        + TimeDelta::seconds(seconds)
}

/// The report about the session of [`story`].
pub fn report() -> AlertReport {
    AlertReport {
        alert_id: story()[0].session_id,
        received_at: at(0),
        disposition: DispositionKind::Opened,
        joined_session_id: None,
        limited_by: None,
        subject: "tarsy.alerts.critical.drill".to_owned(),
        stream_sequence: 18,
        deliveries: 2,
        headers: json!({}),
        dead_reason: None,
        dead_detail: None,
        fingerprint: Some("{}:{alertname=\"KubePodOOMKilled\"}".to_owned()),
        alert_type: Some("KubePodOOMKilled".to_owned()),
        title: Some("KubePodOOMKilled checkout/checkout-7d9f".to_owned()),
        severity: Some(Severity::Critical),
        source: Some("alertmanager".to_owned()),
        body: Some(
            "KubePodOOMKilled  checkout\nlabels:\n  alertname: KubePodOOMKilled\n  cluster: prod-eu-1\n  pod: \
             checkout-7d9f\nannotations:\n  runbook_url: https://runbooks.example.com/oom\n  summary: killed again\n"
                .to_owned(),
        ),
        joined: Vec::new(),
        parent_id: None,
        seen_before: None,
        url: None,
        questions: vec![QuestionReport {
            session_id: id("5e19c7f0"),
            created_at: at(60),
            status: RunStatus::Completed,
            question: Some("Would 768Mi be enough?".to_owned()),
            answer: Some("For some hours, but not for good.".to_owned()),
            error: None,
        }],
        session: Some(session()),
    }
}

fn session() -> SessionReport {
    let usage = Tokens {
        input: 8_202,
        cached: 3_840,
        output: 1_224,
        thinking: 600,
    };
    SessionReport {
        created_at: at(0),
        deadline_at: at(2_400),
        finished_at: Some(at(6)),
        cancel_requested_at: None,
        status: RunStatus::Completed,
        waits_for_approval: false,
        stop_reason: Some(StopReason::FinalAnswer),
        mark: None,
        review: None,
        chain: "kubernetes".to_owned(),
        worker: "w2".to_owned(),
        epoch: 2,
        previous_workers: vec!["w1".to_owned()],
        last_seq: 19,
        alert_updates: Vec::new(),
        covered_updates: 0,
        executive_summary: Some(
            "Cause: the heap limit leaves **no room** [10]\nEvidence: exit 137 [10, 11], `-Xmx480m` [13]\nDo next: \
             `kubectl -n checkout rollout undo deployment/checkout`. Then raise the limit."
                .to_owned(),
        ),
        final_analysis: Some(
            "Cause: the heap limit leaves no room [10]\n\n## What happened\n\nThe kernel ended it [11].\n\n\
             | at | direct |\n|---|---:|\n| 13:30 | 38M |\n"
                .to_owned(),
        ),
        citations: Value::Null,
        verdicts: Vec::new(),
        error: None,
        stages: vec![StageReport {
            stage_no: 1,
            name: "investigate".to_owned(),
            status: RunStatus::Completed,
            started_at: at(0),
            finished_at: Some(at(6)),
            executions: vec![ExecutionReport {
                execution_id: ExecutionId(uuid::Uuid::from_u128(1)),
                parent_execution_id: None,
                parent_call_id: None,
                agent: "sre".to_owned(),
                strategy: "native-thinking".to_owned(),
                status: RunStatus::Completed,
                iteration: 4,
                started_at: at(0),
                finished_at: Some(at(6)),
                analysis: None,
                error: None,
                tool_calls: 5,
                usage,
            }],
        }],
        models: vec![ModelReport {
            provider: "gemini".to_owned(),
            backend: "google-native".to_owned(),
            model: "gemini-2.5-flash".to_owned(),
            calls: 4,
            failed: 1,
            usage,
        }],
        model_calls: Vec::new(),
        tool_calls: vec![ToolCallReport {
            agent: "sre".to_owned(),
            at: at(4),
            tool: "k8s.describe_pod".to_owned(),
            arguments: "{}".to_owned(),
            state: ToolCallState::Done,
            duration_ms: 4,
            result: Some("Reason: OOMKilled".to_owned()),
            result_bytes: Some(17),
            error: None,
            event: Some(10),
        }],
    }
}

/// The same session while it runs.
pub fn running() -> AlertReport {
    let mut report = report();
    report.questions.clear();
    let session = report.session.as_mut().unwrap();
    (session.status, session.stop_reason, session.finished_at) = (RunStatus::Running, None, None);
    (session.executive_summary, session.final_analysis) = (None, None);
    report
}

/// The same session, ended with this status.
pub fn ended(status: RunStatus, reason: StopReason, error: &str) -> AlertReport {
    let mut report = running();
    let session = report.session.as_mut().unwrap();
    (session.status, session.stop_reason, session.finished_at) =
        (status, Some(reason), Some(at(9)));
    session.error = Some(error.to_owned());
    report
}

/// An alert without a session.
pub fn elsewhere(disposition: DispositionKind) -> AlertReport {
    AlertReport {
        disposition,
        session: None,
        questions: Vec::new(),
        ..report()
    }
}

/// A row of the list.
pub fn entry(last: &str, title: &str, status: RunStatus) -> SessionEntry {
    let is_completed = status == RunStatus::Completed;
    SessionEntry {
        line: SessionLine {
            session_id: id(last),
            created_at: at(-600),
            finished_at: (status != RunStatus::Running).then(|| at(-590)),
            status,
            stop_reason: None,
            mark: None,
            severity: Some(Severity::High),
            title: Some(title.to_owned()),
            alert_type: Some("Any".to_owned()),
            chain: "default".to_owned(),
            worker: "w1".to_owned(),
            parent_id: None,
            verdict: None,
        },
        waits_for_approval: false,
        cause: is_completed.then(|| "the pool is exhausted [7]".to_owned()),
        error: (!is_completed).then(|| "no provider answers".to_owned()),
        fingerprint: None,
        last_seq: 21,
        owners: 2,
        tool_calls: 5,
        tokens: Tokens {
            input: 23_000,
            cached: 0,
            output: 800,
            thinking: 0,
        },
        joined: 1,
        questions: 1,
        last_event: None,
    }
}

/// A session of so many steps, each a call and its result.
pub fn long(calls: u32, result: &str) -> Vec<TimelineEvent> {
    let story = story();
    let mut events = vec![story[0].clone()];
    for call in 0..calls {
        let metadata = |took: u64| json!({"tool_name": "drill.journal_page", "call_id": format!("c{call}"), "took_ms": took, "bytes": 2_400});
        let event = |number: u32, event_type: EventType, content: String| TimelineEvent {
            session_seq: number,
            event_type,
            content,
            metadata: metadata(9),
            created_at: at(i64::from(call)),
            ..story[5].clone()
        };
        events.push(event(
            2 + 2 * call,
            EventType::LlmToolCall,
            format!("{{\"minute\": {call}}}"),
        ));
        events.push(event(
            3 + 2 * call,
            EventType::ToolResult,
            result.to_owned(),
        ));
    }
    events
}

/// The report of a worker that has one tool server of each state, and providers.
pub(crate) fn system(name: &str, hash: &str) -> WorkerSystem {
    let server = |name: &str, state, error: Option<&str>| ServerReport {
        name: name.to_owned(),
        state,
        tools: error.is_none().then_some(ToolCounts {
            read_only: 12,
            changing: 1,
            left_out: 3,
        }),
        error: error.map(str::to_owned),
        asked_ms: Some(4_000),
    };
    let provider = |name: &str, state, error: Option<&str>| ProviderReport {
        name: name.to_owned(),
        state,
        error: error.map(str::to_owned),
        checked_ms: Some(60_000),
    };
    WorkerSystem {
        report: SystemReport {
            worker_id: WorkerId(uuid::Uuid::from_u128(name.bytes().map(u128::from).sum())),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            uptime_ms: 3_600_000,
            config: ShownConfig {
                text: Some("worker:\n  slots: 4\n".to_owned()),
                bytes: 20,
                hash: hash.to_owned(),
            },
            servers: vec![
                server("k8s", ServerState::Reachable, None),
                server("logs", ServerState::Unreachable, Some("connection refused")),
            ],
            providers: vec![
                provider("main", ProviderState::Usable, None),
                provider("spare", ProviderState::Unusable, Some("no key")),
            ],
        },
        age_ms: 3_000,
    }
}
