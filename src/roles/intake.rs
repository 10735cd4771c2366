//! From a received body to an alert and its plan, with the configuration and the tools of this worker.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::bus::{self, Priority};
use crate::config::Config;
use crate::engine::dispatch::{Intake, Understood};
use crate::engine::planner::{self, PlanError};
use crate::engine::ports::{DeadReason, Received, Refusal, Tools};
use crate::investigation::alert::{Alert, Severity};
use crate::investigation::intake::{Hints, IntakeError, normalise};
use crate::investigation::mask::Mask;
use crate::investigation::plan::Plan;
use crate::investigation::timeline::{EventDraft, EventType};

/// Decodes, masks and plans.
#[derive(Debug)]
pub struct ConfiguredIntake<T> {
    config: Arc<Config>,
    tools: Arc<T>,
    mask: Mask,
    worker_name: String,
}

impl<T: Tools> ConfiguredIntake<T> {
    /// The intake of a worker.
    pub fn new(config: Arc<Config>, tools: Arc<T>, mask: Mask, worker_name: String) -> Self {
        Self { config, tools, mask, worker_name }
    }

    fn started(&self, alert: &Alert, plan: &Plan) -> EventDraft {
        let agent = plan.stages.first().and_then(|stage| stage.agents.first());
        let provider = agent.and_then(|agent| agent.providers.first());
        let metadata = json!({
            "worker": self.worker_name, "chain": plan.chain, "epoch": 1,
            "strategy": agent.map(|agent| agent.strategy.as_str()),
            "provider": provider.map(|provider| &provider.name), "backend": provider.map(|provider| &provider.backend),
            "model": provider.map(|provider| &provider.model),
            "alert_type": alert.alert_type, "title": alert.title, "severity": alert.severity.as_str(),
        });
        EventDraft::new(EventType::SessionStarted, "Investigation started", metadata)
    }
}

impl<T: Tools> Intake for ConfiguredIntake<T> {
    async fn understand(&self, received: &Received) -> Result<Understood, Refusal> {
        let body = received.body.as_deref().unwrap_or_default();
        let mut alert = normalise(body, &hints(received)).map_err(refused)?;
        alert.title = self.mask.apply(&alert.title).into_owned();
        alert.text = self.mask.apply(&alert.text).into_owned();
        alert.alert_type = self.mask.apply(&alert.alert_type).into_owned();
        alert.runbook_url = alert.runbook_url.map(|url| self.mask.apply(&url).into_owned());
        let chain = header(received, bus::CHAIN);
        let route = planner::choose(&self.config, &alert.alert_type, chain.as_deref()).map_err(unplanned)?;
        let tools = self.tools.list(&planner::servers_of(&self.config, &route)).await;
        let plan = planner::plan(&self.config, &route, &alert, &tools).map_err(unplanned)?;
        let started = self.started(&alert, &plan);
        Ok(Understood { alert, plan, started })
    }
}

/// What the message says beside its body.
pub(crate) fn hints(received: &Received) -> Hints {
    let lane = received.subject.split('.').nth(2).and_then(Priority::parse);
    let severity = lane.map(|lane| match lane {
        Priority::Critical => Severity::Critical,
        Priority::High => Severity::High,
        Priority::Normal => Severity::Normal,
        Priority::Low => Severity::Low,
    });
    Hints {
        alert_type: header(received, bus::ALERT_TYPE),
        fingerprint: header(received, bus::FINGERPRINT),
        runbook_url: header(received, bus::RUNBOOK_URL),
        priority: severity,
    }
}

fn header(received: &Received, name: &str) -> Option<String> {
    received.headers.get(name).and_then(Value::as_str).map(ToOwned::to_owned)
}

fn refused(error: IntakeError) -> Refusal {
    let reason = match error {
        IntakeError::Undecodable => DeadReason::Undecodable,
        IntakeError::Empty => DeadReason::Empty,
    };
    Refusal { reason, detail: error.to_string() }
}

fn unplanned(error: PlanError) -> Refusal {
    Refusal { reason: DeadReason::UnknownChain, detail: error.to_string() }
}
