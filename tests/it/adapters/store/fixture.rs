//! Builders of alerts, sessions and checkpoints.

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use diesel_migrations::MigrationHarness;
use serde_json::json;
use sha2::{Digest, Sha256};
use tarsy_core::alert::policy::{OnAcknowledged, OnResolved};
use tarsy_core::alert::refs::Refs;
use tarsy_core::alert::{Alert, AlertStatus, Severity};
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{
    Answer, Entry, Finish, ProviderData, Role, StopReason, ToolCall, Usage,
};
use tarsy_core::ids::{ExecutionId, SessionId, WorkerId};
use tarsy_core::plan::{
    AgentPlan, FORMAT_VERSION, Limits, Plan, ProviderPlan, ResultForm, StagePlan, Strategy,
    SuccessPolicy,
};
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    Checkpoint, Claim, ClaimRequest, Claimed, Disposition, ExecutionBegin, Journal, Lease,
    ModelCallRecord, OpenRequest, Opened, Received, RunStatus, SessionEnd, SessionStep, Sessions,
    StageBegin, StageChange, StoreError, ToolCallRecord, ToolCallState,
};
use tarsy_store::{MIGRATIONS, Store};
use uuid::Uuid;

use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;

pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn new_id() -> SessionId {
    SessionId(Uuid::now_v7())
}

/// Reverts this migration and all later ones.
pub(crate) fn revert_through(database: &TestDatabase, version: &str) {
    let mut connection = database.connection();
    let later =
        format!("SELECT count(*) FROM __diesel_schema_migrations WHERE version >= '{version}'");
    for _ in 0..database.number(&later) {
        connection.revert_last_migration(MIGRATIONS).unwrap();
    }
}

pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
        .duration_trunc(TimeDelta::microseconds(1))
        .unwrap()
}

pub(crate) fn received(alert_id: SessionId, body: &[u8]) -> Received {
    Received {
        alert_id,
        body_sha256: Sha256::digest(body).into(),
        body: Some(body.to_vec()),
        headers: json!({"Tarsy-Alert-Type": "disk"}),
        subject: "tarsy.alerts.high.disk".into(),
        stream_sequence: 7,
        queued_at: now(),
    }
}

pub(crate) fn alert(fingerprint: &str) -> Alert {
    Alert {
        source: "json".into(),
        alert_type: "disk".into(),
        title: "disk full on db-1".into(),
        severity: Severity::High,
        severity_word: None,
        status: AlertStatus::Firing,
        ignored_because: None,
        at: None,
        members: vec![Uuid::from_u128(1)],
        reports: Vec::new(),
        fingerprint: fingerprint.into(),
        runbook_url: None,
        refs: Refs::default(),
        text: "the disk of db-1 is full".into(),
    }
}

pub(crate) fn provider() -> ProviderPlan {
    ProviderPlan {
        name: "recording".into(),
        provider: "scripted".into(),
        backend: "scripted".into(),
        model: "script-1".into(),
        api_key_env: String::new(),
        base_url: String::new(),
        transcript: String::new(),
        context_window: 0,
        ..ProviderPlan::default()
    }
}

pub(crate) fn plan() -> Plan {
    Plan {
        version: FORMAT_VERSION,
        chain: "kubernetes".into(),
        route: None,
        stages: vec![StagePlan {
            name: "investigate".into(),
            success_policy: SuccessPolicy::Any,
            agents: vec![
                AgentPlan {
                    name: "analyst".into(),
                    strategy: Strategy::NativeThinking,
                    limits: Limits::default(),
                    providers: vec![provider()],
                    system_prompt: "be brief".into(),
                    user_prompt: "what happened?".into(),
                    conclusion_prompt: "conclude".into(),
                    result_form: ResultForm::Indented,
                    ..AgentPlan::default()
                }
                .into(),
            ],
            review: None,
        }],
        unavailable_servers: vec![],
        on_resolved: OnResolved::default(),
    }
}

