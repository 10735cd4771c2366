//! Writes one answer to the response stream of a request.
//!
//! Owns the order that clients rely on: content, then `finish` and `provider_data` (only for a client that accepts
//! them), usage, and a final message without content. An error is one final message. Writing to a client that has
//! disconnected is not an error here: the service ends the task.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::mpsc::Sender;
use tonic::Status;

use super::observed::Observed;
use super::provider::error::{ErrorCode, ProviderError};
use crate::proto::generate_response::Content;
use crate::proto::{
    ACCEPT_CODES, ACCEPT_FINISH, ACCEPT_PROVIDER_DATA, ACCEPT_RETRY, ErrorInfo, FinishInfo,
    GenerateResponse, ProviderData, RetryNotice,
};

/// The response stream of one request.
#[derive(Debug)]
pub struct ResponseWriter {
    sender: Sender<Result<GenerateResponse, Status>>,
    accepted: Vec<String>,
    parts_sent: AtomicU32,
    outcome: OnceLock<&'static str>,
    observed: Observed,
}

impl ResponseWriter {
    pub(super) fn new(sender: Sender<Result<GenerateResponse, Status>>, accept: &[String]) -> Self {
        Self {
            sender,
            accepted: accept.to_vec(),
            parts_sent: AtomicU32::new(0),
            outcome: OnceLock::new(),
            observed: Observed::default(),
        }
    }

    /// Whether the client named this word in `accept`.
    pub(super) fn accepts(&self, word: &str) -> bool {
        self.accepted.iter().any(|accepted| accepted == word)
    }

    /// The number of parts of the answer that were sent with [`Self::content`].
    pub(super) fn parts_sent(&self) -> u32 {
        self.parts_sent.load(Ordering::Relaxed)
    }

    /// The outcome as a metric label: `answered` or `failed`; `None` before the end.
    pub(super) fn outcome(&self) -> Option<&'static str> {
        self.outcome.get().copied()
    }

    /// The observed parts of the answer, for the metrics.
    pub(super) fn observed(&self) -> &Observed {
        &self.observed
    }

    /// A part of the answer, or its usage. Other messages have methods of their own.
    pub async fn content(&self, content: Content) {
        self.parts_sent.fetch_add(1, Ordering::Relaxed);
        self.observed.content(&content);
        self.message(content).await;
    }

    /// Sends the finish reason of the answer.
    pub async fn finish(&self, finish: FinishInfo) {
        self.observed.finished(&finish);
        if self.accepts(ACCEPT_FINISH) {
            self.message(Content::Finish(finish)).await;
        }
    }

    /// Data that the provider needs with the next request.
    pub async fn provider_data(&self, data: ProviderData) {
        if self.accepts(ACCEPT_PROVIDER_DATA) {
            self.message(Content::ProviderData(data)).await;
        }
    }

    /// The request is sent to the provider again.
    pub(super) async fn retry(&self, notice: RetryNotice) {
        self.observed.retried();
        if self.accepts(ACCEPT_RETRY) {
            self.message(Content::Retry(notice)).await;
        }
    }

    /// The end of a whole answer.
    pub async fn end(&self) {
        self.send(Ok(GenerateResponse {
            content: None,
            is_final: true,
        }))
        .await;
        self.outcome.get_or_init(|| "answered");
    }

    /// The end of an answer that failed.
    pub async fn error(&self, error: ErrorInfo) {
        self.observed.failed(&error.code);
        self.outcome.get_or_init(|| "failed");
        self.send(Ok(GenerateResponse {
            content: Some(Content::Error(error)),
            is_final: true,
        }))
        .await;
    }

    /// The end of an answer that failed, with a code that the client supports.
    pub(super) async fn fail(&self, error: ProviderError) {
        self.observed.failed(error.code.as_str());
        let info = if self.accepts(ACCEPT_CODES) {
            error.into_info()
        } else {
            error.into_old_info()
        };
        self.error(info).await;
    }

    /// Breaks the stream after the chunks that were sent.
    pub(crate) async fn break_off(&self, status: Status) {
        self.observed.failed(ErrorCode::StreamBroken.as_str());
        self.outcome.get_or_init(|| "failed");
        self.send(Err(status)).await;
    }

    /// Breaks the stream without waiting for room in its buffer.
    pub(super) fn abort(&self, status: Status) {
        self.observed.failed(ErrorCode::ShuttingDown.as_str());
        self.outcome.get_or_init(|| "failed");
        // If the buffer is full, the stream ends without its final chunk, which clients also take for broken.
        self.sender.try_send(Err(status)).ok();
    }

    /// Returns when the client has disconnected.
    pub(super) async fn client_gone(&self) {
        self.sender.closed().await;
    }

    async fn message(&self, content: Content) {
        self.send(Ok(GenerateResponse {
            content: Some(content),
            is_final: false,
        }))
        .await;
    }

    async fn send(&self, chunk: Result<GenerateResponse, Status>) {
        self.sender.send(chunk).await.ok();
    }
}
