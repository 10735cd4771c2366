//! The people of a drill: they look at a call that waits, and decide as the drill says, through the channel `drill`.
//! Before that, the worker that asked is killed.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::approvals::Decided;
use super::processes::{DrillProcesses, Metrics, remark};
use super::proof::{Counters, Kill};
use super::verdict;
use crate::admin::publishing::decisions::{self, Decision as Sent, Seen};
use crate::cli::commands::watch::follow::Sources;
use tarsy_bus::ChannelKeys;
use tarsy_core::approvals::{Choice, Sender, Voter};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_drill::decisions::Decision;
use tarsy_reports::{ApprovalDetail, ApprovalFilter, Requests, VoteReport};
use tarsy_store::Store;

/// The time in which a session that waits gives up its worker, its slot and its message.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that a worker has to record a decision. A message that a killed worker had comes again after 30 s.
const RECORD_TIMEOUT: Duration = Duration::from_secs(60);
/// The time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The most calls that wait at once.
const MAX_REQUESTS: u32 = 100;
/// The comment about a call that `decisions.yaml` does not know. Without a decision it would wait for hours.
const UNKNOWN: &str = "This drill has no decision about this call.";
/// The person who denies such a call.
const NAMELESS: &str = "drill";

/// The people of a drill, and what has happened so far.
pub(super) struct People<'p> {
    pub(super) decisions: &'p [Decision],
    /// Whether the worker that asked is killed while the call waits.
    pub(super) kills: bool,
    pub(super) session: SessionId,
    pub(super) counters: &'p Counters,
    pub(super) past: Past,
}

/// The past of a run.
#[derive(Default)]
pub(super) struct Past {
    /// The events that were shown.
    pub(super) seen: RefCell<Vec<TimelineEvent>>,
    pub(super) kill: RefCell<Option<Kill>>,
    pub(super) decided: RefCell<Vec<Decided>>,
    /// The number of times that the session began to wait.
    waits: watch::Sender<u32>,
}

impl Past {
    /// Takes note of a shown event.
    pub(super) fn add(&self, event: &TimelineEvent) {
        self.seen.borrow_mut().push(event.clone());
        if event.event_type == EventType::SessionWaiting {
            self.waits.send_modify(|waits| *waits += 1);
        }
    }

    /// Kills the owner behind the last event that was shown.
    pub(super) fn kill_owner(
        &self,
        processes: &RefCell<&mut DrillProcesses<'_>>,
    ) -> anyhow::Result<()> {
        let seen = self.seen.borrow();
        let worker = processes.borrow_mut().kill_owner(&seen)?;
        let after = seen.last().map_or(0, |event| event.session_seq);
        *self.kill.borrow_mut() = Some(Kill { worker, after });
        Ok(())
    }
}