pub(crate) fn open_request(alert_id: SessionId, fingerprint: &str) -> OpenRequest {
    OpenRequest {
        alert_id,
        alert: alert(fingerprint),
        plan: plan(),
        worker: WorkerId(Uuid::new_v4()),
        worker_name: "w1".into(),
        token: Uuid::new_v4(),
        lease: LEASE,
        session_timeout: Duration::from_secs(2400),
        started: EventDraft::new(
            EventType::SessionStarted,
            "started",
            json!({"worker": "w1"}),
        ),
        first_stage: None,
        cooldown: Duration::ZERO,
        force: false,
        limit: None,
        on_acknowledged: OnAcknowledged::default(),
        retry_of: None,
        parent: None,
        answer_route: None,
        trace: None,
    }
}

pub(crate) fn claim_request(worker_name: &str) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId(Uuid::new_v4()),
        worker_name: worker_name.into(),
        token: Uuid::new_v4(),
        lease: LEASE,
        stream_sequence: None,
        trace: None,
        outage_grace: Duration::ZERO,
        predecessors: Vec::new(),
    }
}

/// Receives and opens an alert; it must open a session.
pub(crate) async fn open_session(store: &Store, alert_id: SessionId, fingerprint: &str) -> Claimed {
    let body = alert_id.to_string();
    assert_eq!(
        store.receive(received(alert_id, body.as_bytes())).await,
        Ok(Disposition::Undecided { attempts: 1 })
    );
    match store.open(open_request(alert_id, fingerprint)).await {
        Ok(Opened::Session(claimed)) => claimed,
        other => panic!("not opened: {other:?}"),
    }
}

/// Opens a session for an alert of the fingerprint and ends it with `end`.
pub(crate) async fn investigated(
    store: &Store,
    fingerprint: &str,
    severity: Severity,
    end: SessionEnd,
) -> SessionId {
    let id = new_id();
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    let mut request = open_request(id, fingerprint);
    request.alert.severity = severity;
    let Ok(Opened::Session(claimed)) = store.open(request).await else {
        panic!("not opened")
    };
    store.finish(claimed.lease, end).await.unwrap();
    id
}

/// Settles a session or alert, as the settler does.
pub(crate) async fn settled(store: &Store, id: SessionId) -> Result<(), StoreError> {
    let message = store.standing(id).await?.message;
    store.settled(id, message).await
}

/// Returns once a statement of this application waits for a row.
pub(crate) async fn until_blocked(database: &TestDatabase, application: &str) {
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}' \
         AND wait_event_type = 'Lock' AND datname = current_database()"
    );
    eventually("a statement waits for the row", async || {
        database.number(&waiting) > 0
    })
    .await;
}

/// A session with one stage of `agents` running executions.
pub(crate) async fn running_session(store: &Store, agents: u32) -> (Lease, Vec<ExecutionId>) {
    let id = new_id();
    let lease = open_session(store, id, &format!("fp-{id}")).await.lease;
    store
        .step(lease, begin_stage(id, agents))
        .await
        .expect("the stage begins");
    (
        lease,
        (1..=agents)
            .map(|agent_no| ExecutionId::derive(id, 1, agent_no))
            .collect(),
    )
}

pub(crate) fn begin_stage(session: SessionId, agents: u32) -> SessionStep {
    let execution = |agent_no| ExecutionBegin {
        execution_id: ExecutionId::derive(session, 1, agent_no),
        agent_no,
        agent: format!("analyst-{agent_no}"),
        strategy: Strategy::NativeThinking,
        backend: "scripted".into(),
        model: "script-1".into(),
    };
    SessionStep {
        number: 1,
        at: now(),
        change: StageChange::Begin(StageBegin {
            stage_no: 1,
            executions: (1..=agents).map(execution).collect(),
            name: "investigate".into(),
            success_policy: SuccessPolicy::Any,
        }),
        events: vec![EventDraft::new(
            EventType::StageStarted,
            "investigate",
            json!(null),
        )],
    }
}

