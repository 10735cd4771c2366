//! `ConfiguredIntake`, which parses a received body into an alert and its plan, according to the worker's
//! configuration.

use std::fmt::Debug;
use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use tarsy_bus::MessageKind;
use tarsy_config::{AlertRoute, Config};
use tarsy_core::alert::Alert;
use tarsy_core::chain::RunStatus;
use tarsy_core::clock::ClockPlan;
use tarsy_core::follow_up::{MAX_QUESTION_BYTES, Thread};
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{self, IntakeError, headers, question};
use tarsy_core::plan::{AgentPlan, Plan};
use tarsy_core::runbook::FetchedRunbook;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::plan::follow_up;
use tarsy_engine::plan::narrowing::Narrowing;
use tarsy_engine::plan::planner::{self, PlanError};
use tarsy_engine::ports::{
    DeadReason, Intake, Listing, Planned, PrepareError, PreparedAlert, Received, Refusal,
    RouteLimit, Threads, Tools,
};
use tarsy_mask::Mask;
use tarsy_runbooks::{FETCH_TIMEOUT, Runbooks};
use tarsy_store::Store;

use super::message::{header, hints, named_chain, retry_of};
use crate::roles::masked::{self, MaskedAlert};

/// Bodies that are read at the same time.
const READERS: usize = 2;

/// Decodes, masks and plans.
#[derive(Debug)]
pub struct ConfiguredIntake<T, S = Store> {
    config: Arc<Config>,
    intake: intake::Intake,
    tools: Arc<T>,
    threads: Arc<S>,
    runbooks: Runbooks,
    mask: Mask,
    readers: Arc<Semaphore>,
    worker_name: String,
    clock_offset: TimeDelta,
}

impl<T: Tools, S: Threads> ConfiguredIntake<T, S> {
    /// The intake of a worker.
    pub fn new(
        config: Arc<Config>,
        tools: Arc<T>,
        threads: Arc<S>,
        mask: Mask,
        worker_name: String,
    ) -> Self {
        let runbooks = Runbooks::new(&config.runbooks, FETCH_TIMEOUT, mask.clone());
        let max_alert_bytes = usize::try_from(config.worker.max_alert_bytes).unwrap_or(usize::MAX);
        let intake =
            intake::Intake::new(config.sources.all()).with_max_alert_bytes(max_alert_bytes);
        let readers = Arc::new(Semaphore::new(READERS));
        let clock_offset = TimeDelta::zero();
        Self {
            config,
            intake,
            tools,
            threads,
            runbooks,
            mask,
            readers,
            worker_name,
            clock_offset,
        }
    }

    /// The clock that models are shown is ahead by so much: that of a drill has the time of its evidence.
    #[must_use]
    pub fn with_clock_offset(self, clock_offset: TimeDelta) -> Self {
        Self {
            clock_offset,
            ..self
        }
    }

    fn clock(&self, clock: ClockPlan) -> ClockPlan {
        ClockPlan {
            offset_s: self.clock_offset.num_seconds(),
            ..clock
        }
    }

    async fn alert(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        let MaskedAlert {
            alert,
            other_parts,
            facts,
        } = self.read(received).await.map_err(refused)?;
        let route = self.config.routes.first(&facts).cloned();
        let force = header(received, tarsy_bus::FORCE).is_some_and(|word| headers::is_yes(&word));
        // A person who asks for an investigation in spite of the cooldown gets one in spite of the route.
        let ignored = if force {
            None
        } else {
            route.as_ref().and_then(AlertRoute::ignored_because)
        };
        let alert = match ignored {
            Some(because) => alert.ignored(because),
            None => alert,
        };
        // An unknown chain, or tools of no server, are refused before any service is asked.
        let chain = self.chain_of(received, &alert, route.as_ref())?;
        self.narrowing(received, route.as_ref())?;
        // What a person asks for takes no place of the alerts.
        let limit = if force {
            None
        } else {
            route.as_ref().and_then(|route| limit(route, chain.name))
        };
        Ok(PreparedAlert {
            alert,
            other_parts,
            route,
            force,
            limit,
            retry_of: retry_of(received),
            thread: None,
        })
    }

