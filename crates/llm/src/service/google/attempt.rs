//! An attempt to get an answer from Gemini: the request, the events of its response, and further requests while the
//! answer is unfinished.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::answer::GeminiAnswer;

use super::fault;
use super::request::Prepared;
use crate::service::call::{Call, Deadline};
use crate::service::provider::events::Events;
use crate::service::provider::key::ApiKey;
use crate::service::provider::retry::Attempt;
use crate::service::provider::timeouts::{Timeout, Timeouts, within};
use crate::service::provider::{ErrorCode, ProviderError, http};
use crate::service::vertex::{QUOTA_HEADER, TokenProvider};

const KEY_HEADER: &str = "x-goog-api-key";
/// The rest of a longer error is not read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The limit of further requests for one answer.
const MAX_CONTINUATIONS: usize = 32;

/// The authentication of a request.
#[derive(Debug)]
pub(super) enum Identity {
    /// A key of the Developer API.
    Key(ApiKey),
    /// An account of Google Cloud.
    Account(TokenProvider),
}

/// A request to Gemini.
#[derive(Debug)]
pub(super) struct GeminiAttempt<'a> {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) identity: Identity,
    pub(super) timeouts: Timeouts,
    pub(super) prepared: Prepared<'a>,
}

impl Attempt for GeminiAttempt<'_> {
    async fn run(&mut self, call: &Call<'_>) -> Result<(), ProviderError> {
        loop {
            let Err(refused) = self.identified(call).await else {
                return Ok(());
            };
            if call.writer.parts_sent() > 0 || !self.prepared.leave_out(&refused) {
                return Err(refused);
            }
            self.prepared.tools.refused.log(call.request, &refused);
        }
    }

    fn rebuild_history(&mut self) -> Option<Result<(), ProviderError>> {
        let can_rebuild = self.prepared.history.can_rebuild;
        can_rebuild.then(|| self.prepared.rebuild_history())
    }

    fn key(&self) -> Option<&ApiKey> {
        match &self.identity {
            Identity::Key(key) => Some(key),
            Identity::Account(_) => None,
        }
    }
}

impl GeminiAttempt<'_> {
    /// Writes the answer with a key, or with a token of the account.
    async fn identified(&self, call: &Call<'_>) -> Result<(), ProviderError> {
        let account = match &self.identity {
            Identity::Key(key) => return self.answer(call, key).await,
            Identity::Account(account) => account,
        };
        account
            .authorized(call.deadline, |token| async move {
                self.answer(call, &token).await
            })
            .await
    }

    /// Writes the answer, up to but not including the final message.
    async fn answer(&self, call: &Call<'_>, key: &ApiKey) -> Result<(), ProviderError> {
        let mut answer = GeminiAnswer::new(call.writer, key, &self.prepared.tools.renamed);
        let mut token = None;
        for _request in 0..=MAX_CONTINUATIONS {
            let ended = self
                .response(call.deadline, token.as_deref(), &mut answer)
                .await;
            token = match (ended, answer.take_continuation()) {
                (Ok(()), token) => token,
                // A broken response continues from its last token.
                (Err(error), Some(token)) if error.retryable => Some(token),
                (Err(error), _) => return Err(error),
            };
            if token.is_none() {
                return answer.end(self.prepared.model, &self.prepared.tools).await;
            }
        }
        let message = format!("the answer goes on after {MAX_CONTINUATIONS} responses");
        Err(ProviderError::new(ErrorCode::Provider, message))
    }

    /// Sends one request and adds the events of its response.
    async fn response(
        &self,
        deadline: Deadline,
        token: Option<&str>,
        answer: &mut GeminiAnswer<'_>,
    ) -> Result<(), ProviderError> {
        let began = Instant::now();
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(self.prepared.body(token)?);
        let request = self.signed(request, answer.key())?;
        let silence = self.timeouts.next_part(began, None);
        let response = within(deadline, silence, request.send())
            .await?
            .map_err(http::unavailable)?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(deadline, response, answer.key()).await);
        }
        let reader = Reader {
            deadline,
            timeouts: self.timeouts,
            began,
            last: None,
        };
        reader.read(response, answer).await
    }

    /// The request with the headers of its key or account.
    fn signed(
        &self,
        request: RequestBuilder,
        key: &ApiKey,
    ) -> Result<RequestBuilder, ProviderError> {
        let account = match &self.identity {
            Identity::Key(key) => return Ok(request.header(KEY_HEADER, key.header()?)),
            Identity::Account(account) => account,
        };
        let bearer = ApiKey::new(format!("Bearer {}", key.expose()));
        let request = request.header(AUTHORIZATION, bearer.header()?);
        Ok(match account.quota_project() {
            Some(project) => request.header(QUOTA_HEADER, project),
            None => request,
        })
    }

    /// The error of a response that is not 200.
    async fn refusal(
        &self,
        deadline: Deadline,
        mut response: Response,
        key: &ApiKey,
    ) -> ProviderError {
        let status = response.status().as_u16();
        let delay = retry_after(response.headers());
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES {
            // The error counts as far as it has arrived.
            let silence = Timeout::since(Instant::now(), self.timeouts.stall);
            let Ok(Ok(Some(piece))) = within(deadline, silence, response.chunk()).await else {
                break;
            };
            body.extend_from_slice(&piece);
        }
        let error = fault::of_response(status, &body, key);
        ProviderError {
            retry_after: error.retry_after.or(delay),
            ..error
        }
    }
}

/// Reads a response to its end.
#[derive(Debug)]
struct Reader {
    deadline: Deadline,
    timeouts: Timeouts,
    /// The time of the request.
    began: Instant,
    /// The time of the last event.
    last: Option<Instant>,
}

impl Reader {
    async fn read(
        mut self,
        mut response: Response,
        answer: &mut GeminiAnswer<'_>,
    ) -> Result<(), ProviderError> {
        let mut events = Events::default();
        loop {
            let silence = self.silence(answer);
            let read = within(self.deadline, silence, response.chunk()).await;
            let piece = match read.and_then(|read| read.map_err(http::unavailable)) {
                Ok(piece) => piece,
                // Everything has arrived; only the end of the response is missing.
                Err(_) if answer.is_complete() => return Ok(()),
                Err(error) => return Err(error),
            };
            match &piece {
                Some(bytes) => events.push(bytes)?,
                None => events.end(),
            }
            while let Some(event) = events.next() {
                answer.add(&event).await?;
                self.last = Some(Instant::now());
            }
            if piece.is_none() {
                return Ok(());
            }
        }
    }

    /// The longest time that the provider may be silent now.
    fn silence(&self, answer: &GeminiAnswer<'_>) -> Timeout {
        if answer.is_complete() {
            Timeout::since(self.last.unwrap_or(self.began), self.timeouts.end)
        } else {
            self.timeouts.next_part(self.began, self.last)
        }
    }
}

/// The delay in seconds that a proxy asks for.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
