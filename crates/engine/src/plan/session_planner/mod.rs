//! `SessionPlanner`, which plans the sessions of a worker by its configuration: the route and the limit of an alert,
//! its chain with the tools, and the first event of its session.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Map, Value, json};

use super::error::PlanError;
use super::follow_up::{self, Asked};
use super::narrowing::Narrowing;
use super::past;
use super::planner;
use super::route::{Route, choose, servers_of};
use super::skills::Material;
use crate::ports::{
    DeadReason, Listing, Planned, PrepareError, PreparedAlert, Received, Refusal, RouteLimit, Tools,
};
use tarsy_config::{AlertRoute, Config};
use tarsy_core::alert::Alert;
use tarsy_core::clock::ClockPlan;
use tarsy_core::follow_up::Thread;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers;
use tarsy_core::past::{Past, PastQuery, given};
use tarsy_core::plan::{AgentPlan, Plan};
use tarsy_core::routing::Facts;
use tarsy_core::runbook::FetchedRunbook;
use tarsy_core::skills::Skill;
use tarsy_core::timeline::{EventDraft, EventType};

/// The knowledge about an alert that its agents are given beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Background {
    /// Its runbook, if tarsy has fetched it or tried to.
    pub runbook: Option<FetchedRunbook>,
    pub past: Past,
}

/// Plans the sessions of one worker.
#[derive(Debug)]
pub struct SessionPlanner<T> {
    config: Arc<Config>,
    tools: Arc<T>,
    worker_name: String,
    clock_offset: TimeDelta,
}

impl<T: Tools> SessionPlanner<T> {
    /// The planner of the worker with this name. It asks `tools` for the tools of each plan.
    pub fn new(config: Arc<Config>, tools: Arc<T>, worker_name: String) -> Self {
        Self {
            config,
            tools,
            worker_name,
            clock_offset: TimeDelta::zero(),
        }
    }

    /// The clock that models are shown is ahead by so much.
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

    /// Finds the route of a masked alert with these facts, and the limits that it has.
    ///
    /// # Errors
    /// When the message or the route names an unknown chain, or tools that the chain does not offer.
    pub fn prepare(
        &self,
        received: &Received,
        alert: Alert,
        facts: &Facts,
    ) -> Result<PreparedAlert, PrepareError> {
        let route = self.config.routes.first(facts).cloned();
        let force = received
            .header(headers::FORCE)
            .is_some_and(|word| headers::is_yes(&word));
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
        // An investigation that a person asks for does not count for the limit.
        let limit = if force {
            None
        } else {
            route.as_ref().and_then(|route| limit(route, chain.name))
        };
        let DefaultedAlert {
            alert,
            runbook_skill,
        } = self.with_default_runbook(alert, facts);
        Ok(PreparedAlert {
            alert,
            runbook_skill,
            other_parts: Vec::new(),
            route,
            force,
            limit,
            retry_of: retry_of(received),
            thread: None,
            answer_route: None,
        })
    }

    /// The alert with the runbook that the configuration has for it, if it names none.
    fn with_default_runbook(&self, alert: Alert, facts: &Facts) -> DefaultedAlert {
        let names_none = alert.runbook_url.as_deref().is_none_or(str::is_empty);
        let default = self.config.runbooks.default_of(facts);
        let default = if names_none { default } else { None };
        let url = default.and_then(|default| default.url.clone());
        DefaultedAlert {
            runbook_skill: default.and_then(|default| default.skill.clone()),
            alert: Alert {
                runbook_url: url.or(alert.runbook_url),
                ..alert
            },
        }
    }

    /// The chain that the header names, otherwise the one of the route, otherwise the one of the alert's type.
    fn chain_of(
        &self,
        received: &Received,
        alert: &Alert,
        route: Option<&AlertRoute>,
    ) -> Result<Route<'_>, PrepareError> {
        let chosen = choose(
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
        let header = received.header(headers::TOOLS);
        let narrowing = Narrowing::new(&self.config, route, header.as_deref());
        narrowing.map_err(|error| unplanned(error).into())
    }

