//! `ConfiguredIntake`, which parses a received body into an alert and its plan, according to the worker's
//! configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::TimeDelta;
use tokio::sync::Semaphore;

use super::asking::{Asked, Asking, Mention, Verdict};
use super::message::hints;
use crate::process::masked::{self, MaskedAlert};
use tarsy_bus::{MessageKind, Subject};
use tarsy_config::Config;
use tarsy_core::alert::Alert;
use tarsy_core::chain::RunStatus;
use tarsy_core::follow_up::{MAX_QUESTION_BYTES, Thread};
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::PARENT_ID;
use tarsy_core::intake::{self, IntakeError, question};
use tarsy_core::past::Past;
use tarsy_core::plan::Plan;
use tarsy_core::runbook::FetchedRunbook;
use tarsy_core::skills::{Skill, SkillText};
use tarsy_engine::plan::session_planner::{Background, SessionPlanner, retry_of};
use tarsy_engine::ports::{
    DeadReason, Intake, Planned, PrepareError, PreparedAlert, Received, Refusal,
};
use tarsy_mask::Mask;
use tarsy_mcp::Servers;
use tarsy_runbooks::{FETCH_TIMEOUT, Runbooks};
use tarsy_skills::Skills;
use tarsy_store::Store;

/// Bodies that are read at the same time.
const READERS: usize = 2;

/// Decodes and masks; its planner plans.
#[derive(Debug)]
pub struct ConfiguredIntake {
    planner: SessionPlanner<Servers>,
    intake: intake::Intake,
    store: Arc<Store>,
    runbooks: Runbooks,
    skills: Skills,
    asking: Asking,
    mask: Mask,
    readers: Arc<Semaphore>,
}

impl ConfiguredIntake {
    /// The intake of a worker.
    pub fn new(
        config: Arc<Config>,
        tools: Arc<Servers>,
        store: Arc<Store>,
        mask: Mask,
        worker_name: String,
    ) -> Self {
        let runbooks = Runbooks::new(&config.runbooks, FETCH_TIMEOUT, mask.clone());
        let skills = Skills::new(&config.skills, mask.clone());
        let max_alert_bytes = usize::try_from(config.worker.max_alert_bytes).unwrap_or(usize::MAX);
        let intake =
            intake::Intake::new(config.sources.all()).with_max_alert_bytes(max_alert_bytes);
        let asking = Asking::new(Arc::clone(&config), Arc::clone(&store), mask.clone());
        Self {
            planner: SessionPlanner::new(config, tools, worker_name),
            asking,
            intake,
            store,
            runbooks,
            skills,
            mask,
            readers: Arc::new(Semaphore::new(READERS)),
        }
    }

    /// Sets the offset of the clock that models see: in a drill it has the time of the evidence.
    #[must_use]
    pub fn with_clock_offset(self, clock_offset: TimeDelta) -> Self {
        Self {
            planner: self.planner.with_clock_offset(clock_offset),
            ..self
        }
    }

    async fn alert(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        let MaskedAlert {
            alert,
            other_parts,
            facts,
        } = self.read(received).await.map_err(refused)?;
        let prepared = self.planner.prepare(received, alert, &facts)?;
        Ok(PreparedAlert {
            other_parts,
            ..prepared
        })
    }

