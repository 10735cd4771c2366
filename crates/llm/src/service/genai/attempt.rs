//! An attempt to get an answer from a provider: the request and the events of its response.
//!
//! The crate gets no subscriber of logs, because its events may have the words of a response.

use std::sync::Arc;

use ::genai::chat::{ChatStream, ChatStreamEvent};
use ::genai::{Client, ServiceTarget};
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber as _;

use super::answer::Answer;
use super::correction::Corrected;
use super::fault;
use super::frames::Frames;
use super::relay::{Relay, Relayed};
use super::request::Prepared;
use crate::service::call::{Call, Deadline};
use crate::service::provider::key::ApiKey;
use crate::service::provider::retry::Attempt;
use crate::service::provider::timeouts::{Silence, Timeouts, within};
use crate::service::provider::{ErrorCode, ProviderError, http};

/// A request to a provider.
#[derive(Debug)]
pub(super) struct GenaiAttempt<'a> {
    pub(super) target: ServiceTarget,
    pub(super) key: Option<ApiKey>,
    pub(super) timeouts: Timeouts,
    pub(super) prepared: Prepared<'a>,
    /// Whether the history was built anew because its signatures were refused. This happens once.
    pub(super) has_rebuilt: bool,
}

impl Attempt for GenaiAttempt<'_> {
    async fn run(&mut self, call: &Call<'_>) -> Result<(), ProviderError> {
        loop {
            let Err(refused) = self.answer(call).await else {
                return Ok(());
            };
            let corrected = if call.writer.parts_sent() == 0 {
                self.prepared.correct(&refused)
            } else {
                None
            };
            let (request_id, provider_status) =
                (&call.request.request_id, &refused.provider_status);
            match corrected {
                None => return Err(refused),
                Some(Corrected::Parameter) => {
                    tracing::warn!(
                        request_id,
                        provider_status,
                        "request corrected: the provider refused one of its parameters"
                    );
                }
                Some(Corrected::Tools) => self.prepared.tools.refused.log(call.request, &refused),
            }
        }
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
        let (relay, client, target) = self.way()?;
        let client = Client::builder().with_reqwest(client).build();
        let client = client.map_err(|_error| {
            ProviderError::new(ErrorCode::Internal, "the client could not be built")
        })?;
        let opened = client
            .exec_chat_stream(target, request, Some(&options))
            .with_subscriber(Dispatch::none())
            .await;
        let stream = opened
            .map_err(|error| fault::of_crate(error, self.key.as_ref()))?
            .stream;
        let (deadline, timeouts, key) = (call.deadline, self.timeouts, self.key.as_ref());
        let reader = Reader {
            deadline,
            timeouts,
            key,
            relay,
            began: Instant::now(),
        };
        let mut answer = Answer::new(call.writer, self.key.as_ref(), &self.prepared.tools.renamed);
        reader.read(stream, &frames, &mut answer).await?;
        answer
            .end(self.prepared.selection, &self.prepared.tools, &frames)
            .await
    }

    /// The target of the request: through a relay, if the interface sends events.
    fn way(&self) -> Result<(Option<Relay>, reqwest::Client, ServiceTarget), ProviderError> {
        let api = self.prepared.selection.api;
        if !Relay::fits(api) {
            return Ok((None, http::client()?, self.target.clone()));
        }
        let Relayed {
            relay,
            client,
            target,
        } = Relay::start(api, &self.target, self.key.as_ref())?;
        Ok((Some(relay), client, target))
    }
}

/// Reads a response to its end.
#[derive(Debug)]
struct Reader<'a> {
    deadline: Deadline,
    timeouts: Timeouts,
    key: Option<&'a ApiKey>,
    relay: Option<Relay>,
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
                Ok(None) => break,
                Err(error) => return self.failed(frames, Some(error)),
            }
        }
        self.failed(frames, None)
    }

    /// The failure of a response that has ended. What the provider says comes before what the crate says.
    fn failed(&self, frames: &Frames, error: Option<ProviderError>) -> Result<(), ProviderError> {
        let said = self.relay.as_ref().and_then(Relay::failure);
        match said.or(error) {
            // Everything has arrived; only the end of the response is missing.
            Some(error) if frames.is_complete() && error.provider_status.is_empty() => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The next event of the crate. Events of the provider that it leaves out count against silence, too.
    async fn next(
        &self,
        stream: &mut ChatStream,
        frames: &Frames,
    ) -> Result<Option<ChatStreamEvent>, ProviderError> {
        loop {
            let since = frames.last();
            let silence = if frames.is_complete() {
                Silence::since(since.unwrap_or(self.began), self.timeouts.end)
            } else {
                self.timeouts.next_part(self.began, since)
            };
            let next = stream.next().with_subscriber(Dispatch::none());
            match within(self.deadline, silence, next).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(event))) => return Ok(Some(event)),
                Ok(Some(Err(error))) => return Err(fault::of_crate(error, self.key)),
                Err(_silence)
                    if frames.last() != since && !self.deadline.has_passed() && !self.is_over() => {
                }
                Err(silence) => return Err(silence),
            }
        }
    }

    /// Whether the whole answer has taken too long.
    fn is_over(&self) -> bool {
        self.timeouts
            .whole
            .is_some_and(|whole| self.began.elapsed() >= whole)
    }
}