    /// The earlier investigations of an alert that its agents are given; `None` if they are given none.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub fn given_past(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Option<PastQuery>, PrepareError> {
        let route = self.chain_of(received, &prepared.alert, prepared.route.as_ref())?;
        Ok(past::given_to(&self.config, &route))
    }

    /// Plans the investigation of an alert. Its servers are asked for their tools while `background` is read.
    ///
    /// # Errors
    /// As [`Self::prepare`], and those of `background`.
    pub async fn plan_alert(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
        background: impl Future<Output = Result<Background, PrepareError>> + Send,
        skills: &[Arc<Skill>],
    ) -> Result<Planned, PrepareError> {
        let alert = &prepared.alert;
        let by_route = prepared.route.as_ref();
        let route = self.chain_of(received, alert, by_route)?;
        let narrowing = self.narrowing(received, by_route)?;
        let servers = narrowing.servers(servers_of(&self.config, &route));
        let (listing, background) = tokio::join!(self.tools.list(&servers), background);
        let Background { runbook, past } = background?;
        narrowing
            .check(&self.config, &route, &listing)
            .map_err(unplanned)?;
        let listing = narrowing.listing(listing);
        let default = prepared.runbook_skill.as_deref();
        let material = Material {
            runbook: runbook.as_ref(),
            runbook_skill: default.and_then(|name| named_skill(skills, name)),
            skills,
            required: by_route.map_or(&[], |route| &route.required_skills),
        };
        let plan =
            planner::plan(&self.config, &route, alert, &listing, &material).map_err(unplanned)?;
        let plan = Plan {
            route: by_route.map(|route| route.name.clone()),
            ..plan
        };
        let plan = plan.with_clock(self.clock(ClockPlan::of_alert(alert, received.queued_at)));
        let plan = given(plan, &past, received.queued_at);
        let mut metadata = self.facts(alert, &plan, &listing);
        metadata.insert("alert_type".to_owned(), alert.alert_type.clone().into());
        let mut started = started("Investigation started", &plan, metadata);
        describe_runbook(&mut started, alert, runbook.as_ref());
        describe_skill(&mut started, default, material.runbook_skill);
        describe_past(&mut started, &past);
        Ok(Planned {
            started,
            awaited_servers: self.required(&plan),
            plan,
        })
    }

    /// Plans the answer to a question about an investigation.
    ///
    /// # Errors
    /// When the message names an unknown chain.
    pub async fn plan_question(
        &self,
        received: &Received,
        thread: &Thread,
        asked: &Alert,
        skills: &[Arc<Skill>],
    ) -> Result<Planned, PrepareError> {
        let chain = received.header(headers::CHAIN);
        let route = follow_up::route(&self.config, thread, chain.as_deref()).map_err(unplanned)?;
        let listing = self
            .tools
            .list(&follow_up::servers_of(&self.config, &route))
            .await;
        let question = Asked {
            thread,
            question: &asked.text,
            skills,
        };
        let plan = follow_up::plan(&self.config, &route, &question, &listing).map_err(unplanned)?;
        let plan = plan.with_clock(self.clock(ClockPlan::of_question(thread.ended_at)));
        let mut metadata = self.facts(asked, &plan, &listing);
        metadata.insert("parent_id".to_owned(), thread.root.to_string().into());
        Ok(Planned {
            started: started("Question taken up", &plan, metadata),
            awaited_servers: self.required(&plan),
            plan,
        })
    }

    /// The unavailable servers of a plan that the configuration marks as required.
    fn required(&self, plan: &Plan) -> Vec<String> {
        let servers = &self.config.mcp_servers;
        let mut required = plan.unavailable_servers.clone();
        required.retain(|name| servers.get(name).is_some_and(|server| server.required));
        required
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
        let agents: Vec<&str> = plan.agents().map(|agent| agent.name.as_str()).collect();
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

/// The session that a rerun repeats.
pub fn retry_of(received: &Received) -> Option<SessionId> {
    SessionId::parse(&received.header(headers::RETRY_OF)?)
}

/// The chain that the header of a message names, otherwise the one of its route.
pub fn named_chain(received: &Received, route: Option<&AlertRoute>) -> Option<String> {
    let named = received
        .header(headers::CHAIN)
        .filter(|chain| !chain.trim().is_empty());
    named.or_else(|| route?.chain.clone())
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

/// An alert, and the skill that takes the place of its runbook.
struct DefaultedAlert {
    alert: Alert,
    runbook_skill: Option<String>,
}

fn named_skill<'s>(skills: &'s [Arc<Skill>], name: &str) -> Option<&'s Skill> {
    let found = skills.iter().find(|skill| skill.name == name);
    if found.is_none() {
        tracing::warn!(
            skill = name,
            "default runbook left out: there is no such skill"
        );
    }
    found.map(AsRef::as_ref)
}

/// Adds the skill that takes the place of the runbook to a session's first event.
fn describe_skill(started: &mut EventDraft, wanted: Option<&str>, given: Option<&Skill>) {
    let described = match (wanted, given) {
        (None, _) => return,
        (Some(name), Some(skill)) => json!({"skill": name, "bytes": skill.body.text.len()}),
        (Some(name), None) => {
            started
                .content
                .push_str(&format!("; its runbook, the skill {name}, does not exist"));
            json!({"skill": name, "failed": "there is no such skill"})
        }
    };
    if let Some(metadata) = started.metadata.as_object_mut() {
        metadata.insert("runbook".to_owned(), described);
    }
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

/// Adds to a session's first event how often its alert was investigated before.
fn describe_past(started: &mut EventDraft, past: &Past) {
    if past.total == 0 {
        return;
    }
    if let Some(metadata) = started.metadata.as_object_mut() {
        metadata.insert("past".to_owned(), past.total.into());
        metadata.insert("past_days".to_owned(), past.days.into());
    }
}

fn agents_without_tools(plan: &Plan) -> impl Iterator<Item = &AgentPlan> {
    plan.agents()
        .map(AsRef::as_ref)
        .filter(|agent: &&AgentPlan| agent.omitted_tools > 0)
}

fn limit(route: &AlertRoute, chain: &str) -> Option<RouteLimit> {
    Some(RouteLimit {
        route: route.name.clone(),
        max_per_hour: route.max_per_hour?,
        chain: chain.to_owned(),
    })
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

#[cfg(test)]
mod tests;
