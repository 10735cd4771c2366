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
use url::Url;

use super::answer::GenaiAnswer;
use super::correction::Corrected;
use super::fault;
use super::frames::Frames;
use super::relay::{Interface, Relay, RequestForm, Route};
use super::request::Prepared;
use crate::service::call::{Call, Deadline};
use crate::service::provider::key::ApiKey;
use crate::service::provider::retry::Attempt;
use crate::service::provider::timeouts::{Timeout, Timeouts, within};
use crate::service::provider::{ProviderError, http};
use crate::service::vertex::TokenProvider;

/// The address of a request, and who asks.
#[derive(Debug)]
pub(super) enum Destination {
    /// The provider's own interface, with its key.
    Provider {
        target: Box<ServiceTarget>,
        key: Option<ApiKey>,
    },
    /// A model of Anthropic at Vertex AI, with an account of Google Cloud.
    VertexAi { url: Url, account: TokenProvider },
}

/// A request to a provider.
#[derive(Debug)]
pub(super) struct GenaiAttempt<'a> {
    pub(super) destination: Destination,
    pub(super) timeouts: Timeouts,
    pub(super) prepared: Prepared<'a>,
}

impl Attempt for GenaiAttempt<'_> {
    async fn run(&mut self, call: &Call<'_>) -> Result<(), ProviderError> {
        loop {
            let Err(refused) = self.identified(call).await else {
                return Ok(());
            };
            // What the client has already cannot be taken back.
            let corrected = if call.writer.parts_sent() == 0 {
                self.prepared.correct(&refused)
            } else {
                None
            };
            match corrected {
                None => return Err(refused),
                Some(Corrected::Parameter) => {
                    tracing::warn!(
                        request_id = call.request.request_id,
                        provider_status = refused.provider_status,
                        "request corrected: the provider refused one of its parameters"
                    );
                }
                Some(Corrected::Tools) => self.prepared.tools.refused.log(call.request, &refused),
            }
        }
    }

    fn rebuild_history(&mut self) -> Option<Result<(), ProviderError>> {
        let is_replayed = self.prepared.history.is_replayed;
        is_replayed.then(|| self.prepared.rebuild_history())
    }

    fn key(&self) -> Option<&ApiKey> {
        match &self.destination {
            Destination::Provider { key, .. } => key.as_ref(),
            Destination::VertexAi { .. } => None,
        }
    }
}

impl GenaiAttempt<'_> {
    /// Writes the answer with a key, or with a token of the account.
    async fn identified(&self, call: &Call<'_>) -> Result<(), ProviderError> {
        match &self.destination {
            Destination::Provider { target, key } => self.answer(call, target, key.as_ref()).await,
            Destination::VertexAi { url, account } => {
                let selection = self.prepared.selection;
                account
                    .authorized(call.deadline, |token| async move {
                        let target = selection.vertex_target(url, account, &token)?;
                        self.answer(call, &target, Some(&token)).await
                    })
                    .await
            }
        }
    }

    /// Writes the answer, up to but not including the final message.
    async fn answer(
        &self,
        call: &Call<'_>,
        target: &ServiceTarget,
        key: Option<&ApiKey>,
    ) -> Result<(), ProviderError> {
        let frames = Arc::new(Frames::new(self.prepared.selection.api));
        let options = self.prepared.options(Arc::<Frames>::clone(&frames));
        let request = self.prepared.chat_request();
        let Route {
            relay,
            client,
            target,
        } = self.route(target, key)?;
        let client = Client::builder()
            .with_reqwest(client)
            .build()
            .map_err(|_error| ProviderError::internal("the client could not be built"))?;
        let opened = client
            .exec_chat_stream(target, request, Some(&options))
            .with_subscriber(Dispatch::none())
            .await
            .map_err(|error| fault::of_crate(error, key))?;
        let reader = Reader {
            deadline: call.deadline,
            timeouts: self.timeouts,
            key,
            relay,
            began: Instant::now(),
        };
        let mut answer = GenaiAnswer::new(call.writer, key, &self.prepared.tools.renamed);
        reader.read(opened.stream, &frames, &mut answer).await?;
        answer
            .end(self.prepared.selection, &self.prepared.tools, &frames)
            .await
    }

    /// The route of the request: through a relay, if the interface sends events.
    fn route(&self, target: &ServiceTarget, key: Option<&ApiKey>) -> Result<Route, ProviderError> {
        let api = self.prepared.selection.api;
        if Relay::fits(api) {
            let form = match &self.destination {
                Destination::Provider { .. } => RequestForm::OfInterface,
                Destination::VertexAi { .. } => RequestForm::VertexAi,
            };
            return Relay::start(Interface { api, form }, target, key);
        }
        Ok(Route {
            relay: None,
            client: http::client()?,
            target: target.clone(),
        })
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
        answer: &mut GenaiAnswer<'_>,
    ) -> Result<(), ProviderError> {
        while !answer.has_ended() {
            match self.next(&mut stream, frames).await {
                Ok(Some(event)) => answer.add(event, frames).await,
                Ok(None) => break,
                Err(error) => return self.outcome(frames, Some(error)),
            }
        }
        self.outcome(frames, None)
    }

    /// The outcome of a response that has ended. The failure that the provider reports comes before that of the crate.
    fn outcome(&self, frames: &Frames, error: Option<ProviderError>) -> Result<(), ProviderError> {
        let reported = self.relay.as_ref().and_then(Relay::failure);
        match reported.or(error) {
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
                Timeout::since(since.unwrap_or(self.began), self.timeouts.end)
            } else {
                self.timeouts.next_part(self.began, since)
            };
            let next = stream.next().with_subscriber(Dispatch::none());
            match within(self.deadline, silence, next).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(event))) => return Ok(Some(event)),
                Ok(Some(Err(error))) => return Err(fault::of_crate(error, self.key)),
                // An event that the crate does not pass on has arrived: the provider is not silent.
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