impl People<'_> {
    /// Decides whenever the session waits; returns only the reason why a decision is impossible.
    pub(super) async fn act(
        &self,
        sources: &Sources,
        processes: &RefCell<&mut DrillProcesses<'_>>,
    ) -> anyhow::Error {
        let mut waits = self.past.waits.subscribe();
        let mut handled = 0;
        loop {
            match waits.wait_for(|waits| *waits > handled).await {
                Ok(waits) => handled = *waits,
                Err(error) => return error.into(),
            }
            if let Err(error) = self.decide(sources, processes).await {
                return error;
            }
        }
    }

    /// The decisions about which no person was asked.
    pub(super) fn faults(&self) -> Vec<String> {
        let decided = self.past.decided.borrow();
        let unused = self.decisions.iter().filter(|decision| {
            let mut decided = decided.iter();
            !decided.any(|made| decision.is_about(&made.tool, &made.arguments))
        });
        unused
            .map(|decision| {
                let arguments = Value::Object(decision.arguments.clone());
                let Decision { person, tool, .. } = decision;
                format!("{person} was not asked about {tool} {arguments}")
            })
            .collect()
    }

    async fn decide(
        &self,
        sources: &Sources,
        processes: &RefCell<&mut DrillProcesses<'_>>,
    ) -> anyhow::Result<()> {
        let store = sources.store.as_ref().context("no database")?;
        let filter = ApprovalFilter {
            limit: MAX_REQUESTS,
            requests: Requests::Open,
            session: Some(self.session),
            since: None,
        };
        let waiting = store.approvals(filter).await?;
        if waiting.is_empty() {
            // The last look decided about this call, too, so the session may run by now.
            return Ok(());
        }
        let tools: Vec<&str> = waiting.iter().map(|row| row.tool.as_str()).collect();
        self.becomes_idle(sources, processes).await?;
        remark(&format!(
            "{} waits for a person: no worker has the session, 0 slots are in use, 0 messages are in the queue",
            tools.join(", ")
        ))?;
        if self.kills && self.past.kill.borrow().is_none() {
            self.past.kill_owner(processes)?;
        }
        for row in &waiting {
            let detail = store.approval(row.id()).await?;
            let detail = detail.context("a request is gone from the database")?;
            self.decide_about(&detail, sources, store).await?;
        }
        Ok(())
    }

    /// Waits until the session needs no worker, no slot and no message.
    async fn becomes_idle(
        &self,
        sources: &Sources,
        processes: &RefCell<&mut DrillProcesses<'_>>,
    ) -> anyhow::Result<()> {
        let metrics = processes.borrow().metrics();
        let until = Instant::now() + IDLE_TIMEOUT;
        loop {
            let Some(reason) = self.busy(sources, &metrics).await? else {
                return Ok(());
            };
            if Instant::now() > until {
                let secs = IDLE_TIMEOUT.as_secs();
                bail!("{secs} s after the session began to wait, {reason}");
            }
            sleep(LOOK_INTERVAL).await; // interval between looks
        }
    }

    /// The first thing that the session still has, as the database, each worker and the broker say.
    async fn busy(&self, sources: &Sources, metrics: &Metrics) -> anyhow::Result<Option<String>> {
        let store = sources.store.as_ref().context("no database")?;
        let session = verdict::session(store.report(self.session).await?)?;
        if !session.waits_for_approval {
            return Ok(Some("a worker has it".to_owned()));
        }
        let running = metrics.sessions_running().await?;
        if running > 0.0 {
            return Ok(Some(format!("{running} slots are in use")));
        }
        let mut messages = 0;
        for priority in sources.nats.backlog_without_ages().await? {
            messages += priority.pending + priority.in_progress;
        }
        Ok((messages > 0).then(|| format!("{messages} messages are in the queue")))
    }

    /// Sends the decision about a call, and waits until a worker has recorded it.
    async fn decide_about(
        &self,
        detail: &ApprovalDetail,
        sources: &Sources,
        store: &Store,
    ) -> anyhow::Result<()> {
        let tool = &detail.row.tool;
        let arguments: Map<String, Value> = serde_json::from_str(&detail.call.arguments)?;
        let known = self.decisions.iter();
        let known = known.filter(|decision| decision.is_about(tool, &arguments));
        let answer = known.map(Answer::from).next().unwrap_or_default();
        let Answer {
            person,
            choice,
            comment,
            delay,
        } = answer;
        let call = detail.row.call_sha256;
        let verb = match choice {
            Choice::Approve => "approves",
            Choice::Deny => "denies",
            Choice::DenySession => "denies from now on",
        };
        let words = comment.as_deref().unwrap_or("without a comment");
        remark(&format!("{person} reads {tool} {}", detail.call.arguments))?;
        sleep(delay).await; // the person thinks
        let mut decided = Decided {
            tool: tool.clone(),
            arguments,
            choice,
            person: format!("{}:{person}", Sender::Drill.channel().as_str()),
            call,
            request: detail.row.id().event,
            sent_before: 0,
        };
        decided.sent_before = decided.sends(&self.counters.tool_requests()?);
        remark(&format!("{person} {verb} the call {call}: {words}"))?;
        self.past.decided.borrow_mut().push(decided);
        let id = Uuid::new_v4();
        let message = decisions::message(Sent {
            id,
            sender: Sender::Drill,
            request: detail.row.id(),
            seen: Seen {
                call,
                updates: u32::try_from(detail.row.updates).unwrap_or_default(),
            },
            choice,
            comment,
            by: Some(Voter {
                name: person.clone(),
                groups: Vec::new(),
            }),
            from: None,
        });
        let unsigned = ChannelKeys::default();
        sources.nats.publish_of_person(&message, &unsigned).await?;
        let vote = recorded(store, id).await?;
        match vote.refused {
            None => Ok(()),
            Some(refused) => bail!("the decision of {person} does not count: {refused}"),
        }
    }
}

/// The answer of a person about a call.
struct Answer {
    person: String,
    choice: Choice,
    comment: Option<String>,
    delay: Duration,
}

impl Default for Answer {
    /// No decision is a denial.
    fn default() -> Self {
        Self {
            person: NAMELESS.to_owned(),
            choice: Choice::Deny,
            comment: Some(UNKNOWN.to_owned()),
            delay: Duration::ZERO,
        }
    }
}

impl From<&Decision> for Answer {
    fn from(decision: &Decision) -> Self {
        Self {
            person: decision.person.clone(),
            choice: decision.verdict,
            comment: decision.comment.clone(),
            delay: decision.delay,
        }
    }
}

/// The record of a vote.
async fn recorded(store: &Store, id: Uuid) -> anyhow::Result<VoteReport> {
    let until = Instant::now() + RECORD_TIMEOUT;
    loop {
        if let Some(vote) = store.approval_vote(id).await? {
            return Ok(vote);
        }
        if Instant::now() > until {
            let secs = RECORD_TIMEOUT.as_secs();
            bail!("no worker has recorded the decision within {secs} s");
        }
        sleep(LOOK_INTERVAL).await; // interval between looks
    }
}
