//! Asks for summaries of long results, and commits them.
//!
//! The results are read from the store, where the checkpoint before this step has written them. So it makes no
//! difference whether the same worker continues or another one.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::Execution;
use crate::ports::{
    CallFailure, Journal, Model, ModelCallRecord, ModelError, ModelRequest, Timeline,
};
use crate::run::control::{Interrupted, ReleaseReason, STORE_BOUND};
use crate::run::instruments;
use crate::run::performed::{Performed, millis};
use crate::trace::gen_ai;
use crate::world::World;
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{Answer, Entry, Summary};
use tarsy_core::execution::request;
use tarsy_core::execution::summaries::{
    LongResult, MAX_AT_ONCE, NotAsked, made, missing, not_asked,
};

/// The longest time for one summary; at most the rest of the iteration.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(60);

/// A summary with the record of its model call, if the model was asked.
struct Made {
    summary: Summary,
    call: Option<ModelCallRecord>,
}

impl<W: World> Execution<W> {
    /// Asks for the summaries of these results at the same time, and commits them together.
    pub(super) async fn summarise(&mut self, long: Vec<LongResult>) -> Result<(), Interrupted> {
        self.control.permit()?;
        let making = stream::iter(long)
            .map(|long| self.summary(long))
            .buffered(MAX_AT_ONCE);
        let bounded = self.control.within(
            STORE_BOUND + SUMMARY_TIMEOUT,
            making.try_collect::<Vec<_>>(),
        );
        let bounded = self.before_soft_deadline(bounded);
        let Some(Some(all)) = self.control.unless_stopped(bounded).await? else {
            return Ok(());
        };
        let mut performed = Performed::default();
        for Made { summary, call } in all? {
            instruments::summary(&summary);
            let took = call.as_ref().map_or(0, |call| millis(call.duration));
            performed
                .measured
                .summaries_ms
                .insert(summary.call_id.clone(), took);
            performed.entries.push(Entry::Summarised(summary));
            performed.model_calls.extend(call);
        }
        self.commit(performed).await
    }

    /// One summary. A model that fails leaves the result as it is; an unavailable LLM service releases the session.
    async fn summary(&self, long: LongResult) -> Result<Made, Interrupted> {
        let without = |why| Made {
            summary: not_asked(&long, why),
            call: None,
        };
        let stored = self
            .ports
            .journal
            .result(self.lease.session_id, Timeline::Own, long.event)
            .await?;
        let Some(text) = stored.and_then(|stored| stored.text) else {
            return Ok(without(NotAsked::NotStored));
        };
        let timeout = self.remaining().min(SUMMARY_TIMEOUT);
        if timeout.is_zero() {
            return Ok(without(NotAsked::NoTime));
        }
        let Some(body) = request::of_summary(&self.state, &long, &text) else {
            return Ok(without(NotAsked::NoProvider));
        };
        let request = ModelRequest::new(self.lease.session_id, self.id, body, timeout);
        self.control.owned()?;
        let provider = request.provider.clone();
        let asked_at = Instant::now();
        let span = gen_ai::chat(&request);
        let asked = self
            .ports
            .model
            .generate(request, |_, _| {})
            .instrument(span.clone());
        let asked = tokio::time::timeout(timeout, asked).await;
        let answer = match asked {
            Ok(answer) => answer,
            Err(_elapsed) => Err(self.timed_out(timeout).await),
        };
        let duration = asked_at.elapsed();
        instruments::model_call(&provider.name, &answer, duration);
        gen_ai::answered(&span, &answer);
        let call = self.call_record(Purpose::Summary, provider, duration);
        self.summary_of(&long, answer, call)
    }

    /// The summary of an answer, with the completed record of its call.
    fn summary_of(
        &self,
        long: &LongResult,
        answer: Result<Answer, ModelError>,
        mut call: ModelCallRecord,
    ) -> Result<Made, Interrupted> {
        let error = match answer {
            Ok(answer) => {
                let summary = made(long, &answer);
                call.error = Some(summary.error.clone()).filter(|error| !error.is_empty());
                call.answer = Some(answer);
                return Ok(Made {
                    summary,
                    call: Some(call),
                });
            }
            Err(ModelError::Unavailable(error)) => {
                return Err(ReleaseReason::ModelUnavailable(error).into());
            }
            // The result stays as it is without a summary, so a broken connection need not release the session.
            Err(ModelError::Broke(error)) => format!("the llm service broke off: {error}"),
            Err(ModelError::Failed {
                code,
                message,
                provider,
                ..
            }) => {
                let error = format!("{code}: {message}");
                call.failure = Some(CallFailure { code, provider });
                error
            }
        };
        tracing::info!(
            session_id = %self.lease.session_id, execution_id = %self.id, event = long.event, error,
            "tool result not summarised: the model call failed"
        );
        call.error = Some(error.clone());
        Ok(Made {
            summary: missing(long, error),
            call: Some(call),
        })
    }
}
