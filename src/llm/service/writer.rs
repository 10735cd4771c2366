//! Writes one answer to the response stream of a request.
//!
//! Owns the order that clients rely on: content, then `finish` and `provider_data` (only for a client that accepts
//! them), usage, and a final message without content. An error is one final message. Writing to a client that has
//! disconnected is not an error here: the service ends the task.

use std::sync::OnceLock;

use tokio::sync::mpsc::Sender;
use tonic::Status;

use crate::llm::proto::generate_response::Content;
use crate::llm::proto::{ACCEPT_FINISH, ACCEPT_PROVIDER_DATA, ErrorInfo, FinishInfo, GenerateResponse, ProviderData};

/// The response stream of one request.
#[derive(Debug)]
pub struct ResponseWriter {
    sender: Sender<Result<GenerateResponse, Status>>,
    accepts_finish: bool,
    accepts_provider_data: bool,
    outcome: OnceLock<&'static str>,
}

impl ResponseWriter {
    pub(super) fn new(sender: Sender<Result<GenerateResponse, Status>>, accept: &[String]) -> Self {
        let accepts = |word| accept.iter().any(|accepted| accepted == word);
        Self {
            sender,
            accepts_finish: accepts(ACCEPT_FINISH),
            accepts_provider_data: accepts(ACCEPT_PROVIDER_DATA),
            outcome: OnceLock::new(),
        }
    }

    /// The outcome as a metric label: `answered` or `failed`; `None` before the end.
    pub(super) fn outcome(&self) -> Option<&'static str> {
        self.outcome.get().copied()
    }

    /// A part of the answer. `finish` and `provider_data` have methods of their own.
    pub async fn content(&self, content: Content) {
        self.send(Ok(GenerateResponse { content: Some(content), is_final: false })).await;
    }

    /// Why the model stopped.
    pub async fn finish(&self, reason: &str) {
        if self.accepts_finish {
            let finish = FinishInfo { reason: reason.to_owned(), ..FinishInfo::default() };
            self.content(Content::Finish(finish)).await;
        }
    }

    /// Data that the provider needs with the next request.
    pub async fn provider_data(&self, data: ProviderData) {
        if self.accepts_provider_data {
            self.content(Content::ProviderData(data)).await;
        }
    }

    /// The end of a whole answer.
    pub async fn end(&self) {
        self.send(Ok(GenerateResponse { content: None, is_final: true })).await;
        self.outcome.get_or_init(|| "answered");
    }

    /// The end of an answer that failed.
    pub async fn error(&self, code: &str, message: &str) {
        self.outcome.get_or_init(|| "failed");
        let error = ErrorInfo { code: code.to_owned(), message: message.to_owned(), ..ErrorInfo::default() };
        self.send(Ok(GenerateResponse { content: Some(Content::Error(error)), is_final: true })).await;
    }

    /// Breaks the stream after the chunks that were sent.
    pub async fn break_off(&self, status: Status) {
        self.outcome.get_or_init(|| "failed");
        self.send(Err(status)).await;
    }

    /// Breaks the stream without waiting for room in its buffer.
    pub(super) fn abort(&self, status: Status) {
        self.outcome.get_or_init(|| "failed");
        // If the buffer is full, the stream ends without its final chunk, which clients also take for broken.
        self.sender.try_send(Err(status)).ok();
    }

    /// Returns when the client has disconnected.
    pub(super) async fn client_gone(&self) {
        self.sender.closed().await;
    }

    async fn send(&self, chunk: Result<GenerateResponse, Status>) {
        self.sender.send(chunk).await.ok();
    }
}
