//! A fake of the port `Intake`.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::ports::*;
use tarsy_core::alert::refs::Refs;
use tarsy_core::alert::{Alert, AlertStatus, Severity};
use tarsy_core::ids::SessionId;
use tarsy_core::plan::Plan;
use tarsy_core::timeline::{EventDraft, EventType};

/// An intake that takes a body as its alert's text.
#[derive(Debug)]
pub(crate) struct FakeIntake {
    pub(super) plan: Plan,
}

impl Intake for FakeIntake {
    /// `panic` panics, `unavailable` finds the store unavailable, `hang` never ends, `slow` takes 45 s, `forced`
    /// repeats session 3, `several` is the first of three alerts.
    async fn prepare(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        let body = received.body.as_deref().unwrap_or_default();
        let text = std::str::from_utf8(body)
            .map_err(|_| Refusal {
                reason: DeadReason::Undecodable,
                detail: "no text".to_owned(),
            })?
            .to_owned();
        match text.as_str() {
            "panic" => panic!("an unexpected body"),
            "hang" => std::future::pending().await,
            "unavailable" => {
                return Err(PrepareError::Unavailable(StoreError::Unavailable(
                    "no answer".to_owned(),
                )));
            }
            "slow" => tokio::time::sleep(Duration::from_secs(45)).await, // paused time
            _ => {}
        }
        let force = text == "forced";
        let retry_of = force.then(|| SessionId(Uuid::from_u128(3)));
        let alert = Alert {
            source: "text".to_owned(),
            alert_type: "generic".to_owned(),
            title: text.clone(),
            severity: Severity::Normal,
            severity_word: None,
            status: AlertStatus::Firing,
            ignored_because: None,
            at: None,
            fingerprint: "f".to_owned(),
            members: Vec::new(),
            reports: Vec::new(),
            runbook_url: None,
            refs: Refs::default(),
            text,
        };
        let other_parts = if alert.text == "several" {
            vec![1, 2]
        } else {
            Vec::new()
        };
        Ok(PreparedAlert {
            runbook_skill: None,
            alert,
            other_parts,
            route: None,
            force,
            limit: None,
            retry_of,
            thread: None,
            answer_route: None,
        })
    }

    /// `busy` never ends, `toolless` lacks the tools of one server, `required` those of a server that it may not lack.
    async fn plan(
        &self,
        _received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Planned, PrepareError> {
        let mut plan = self.plan.clone();
        let mut awaited_servers = Vec::new();
        match prepared.alert.text.as_str() {
            "busy" => std::future::pending().await,
            "toolless" => plan.unavailable_servers.push("k8s".to_owned()),
            "required" => {
                plan.unavailable_servers.push("k8s".to_owned());
                awaited_servers.push("k8s".to_owned());
            }
            _ => {}
        }
        let started = EventDraft::new(EventType::SessionStarted, "started", Value::Null);
        Ok(Planned {
            plan,
            started,
            awaited_servers,
        })
    }
}