/// Claims the session after its lease was made to expire.
pub(crate) async fn steal(store: &Store, database: &TestDatabase, session: SessionId) -> Claimed {
    database.execute(&format!(
        "UPDATE alert_sessions SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE session_id = '{session}'"
    ));
    match store.claim(session, claim_request("w2")).await {
        Ok(Claim::Taken(claimed)) => claimed,
        other => panic!("not taken: {other:?}"),
    }
}

/// A checkpoint with one answer and one tool call. Its id is in the metadata of its events and in the text of its
/// answer.
pub(crate) fn checkpoint(execution_id: ExecutionId, number: u32) -> Checkpoint {
    let id = Uuid::new_v4();
    let call = ToolCall {
        id: format!("c{number}"),
        tool: "k8s.get".into(),
        arguments: "{}".into(),
        read_only: true,
    };
    let answer = Answer {
        text: id.to_string(),
        thinking: "hm".into(),
        calls: vec![call.clone()],
        usage: Usage {
            input_tokens: 10,
            cached_tokens: 0,
            output_tokens: 5,
            thinking_tokens: 1,
        },
        finish: Finish::ToolCalls,
        is_signed: false,
        code_executions: vec![],
        groundings: vec![],
        reading: None,
        provider_data: Some(Box::new(ProviderData {
            provider: "google".into(),
            model: "gemini".into(),
            format: "parts".into(),
            payload: (0..=255).collect(),
        })),
        masked_calls: vec![],
        refused_tools: vec![],
        unmasked: None,
    };
    Checkpoint {
        execution_id,
        number,
        id,
        iteration: number,
        attempt: 1,
        status: RunStatus::Running,
        error: None,
        at: now(),
        sub_agents: vec![],
        asked: Vec::new(),
        closed: Vec::new(),
        entries: vec![
            Entry::Answer(answer.clone()),
            Entry::Feedback {
                content: format!("go on after {number}"),
                about: None,
            },
        ],
        events: vec![
            EventDraft::new(EventType::LlmThinking, "hm", json!({"checkpoint": id})),
            EventDraft::new(EventType::LlmToolCall, "{}", json!({"checkpoint": id})),
        ],
        model_calls: vec![ModelCallRecord {
            purpose: Purpose::Iteration,
            provider: provider(),
            entries_upto: 1,
            answer: Some(answer),
            error: None,
            failure: None,
            duration: Duration::from_millis(12),
        }],
        tool_calls: vec![ToolCallRecord {
            call,
            state: ToolCallState::Done,
            result: Some("ok".into()),
            error: None,
            duration: Duration::from_millis(3),
        }],
    }
}

/// A checkpoint with one prompt and no event.
pub(crate) fn prompt(execution_id: ExecutionId, number: u32, content: &str) -> Checkpoint {
    Checkpoint {
        entries: vec![Entry::Prompt {
            role: Role::User,
            content: content.into(),
        }],
        events: vec![],
        model_calls: vec![],
        tool_calls: vec![],
        ..checkpoint(execution_id, number)
    }
}

pub(crate) fn completed() -> SessionEnd {
    SessionEnd {
        stage: None,
        status: RunStatus::Completed,
        reason: StopReason::FinalAnswer,
        covered_updates: 0,
        mark: None,
        final_analysis: Some("the disk filled up with logs".into()),
        executive_summary: None,
        error: None,
        at: now(),
        event: EventDraft::new(EventType::SessionCompleted, "done", json!({"tokens": 16})),
        dead_letter: None,
        review: None,
    }
}

/// A statement as the server gets it: each name is the number of its first use.
pub(crate) fn numbered(sql: &str) -> String {
    let mut pieces = sql.split('$');
    let mut numbered = pieces.next().unwrap().to_owned();
    let mut names = Vec::new();
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    for piece in pieces {
        let (name, rest) = piece.split_at(piece.find(|c| !is_of_name(c)).unwrap_or(piece.len()));
        let known = names.iter().position(|known| *known == name);
        let index = known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        numbered += &format!("${}{rest}", index + 1);
    }
    numbered
}