    /// Reads the body on a separate thread: a large or hostile one takes a second, in which a thread of the runtime
    /// would renew no lease.
    async fn read(&self, received: &Received) -> Result<MaskedAlert, IntakeError> {
        let (mask, intake, hints) = (self.mask.clone(), self.intake.clone(), hints(received));
        let body = received.body.clone().unwrap_or_default();
        let permit = Arc::clone(&self.readers).acquire_owned().await;
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            masked::alert(&mask, &intake, &body, &hints)
        });
        match reading.await {
            Ok(read) => read,
            Err(error) => match error.try_into_panic() {
                // The caller isolates it.
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process ends.
                Err(_cancelled) => std::future::pending().await,
            },
        }
    }

    /// The chain that the header names, otherwise the one of the route, otherwise the one of the alert's type.
    fn chain_of(
        &self,
        received: &Received,
        alert: &Alert,
        route: Option<&AlertRoute>,
    ) -> Result<planner::Route<'_>, PrepareError> {
        let chosen = planner::choose(
            &self.config,
            &alert.alert_type,
            named_chain(received, route).as_deref(),
        );
        chosen.map_err(|error| unplanned(error).into())
    }

    /// Narrows the tools of a chain by the route and the header.
    fn narrowing(
        &self,
        received: &Received,
        route: Option<&AlertRoute>,
    ) -> Result<Narrowing, PrepareError> {
        let header = header(received, tarsy_bus::TOOLS);
        let narrowing = Narrowing::new(&self.config, route, header.as_deref());
        narrowing.map_err(|error| unplanned(error).into())
    }

    async fn plan_alert(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Planned, PrepareError> {
        let (alert, by_route) = (&prepared.alert, prepared.route.as_ref());
        let route = self.chain_of(received, alert, by_route)?;
        let narrowing = self.narrowing(received, by_route)?;
        let servers = narrowing.servers(planner::servers_of(&self.config, &route));
        let (listing, runbook) = tokio::join!(self.tools.list(&servers), self.runbook(alert));
        narrowing
            .check(&self.config, &route, &listing)
            .map_err(unplanned)?;
        let listing = narrowing.listing(listing);
        let plan = planner::plan(&self.config, &route, alert, &listing, runbook.as_ref())
            .map_err(unplanned)?;
        let plan = Plan {
            route: by_route.map(|route| route.name.clone()),
            ..plan
        };
        let plan = plan.with_clock(self.clock(ClockPlan::of_alert(alert, received.queued_at)));
        let mut metadata = self.facts(alert, &plan, &listing);
        metadata.insert("alert_type".to_owned(), alert.alert_type.clone().into());
        let mut started = started("Investigation started", &plan, metadata);
        describe_runbook(&mut started, alert, runbook.as_ref());
        let awaited_servers = self.required(&plan);
        Ok(Planned {
            plan,
            started,
            awaited_servers,
        })
    }

    /// The runbook that the alert names, if its host is listed.
    async fn runbook(&self, alert: &Alert) -> Option<FetchedRunbook> {
        self.runbooks.fetch(alert.runbook_url.as_deref()?).await
    }

    async fn question(
        &self,
        received: &Received,
        parent: &str,
    ) -> Result<PreparedAlert, PrepareError> {
        let body = received.body.as_deref().unwrap_or_default();
        if body.len() > MAX_QUESTION_BYTES {
            let detail = format!(
                "a question of {} bytes; at most {MAX_QUESTION_BYTES} are read",
                body.len()
            );
            return Err(Refusal {
                reason: DeadReason::TooLarge,
                detail,
            }
            .into());
        }
        let thread = self.thread(parent).await?;
        let asked =
            question(body, &thread.alert.alert_type, hints(received).priority).map_err(refused)?;
        let (alert, retry_of) = (masked::texts(&self.mask, asked), retry_of(received));
        Ok(PreparedAlert {
            alert,
            other_parts: Vec::new(),
            route: None,
            force: false,
            limit: None,
            retry_of,
            thread: Some(Box::new(thread)),
        })
    }

    async fn plan_question(
        &self,
        received: &Received,
        thread: &Thread,
        asked: &Alert,
    ) -> Result<Planned, PrepareError> {
        let chain = header(received, tarsy_bus::CHAIN);
        let route = follow_up::route(&self.config, thread, chain.as_deref()).map_err(unplanned)?;
        let listing = self
            .tools
            .list(&follow_up::servers_of(&self.config, &route))
            .await;
        let plan = follow_up::plan(&self.config, &route, thread, &asked.text, &listing)
            .map_err(unplanned)?;
        let plan = plan.with_clock(self.clock(ClockPlan::of_question(thread.ended_at)));
        let mut metadata = self.facts(asked, &plan, &listing);
        metadata.insert("parent_id".to_owned(), thread.root.to_string().into());
        let started = started("Question taken up", &plan, metadata);
        let awaited_servers = self.required(&plan);
        Ok(Planned {
            plan,
            started,
            awaited_servers,
        })
    }

    /// The investigation that the header names. It has to be over.
    async fn thread(&self, parent: &str) -> Result<Thread, PrepareError> {
        let invalid = |detail: String| {
            let detail = self.mask.apply(&detail).into_owned();
            PrepareError::Refused(Refusal {
                reason: DeadReason::InvalidParent,
                detail,
            })
        };
        let Some(id) = SessionId::parse(parent) else {
            let shown: String = parent
                .chars()
                .filter(|c| !c.is_control())
                .take(64)
                .collect();
            return Err(invalid(format!(
                "header {} holds {shown:?}, which is no session id",
                tarsy_bus::PARENT_ID
            )));
        };
        match self.threads.thread(id).await {
            Ok(Some(thread)) if thread.status != RunStatus::Running => Ok(thread),
            Ok(Some(thread)) => Err(invalid(format!(
                "investigation {} is not over yet: ask again then",
                thread.root
            ))),
            Ok(None) => Err(invalid(format!(
                "header {} names {id}: there is no such session",
                tarsy_bus::PARENT_ID
            ))),
            Err(error) => Err(PrepareError::Unavailable(error)),
        }
    }

    /// The unavailable servers of a plan that the configuration marks as required.
    fn required(&self, plan: &Plan) -> Vec<String> {
        let is_required = |name: &&String| {
            self.config
                .mcp_servers
                .get(*name)
                .is_some_and(|server| server.required)
        };
        plan.unavailable_servers
            .iter()
            .filter(is_required)
            .cloned()
            .collect()
    }

    /// The metadata of the session's first event.
    fn facts(&self, alert: &Alert, plan: &Plan, listing: &Listing) -> Map<String, Value> {
        let agent = plan.stages.first().and_then(|stage| stage.agents.first());
        let provider = agent.and_then(|agent| agent.providers.first());
        let facts = json!({
            "worker": self.worker_name, "chain": plan.chain, "epoch": 1,
            "strategy": agent.map(|agent| agent.strategy.as_str()),
            "provider": provider.map(|provider| &provider.name), "backend": provider.map(|provider| &provider.backend),
            "model": provider.map(|provider| &provider.model),
            "title": alert.title, "severity": alert.severity.as_str(),
        });
        let mut facts = facts.as_object().cloned().unwrap_or_default();
        if let Some(route) = &plan.route {
            facts.insert("route".to_owned(), route.clone().into());
        }
        // A watcher needs the names before the agents begin, for its columns.
        let agents: Vec<&str> = plan
            .stages
            .iter()
            .flat_map(|stage| &stage.agents)
            .map(|a| a.name.as_str())
            .collect();
        if agents.len() > 1 {
            facts.insert("agents".to_owned(), agents.into());
        }
        if !listing.unavailable.is_empty() {
            let reasons = listing
                .unavailable
                .iter()
                .map(|server| (server.server.clone(), server.why.clone().into()));
            facts.insert(
                "unavailable_servers".to_owned(),
                Value::Object(reasons.collect()),
            );
        }
        let omitted: Map<String, Value> = agents_without_tools(plan)
            .map(|agent| (agent.name.clone(), agent.omitted_tools.into()))
            .collect();
        if !omitted.is_empty() {
            let omitted = Value::Object(omitted);
            tracing::warn!(chain = plan.chain, %omitted, "mcp tools omitted: an agent has too many");
            facts.insert("omitted_tools".to_owned(), omitted);
        }
        facts
    }
}

