//! Answers the calls of tarsy's own tools: they read from the store, and no server is asked.

use std::time::Duration;

use chrono::Utc;
use tokio::time::Instant;

use super::Batch;
use crate::ports::{Journal, StoreError, Timeline, ToolReply, Tools};
use tarsy_core::built_in::BuiltInTool;
use tarsy_core::load_skill;
use tarsy_core::past;
use tarsy_core::read_result::{self, Request};

/// The time for which a stored result is searched; a call that needs more says how far it came.
const MAX_READ_TIME: Duration = Duration::from_millis(200);

impl<T: Tools, J: Journal> Batch<'_, T, J> {
    /// The reply of a built-in tool. An invalid call is an answer; an unavailable store releases the session.
    pub(super) async fn built_in(
        &self,
        tool: BuiltInTool,
        arguments: &str,
    ) -> Result<ToolReply, StoreError> {
        let answer = match tool {
            BuiltInTool::ReadResult => self.read_result(arguments).await?,
            BuiltInTool::PastInvestigations => self.past(arguments).await?,
            BuiltInTool::LoadSkill => self.load_skill(arguments).await?,
            // A dispatch of an agent with sub-agents never gets here: its decision awaits them.
            // The decision dispatches it before a batch is made.
            BuiltInTool::DispatchAgent => Err("there is no agent to dispatch.".to_owned()),
        };
        let is_error = answer.is_err();
        let content = answer.unwrap_or_else(|fault| fault);
        Ok(ToolReply::Answered { content, is_error })
    }

    async fn read_result(&self, arguments: &str) -> Result<Result<String, String>, StoreError> {
        let plan = self.state.plan();
        let default = if plan.citable.is_some() {
            Timeline::Investigation
        } else {
            Timeline::Own
        };
        let request = match Request::parse(arguments, default) {
            Ok(request) => request,
            Err(fault) => return Ok(Err(fault)),
        };
        let stored = self
            .journal
            .result(self.lease.session_id, request.timeline, request.event)
            .await?;
        let began = Instant::now();
        Ok(read_result::answer(
            &request,
            stored.as_ref(),
            plan,
            &|| began.elapsed() < MAX_READ_TIME,
        ))
    }

    /// Finds earlier investigations, or reads the report of one.
    async fn past(&self, arguments: &str) -> Result<Result<String, String>, StoreError> {
        let plan = self.state.plan();
        let of_plan = plan.past.unwrap_or_default();
        let session = self.lease.session_id;
        Ok(match past::tool::Request::parse(arguments, of_plan) {
            Err(fault) => Err(fault),
            Ok(past::tool::Request::Find(query)) => {
                let found = self.journal.past(session, query).await?;
                Ok(past::tool::found(&found, Utc::now(), plan.clock))
            }
            Ok(past::tool::Request::Read(wanted)) => {
                let report = self
                    .journal
                    .past_report(session, wanted.clone(), of_plan.scope)
                    .await?;
                past::tool::report(&wanted, report.as_ref(), Utc::now(), plan.clock)
            }
        })
    }

    async fn load_skill(&self, arguments: &str) -> Result<Result<String, String>, StoreError> {
        let request = match load_skill::Request::parse(arguments, &self.state.plan().skills) {
            Ok(request) => request,
            Err(fault) => return Ok(Err(fault)),
        };
        let hashes = request.wanted.iter().map(|wanted| wanted.hash).collect();
        let texts = self.journal.skill_texts(hashes).await?;
        metrics::counter!("tarsy_skills_loaded_total")
            .increment(u64::try_from(texts.len()).unwrap_or(u64::MAX));
        Ok(request.answer(&texts))
    }
}
