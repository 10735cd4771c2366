//! One attempt to get an answer: the request and the events of its response.
//!
//! The crate gets no subscriber of logs, because its events may have the words of a response.

use std::sync::Arc;
use std::time::Duration;

use ::genai::chat::{ChatStream, ChatStreamEvent};
use ::genai::{Client, ServiceTarget};
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber as _;

use super::answer::Answer;
use super::fault;
use super::frames::Frames;
use super::request::Prepared;
use crate::llm::service::call::{Call, Deadline};
use crate::llm::service::provider::ProviderError;
use crate::llm::service::provider::key::ApiKey;
use crate::llm::service::provider::retry::Attempt;
use crate::llm::service::provider::timeouts::{Silence, Timeouts, within};

/// A request to a provider.
#[derive(Debug)]
pub(super) struct GenaiAttempt<'a> {
    pub(super) client: Client,
    pub(super) target: ServiceTarget,
    pub(super) key: Option<ApiKey>,
    pub(super) timeouts: Timeouts,
    pub(super) prepared: Prepared<'a>,
    /// Whether the history was built anew because its signatures were refused. This happens once.
    pub(super) has_rebuilt: bool,
}

impl Attempt for GenaiAttempt<'_> {
    async fn run(&mut self, call: &Call<'_>) -> Result<(), ProviderError> {
        self.answer(call).await
    }

    fn rebuild_history(&mut self) -> Option<Result<(), ProviderError>> {
        if self.has_rebuilt || !self.prepared.history.is_replayed {
            return None;
        }
        self.has_rebuilt = true;
        Some(self.prepared.rebuild_history())
    }

    fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }
}

impl GenaiAttempt<'_> {
    /// Writes the answer, up to but not including the final message.
    async fn answer(&self, call: &Call<'_>) -> Result<(), ProviderError> {
        let frames = Arc::new(Frames::new(self.prepared.selection.api));
        let options = self.prepared.options(Arc::<Frames>::clone(&frames));
        let request = self.prepared.chat_request();
        let opened = self.client.exec_chat_stream(self.target.clone(), request, Some(&options));
        let opened = opened.with_subscriber(Dispatch::none()).await;
        let stream = opened.map_err(|error| fault::of_crate(error, None, self.key.as_ref()))?.stream;
        let reader =
            Reader { deadline: call.deadline, timeouts: self.timeouts, key: self.key.as_ref(), began: Instant::now() };
        let mut answer = Answer::new(call.writer, self.key.as_ref(), &self.prepared.tools.renamed);
        reader.read(stream, &frames, &mut answer).await?;
        answer.end(self.prepared.selection, &self.prepared.tools.left_out, &frames).await
    }
}

/// Reads a response to its end.
#[derive(Debug)]
struct Reader<'a> {
    deadline: Deadline,
    timeouts: Timeouts,
    key: Option<&'a ApiKey>,
    began: Instant,
}

impl Reader<'_> {
    async fn read(
        &self,
        mut stream: ChatStream,
        frames: &Frames,
        answer: &mut Answer<'_>,
    ) -> Result<(), ProviderError> {
        while !answer.has_ended() {
            match self.next(&mut stream, frames).await {
                Ok(Some(event)) => answer.add(event, frames).await,
                Ok(None) => return Ok(()),
                // Everything has arrived; only the end of the response is missing.
                Err(_) if frames.is_complete() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next event of the crate. Events of the provider that it leaves out count against silence, too.
    async fn next(&self, stream: &mut ChatStream, frames: &Frames) -> Result<Option<ChatStreamEvent>, ProviderError> {
        loop {
            let since = frames.last();
            let silence = Silence::since(since.unwrap_or(self.began), self.limit(frames));
            let next = stream.next().with_subscriber(Dispatch::none());
            match within(self.deadline, silence, next).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(event))) => return Ok(Some(event)),
                Ok(Some(Err(error))) => {
                    let failure = frames.summary().failure;
                    return Err(fault::of_crate(error, failure.as_ref(), self.key));
                }
                Err(_silence) if frames.last() != since && !self.deadline.has_passed() => {}
                Err(silence) => return Err(silence),
            }
        }
    }

    /// How long the provider may be silent now.
    fn limit(&self, frames: &Frames) -> Duration {
        match (frames.is_complete(), frames.last().is_some()) {
            (true, _) => self.timeouts.end,
            (false, true) => self.timeouts.stall,
            (false, false) => self.timeouts.first_chunk,
        }
    }
}
