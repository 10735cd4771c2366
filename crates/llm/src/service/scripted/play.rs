//! Writes one recorded answer to its stream, piece by piece.

use std::time::Duration;

use tonic::Status;

use super::calls::Position;
use super::native;
use crate::proto::generate_response::Content;
use crate::proto::{
    ErrorInfo, FinishInfo, ProviderData, TextDelta, ThinkingDelta, ToolCallDelta, UsageInfo,
};
use crate::service::writer::ResponseWriter;
use tarsy_drill::gate::{Gates, Passage};
use tarsy_drill::transcript::{Chunk, Fail, RecordedAnswer, Usage};

/// The length of one streamed piece.
const PIECE_CHARS: usize = 24;

/// Plays one answer.
#[derive(Debug)]
pub(super) struct Player<'a> {
    pub(super) gates: &'a Gates,
    pub(super) gate_every_answer: bool,
    pub(super) pace: Duration,
    pub(super) state: Option<ProviderData>,
    pub(super) position: Position,
    /// Sent instead of the answer.
    pub(super) fail: Option<&'a Fail>,
}

/// The recording or a gate breaks the stream.
struct BrokenOff;

/// The characters that were sent, and the position of the gate in the middle.
struct Progress {
    sent: usize,
    half: usize,
    passed_half: bool,
}

impl Player<'_> {
    pub(super) async fn play(mut self, answer: &RecordedAnswer, writer: &ResponseWriter) {
        if self.run(answer, writer).await.is_err() {
            writer
                .break_off(Status::unavailable("the recording breaks the stream here"))
                .await;
        }
    }

    async fn run(
        &mut self,
        answer: &RecordedAnswer,
        writer: &ResponseWriter,
    ) -> Result<(), BrokenOff> {
        self.own_gate("start").await?;
        if let Some(fail) = self.fail {
            let error = ErrorInfo {
                code: fail.code.clone(),
                message: fail.message.clone(),
                retryable: fail.retryable,
                retry_after: fail.retry_after.and_then(|delay| delay.try_into().ok()),
                provider_status: fail.status.clone(),
                ..ErrorInfo::default()
            };
            writer.error(error).await;
            return Ok(());
        }
        let mut progress = Progress {
            sent: 0,
            half: text_chars(answer) / 2,
            passed_half: !self.gate_every_answer,
        };
        let mut calls = 0_usize;
        let mut sent = String::new();
        for chunk in &answer.chunks {
            match chunk {
                Chunk::Thinking(text) => {
                    self.stream(thinking, text, &mut progress, writer).await?;
                }
                Chunk::Text(text) => {
                    self.stream(visible, text, &mut progress, writer).await?;
                    sent.push_str(text);
                }
                Chunk::Call(call) => {
                    let call = Content::ToolCall(ToolCallDelta {
                        call_id: format!("call_{}_{calls}", self.position.index),
                        name: call.tool.clone(),
                        arguments: call.arguments_text(),
                    });
                    calls += 1;
                    writer.content(call).await;
                }
                Chunk::Code(code) => {
                    let code = native::code(code);
                    writer.content(Content::CodeExecution(code)).await;
                }
                Chunk::CodeResult(result) => {
                    let result = native::code_result(result);
                    writer.content(Content::CodeExecution(result)).await;
                }
                Chunk::Grounding(research) => {
                    let grounding = native::grounding(research, &sent);
                    writer.content(Content::Grounding(grounding)).await;
                }
                // A sleep of no time would last until the next tick of the timer.
                Chunk::Wait(time) if time.is_zero() => {}
                Chunk::Wait(time) => tokio::time::sleep(*time).await,
                Chunk::Gate(name) => self.gate(name).await?,
                Chunk::Cut(()) => return Err(BrokenOff),
                Chunk::Hang(()) => std::future::pending().await,
            }
        }
        self.own_gate("end").await?;
        self.close(answer, calls, writer).await;
        Ok(())
    }

    /// Sends a text piece by piece. At the gate in the middle of the answer a piece ends early.
    async fn stream(
        &self,
        part: fn(String) -> Content,
        text: &str,
        progress: &mut Progress,
        writer: &ResponseWriter,
    ) -> Result<(), BrokenOff> {
        let mut rest = text.chars().peekable();
        while rest.peek().is_some() {
            let to_half = progress.half.saturating_sub(progress.sent);
            if to_half == 0 && !progress.passed_half {
                progress.passed_half = true;
                self.own_gate("middle").await?;
            }
            let size = if progress.passed_half {
                PIECE_CHARS
            } else {
                PIECE_CHARS.min(to_half)
            };
            let piece: String = rest.by_ref().take(size).collect();
            progress.sent += piece.chars().count();
            writer.content(part(piece)).await;
            if !self.pace.is_zero() {
                tokio::time::sleep(self.pace).await;
            }
        }
        Ok(())
    }

    async fn close(&mut self, answer: &RecordedAnswer, calls: usize, writer: &ResponseWriter) {
        let reason = if calls == 0 { "stop" } else { "tool_calls" };
        writer
            .finish(FinishInfo {
                reason: reason.to_owned(),
                ..FinishInfo::default()
            })
            .await;
        if let Some(state) = self.state.take() {
            writer.provider_data(state).await;
        }
        if let Some(usage) = answer.usage {
            writer.content(Content::Usage(tokens(usage))).await;
        }
        writer.end().await;
    }

    async fn own_gate(&self, part: &str) -> Result<(), BrokenOff> {
        if !self.gate_every_answer {
            return Ok(());
        }
        self.gate(&format!("answer-{}-{part}", self.position.index))
            .await
    }

    async fn gate(&self, name: &str) -> Result<(), BrokenOff> {
        let detail = format!("{} {}", self.position.execution_id, self.position.index);
        match self.gates.wait(name, &detail).await {
            Passage::Open => Ok(()),
            Passage::Fail => Err(BrokenOff),
        }
    }
}

fn thinking(content: String) -> Content {
    Content::Thinking(ThinkingDelta { content })
}

fn visible(content: String) -> Content {
    Content::Text(TextDelta { content })
}

fn text_chars(answer: &RecordedAnswer) -> usize {
    let mut chars = 0;
    for chunk in &answer.chunks {
        if let Chunk::Thinking(text) | Chunk::Text(text) = chunk {
            chars += text.chars().count();
        }
    }
    chars
}

fn tokens(usage: Usage) -> UsageInfo {
    let count = |tokens: u32| i32::try_from(tokens).unwrap_or(i32::MAX);
    let total = usage
        .input
        .saturating_add(usage.output)
        .saturating_add(usage.thinking);
    UsageInfo {
        input_tokens: count(usage.input),
        output_tokens: count(usage.output),
        total_tokens: count(total),
        thinking_tokens: count(usage.thinking),
        cache_read_tokens: count(usage.cached),
        ..UsageInfo::default()
    }
}