impl<T: Tools + Debug, S: Threads + Debug> Intake for ConfiguredIntake<T, S> {
    async fn prepare(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        match (
            MessageKind::of_subject(&received.subject),
            header(received, tarsy_bus::PARENT_ID),
        ) {
            (MessageKind::Question, Some(parent)) => self.question(received, &parent).await,
            (MessageKind::Alert, None) => self.alert(received).await,
            (MessageKind::Question, None) => Err(misplaced(
                "names no investigation: header Tarsy-Parent-Id is missing",
            )),
            (MessageKind::Alert, Some(_)) => Err(misplaced(
                "comes on a subject of questions, tarsy.questions.<priority>, not of alerts: tarsy ask asks",
            )),
        }
    }

    async fn plan(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Planned, PrepareError> {
        match &prepared.thread {
            Some(thread) => self.plan_question(received, thread, &prepared.alert).await,
            None => self.plan_alert(received, prepared).await,
        }
    }
}

/// The session's first event, which also names the servers that are missing.
fn started(what: &str, plan: &Plan, metadata: Map<String, Value>) -> EventDraft {
    let missing = &plan.unavailable_servers;
    let mut content = if missing.is_empty() {
        what.to_owned()
    } else {
        format!(
            "{what} without the tools of {}: unavailable",
            missing.join(", ")
        )
    };
    if let Some(route) = &plan.route {
        content.push_str(&format!("; route {route}"));
    }
    for agent in agents_without_tools(plan) {
        content.push_str(&format!(
            "; {} tools are too many for {} and left out",
            agent.omitted_tools, agent.name
        ));
    }
    EventDraft::new(EventType::SessionStarted, content, Value::Object(metadata))
}

/// Adds to a session's first event whether the agents have the text of the runbook.
fn describe_runbook(started: &mut EventDraft, alert: &Alert, runbook: Option<&FetchedRunbook>) {
    let described = match runbook {
        None => return,
        Some(FetchedRunbook::Page(text)) => json!({"url": alert.runbook_url, "bytes": text.len()}),
        Some(FetchedRunbook::Failed(why) | FetchedRunbook::Refused(why)) => {
            tracing::warn!(why, "runbook not fetched");
            started
                .content
                .push_str(&format!("; its runbook could not be fetched: {why}"));
            json!({"url": alert.runbook_url, "failed": why})
        }
    };
    if let Some(metadata) = started.metadata.as_object_mut() {
        metadata.insert("runbook".to_owned(), described);
    }
}

fn agents_without_tools(plan: &Plan) -> impl Iterator<Item = &AgentPlan> {
    plan.stages
        .iter()
        .flat_map(|stage| &stage.agents)
        .map(AsRef::as_ref)
        .filter(|agent: &&AgentPlan| agent.omitted_tools > 0)
}

/// The refusal of a message whose subject and header disagree: a question on a subject of alerts, or one without a
/// parent.
fn misplaced(why: &str) -> PrepareError {
    PrepareError::Refused(Refusal {
        reason: DeadReason::InvalidParent,
        detail: format!("a question {why}"),
    })
}

fn limit(route: &AlertRoute, chain: &str) -> Option<RouteLimit> {
    let max_per_hour = route.max_per_hour?;
    Some(RouteLimit {
        route: route.name.clone(),
        max_per_hour,
        chain: chain.to_owned(),
    })
}

fn refused(error: IntakeError) -> Refusal {
    let reason = match error {
        IntakeError::Undecodable => DeadReason::Undecodable,
        IntakeError::Empty => DeadReason::Empty,
    };
    Refusal {
        reason,
        detail: error.to_string(),
    }
}

fn unplanned(error: PlanError) -> Refusal {
    let reason = match &error {
        PlanError::UnknownTools { .. } => DeadReason::UnknownTools,
        PlanError::UnknownChain { .. } | PlanError::Undefined { .. } => DeadReason::UnknownChain,
    };
    Refusal {
        reason,
        detail: error.to_string(),
    }
}