    /// Reads the body on a separate thread: a large or hostile one takes a second, in which a thread of the runtime
    /// would renew no lease.
    async fn read(&self, received: &Received) -> Result<MaskedAlert, IntakeError> {
        let mask = self.mask.clone();
        let intake = self.intake.clone();
        let hints = hints(received);

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

    /// The runbook of an alert, and the earlier investigations of it.
    async fn background(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Background, PrepareError> {
        let (runbook, past) =
            tokio::join!(self.runbook(&prepared.alert), self.past(received, prepared));
        Ok(Background {
            runbook,
            past: past?,
        })
    }

    async fn past(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Past, PrepareError> {
        let Some(query) = self.planner.given_past(received, prepared)? else {
            return Ok(Past::default());
        };
        let fingerprint = &prepared.alert.fingerprint;
        let read = self
            .store
            .past_of_alert(received.alert_id, fingerprint, &query);
        read.await.map_err(PrepareError::Unavailable)
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
        let body = question_body(received)?;
        let thread = self.thread(parent).await?;
        let asked =
            question(body, &thread.alert.alert_type, hints(received).priority).map_err(refused)?;
        Ok(PreparedAlert {
            thread: Some(Box::new(thread)),
            ..self.asked(received, asked)
        })
    }

    /// A question that a person asked in a thread of Slack. One that is not asked ends without a session.
    async fn question_of_thread(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        let body = question_body(received)?;
        let mention = Mention::parse(received).map_err(invalid_parent)?;
        let priority = hints(received).priority;
        let asked = question(body, "", priority).map_err(refused)?;
        let judged = self.asking.judge(&mention, &asked.text).await;
        match judged.map_err(PrepareError::Unavailable)? {
            Verdict::Asked(allowed) => {
                let Asked { thread, route } = *allowed;
                let asked = Alert {
                    alert_type: thread.alert.alert_type.clone(),
                    ..asked
                };
                Ok(PreparedAlert {
                    thread: Some(Box::new(thread)),
                    answer_route: Some(route),
                    ..self.asked(received, asked)
                })
            }
            Verdict::NotAsked(why) => Ok(self.asked(received, asked.ignored(why))),
        }
    }

    /// The question, masked, without the investigation that it is about.
    fn asked(&self, received: &Received, question: Alert) -> PreparedAlert {
        PreparedAlert {
            alert: masked::texts(&self.mask, question),
            runbook_skill: None,
            other_parts: Vec::new(),
            route: None,
            force: false,
            limit: None,
            retry_of: retry_of(received),
            thread: None,
            answer_route: None,
        }
    }

    /// The investigation that the header names. It has to be over.
    async fn thread(&self, parent: &str) -> Result<Thread, PrepareError> {
        let invalid = |detail: String| invalid_parent(self.mask.apply(&detail).into_owned());
        let Some(id) = SessionId::parse(parent) else {
            let shown: String = parent
                .chars()
                .filter(|c| !c.is_control())
                .take(64)
                .collect();
            return Err(invalid(format!(
                "header {PARENT_ID} holds {shown:?}, which is no session id"
            )));
        };
        match self.store.thread(id).await {
            Ok(Some(thread)) if thread.status != RunStatus::Running => Ok(thread),
            Ok(Some(thread)) => Err(invalid(format!(
                "investigation {} is not over yet: ask again then",
                thread.root
            ))),
            Ok(None) => Err(invalid(format!(
                "header {PARENT_ID} names {id}: there is no such session"
            ))),
            Err(error) => Err(PrepareError::Unavailable(error)),
        }
    }
}

impl Intake for ConfiguredIntake {
    async fn prepare(&self, received: &Received) -> Result<PreparedAlert, PrepareError> {
        if Subject::parse(&received.subject).is_some_and(|subject| subject.is_of_slack()) {
            return self.question_of_thread(received).await;
        }
        let kind = MessageKind::of_subject(&received.subject);
        match (kind, received.header(PARENT_ID)) {
            (MessageKind::Question, Some(parent)) => self.question(received, &parent).await,
            (MessageKind::Alert, None) => self.alert(received).await,
            (MessageKind::Question, None) => Err(invalid_parent(
                "a question names no investigation: header Tarsy-Parent-Id is missing".to_owned(),
            )),
            (MessageKind::Alert, Some(_)) => Err(invalid_parent(
                "a question comes on a subject of questions, tarsy.questions.<priority>, not of alerts: tarsy ask asks"
                    .to_owned(),
            )),
        }
    }

    async fn plan(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> Result<Planned, PrepareError> {
        let library = self.skills.current().await;
        let skills = library.for_plans();
        let alert = &prepared.alert;
        let planner = &self.planner;
        let planned = match &prepared.thread {
            Some(thread) => {
                planner
                    .plan_question(received, thread, alert, &skills)
                    .await?
            }
            None => {
                let background = self.background(received, prepared);
                planner
                    .plan_alert(received, prepared, background, &skills)
                    .await?
            }
        };
        // A plan names texts that are stored.
        let texts = texts_of(&planned.plan, &skills);
        let kept = self.store.keep_skill_texts(texts).await;
        kept.map_err(PrepareError::Unavailable)?;
        Ok(planned)
    }
}

fn question_body(received: &Received) -> Result<&[u8], Refusal> {
    let body = received.body.as_deref().unwrap_or_default();
    let bytes = body.len();
    if bytes <= MAX_QUESTION_BYTES {
        return Ok(body);
    }
    Err(Refusal {
        reason: DeadReason::TooLarge,
        detail: format!("a question of {bytes} bytes; at most {MAX_QUESTION_BYTES} are read"),
    })
}

/// The texts that the agents of a plan may load.
fn texts_of(plan: &Plan, skills: &[Arc<Skill>]) -> Vec<SkillText> {
    let names: BTreeSet<&str> = plan
        .agents()
        .flat_map(|agent| &agent.skills)
        .map(|skill| skill.name.as_str())
        .collect();
    let named = skills
        .iter()
        .filter(|skill| names.contains(skill.name.as_str()));
    named.flat_map(|skill| skill.texts()).cloned().collect()
}

fn invalid_parent(detail: String) -> PrepareError {
    PrepareError::Refused(Refusal {
        reason: DeadReason::InvalidParent,
        detail,
    })
}

fn refused(error: IntakeError) -> Refusal {
    Refusal {
        reason: match error {
            IntakeError::Undecodable => DeadReason::Undecodable,
            IntakeError::Empty => DeadReason::Empty,
        },
        detail: error.to_string(),
    }
}
