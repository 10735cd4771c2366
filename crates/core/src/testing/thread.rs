//! An investigation with a question about it.

use super::alert;
use crate::alert::{Alert, Severity};
use crate::chain::RunStatus;
use crate::follow_up::{Exchange, PastCall, Thread};
use crate::ids::SessionId;

/// An investigation with one question about it.
pub fn thread() -> Thread {
    Thread {
        root: SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa").unwrap(),
        ended_at: None,
        status: RunStatus::Completed,
        chain: "kubernetes".to_owned(),
        alert: Alert {
            severity: Severity::Critical,
            text: "KubePodOOMKilled\nlimit: 512Mi".to_owned(),
            ..alert("KubePodOOMKilled")
        },
        analysis: Some(
            "Cause: the heap is too large [5]\nEvidence: exit 137 [5]\nDo next: roll back"
                .to_owned(),
        ),
        error: None,
        calls: vec![
            PastCall {
                session_seq: 5,
                tool: "k8s.describe_pod".to_owned(),
                arguments: "{\"pod\": \"checkout\"}".to_owned(),
                is_error: false,
            },
            PastCall {
                session_seq: 6,
                tool: "k8s.top".to_owned(),
                arguments: "{}".to_owned(),
                is_error: true,
            },
        ],
        asked: vec![Exchange {
            question: "Is it the heap?".to_owned(),
            answer: "Yes: it may take 480Mi of 512Mi [5].".to_owned(),
        }],
        older: 0,
    }
}
