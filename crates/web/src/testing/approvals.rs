//! A request for an approval, as the store has it.

use serde_json::json;
use uuid::Uuid;

use super::data::{at, id};
use tarsy_core::alert::Severity;
use tarsy_core::approvals::CallHash;
use tarsy_core::ids::ExecutionId;
use tarsy_reports::{
    AlertUpdateReport, ApprovalDetail, ApprovalRow, AskedAlert, AskedCall, CitedResult,
    FreezeReport, OtherRequest, RequestState, VoteReport,
};

/// An open request.
pub(crate) fn row() -> ApprovalRow {
    ApprovalRow {
        session_id: id("0000000a"),
        event: 42,
        state: RequestState::Open,
        tool: "k8s.rollout_restart".to_owned(),
        policy: "default".to_owned(),
        call_sha256: CallHash([7; 32]),
        quorum: 2,
        votes: 1,
        decided_by: Vec::new(),
        outcome: None,
        outcome_at: None,
        comment: None,
        asked_at: at(0),
        expires_at: at(3_600),
        closed_at: None,
        closed_as: None,
        title: Some("KubePodOOMKilled checkout/checkout-7d9f".to_owned()),
        severity: Some(Severity::Critical),
        chain: "kubernetes".to_owned(),
        updates: 1,
    }
}

/// The same request with everything that a person sees.
pub(crate) fn detail() -> ApprovalDetail {
    ApprovalDetail {
        row: row(),
        call: AskedCall {
            execution_id: ExecutionId(Uuid::from_u128(1)),
            agent: Some("sre".to_owned()),
            call_id: "c1".to_owned(),
            arguments: json!({"namespace": "checkout", "deployment": "checkout", "replicas": 3})
                .to_string(),
            why: "Restarting frees the leaked memory [7]. Undo: none needed.".to_owned(),
            origins: json!([
                {"at": "/deployment", "events": [7, 10], "in_alert": true},
                {"at": "/namespace", "in_alert": true},
                {"at": "/other"},
            ]),
            valid_for_secs: 900.0,
            on_resolved: "withdraw".to_owned(),
            other_person: false,
            channels: vec!["web".to_owned(), "cli".to_owned()],
        },
        alert: AskedAlert {
            title: row().title,
            severity: row().severity,
            source: Some("alertmanager".to_owned()),
            body: Some("{\"alertname\": \"KubePodOOMKilled\"}".to_owned()),
            is_resolved: false,
            asked_by: None,
            last_seq: 43,
            is_waiting: true,
        },
        alert_updates: vec![AlertUpdateReport {
            number: 1,
            at: at(20),
            alert_id: id("0000000b"),
            report: json!({"severity": "high", "firing": {"count": 1, "lines": ["pod checkout-2"]}}),
        }],
        evidence: vec![CitedResult {
            event: 7,
            tool: Some("k8s.top".to_owned()),
            content: "checkout-7d9f 480Mi".to_owned(),
        }],
        votes_cast: vec![vote()],
        others: vec![OtherRequest {
            event: 30,
            state: RequestState::Closed,
            tool: "k8s.pods_delete".to_owned(),
            is_same_call: false,
            outcome: Some("denied".to_owned()),
            closed_as: Some("denied".to_owned()),
            call_state: None,
        }],
        freeze: None,
        url: None,
    }
}

/// An approval that counts.
pub(crate) fn vote() -> VoteReport {
    VoteReport {
        vote_id: Uuid::from_u128(9),
        session_id: row().session_id,
        event: 42,
        at: at(40),
        person: "ana".to_owned(),
        account: "ana@example.com".to_owned(),
        groups: vec!["sre".to_owned()],
        channel: "web".to_owned(),
        address: None,
        verdict: "approve".to_owned(),
        comment: Some("ok".to_owned()),
        seen_sha256: CallHash([7; 32]),
        seen_updates: 1,
        refused: None,
    }
}

/// A freeze that lasts.
pub(crate) fn freeze(reason: &str) -> FreezeReport {
    FreezeReport {
        freeze_id: Uuid::from_u128(5),
        at: at(10),
        person: "bob".to_owned(),
        reason: Some(reason.to_owned()),
        until: Some(at(7_200)),
        ended_at: None,
        ended_by: None,
    }
}
