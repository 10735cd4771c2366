//! Plays one recorded answer onto its stream.

use std::time::Duration;

use tonic::Status;

use super::calls::Place;
use super::native;
use crate::drill::gate::{Gates, Passage};
use crate::drill::transcript::{Answer, Chunk, Fail, Usage};
use crate::llm::proto::{ProviderData, ToolCallDelta, UsageInfo};
use crate::llm::service::reply::Reply;

/// Characters of one streamed piece.
const PIECE: usize = 24;

/// One answer being given.
#[derive(Debug)]
pub(super) struct Player<'a> {
    pub(super) gates: &'a Gates,
    pub(super) gate_every_answer: bool,
    pub(super) pace: Duration,
    pub(super) state: Option<ProviderData>,
    pub(super) place: Place<'a>,
    /// What comes instead of the answer.
    pub(super) fail: Option<&'a Fail>,
}

/// The stream was broken on purpose.
struct Broken;

/// How much text went out, and where half of it is.
struct Progress {
    sent: usize,
    half: usize,
    passed_half: bool,
}

impl Player<'_> {
    pub(super) async fn play(mut self, answer: &Answer, reply: &Reply) {
        if self.run(answer, reply).await.is_err() {
            reply.cut(Status::unavailable("the recording breaks the stream here")).await;
        }
    }

    async fn run(&mut self, answer: &Answer, reply: &Reply) -> Result<(), Broken> {
        self.own_gate("start").await?;
        if let Some(fail) = self.fail {
            reply.error(&fail.code, &fail.message).await;
            return Ok(());
        }
        let mut progress = Progress { sent: 0, half: text_chars(answer) / 2, passed_half: !self.gate_every_answer };
        let (mut calls, mut said) = (0_usize, String::new());
        for chunk in &answer.chunks {
            match chunk {
                Chunk::Thinking(text) | Chunk::Text(text) => {
                    let thinking = matches!(chunk, Chunk::Thinking(_));
                    self.stream(text, thinking, &mut progress, reply).await?;
                    if !thinking {
                        said.push_str(text);
                    }
                }
                Chunk::Call(call) => {
                    let index = self.place.index;
                    let call_id = format!("call_{index}_{calls}");
                    calls += 1;
                    let arguments = call.arguments_text();
                    reply.call(ToolCallDelta { call_id, name: call.tool.clone(), arguments }).await;
                }
                Chunk::Code(code) => reply.code_execution(native::code(code)).await,
                Chunk::CodeResult(result) => reply.code_execution(native::code_result(result)).await,
                Chunk::Grounding(research) => reply.grounding(native::grounding(research, &said)).await,
                Chunk::Wait(time) => tokio::time::sleep(*time).await,
                Chunk::Gate(name) => self.gate(name).await?,
                Chunk::Cut(()) => return Err(Broken),
                Chunk::Hang(()) => std::future::pending().await,
            }
        }
        self.own_gate("end").await?;
        self.close(answer, calls, reply).await;
        Ok(())
    }

    /// Sends a text piece by piece; a gate in the middle of it gets a piece that ends there.
    async fn stream(&self, text: &str, thinking: bool, progress: &mut Progress, reply: &Reply) -> Result<(), Broken> {
        let mut rest = text.chars().peekable();
        while rest.peek().is_some() {
            let to_half = progress.half.saturating_sub(progress.sent);
            if to_half == 0 && !progress.passed_half {
                progress.passed_half = true;
                self.own_gate("middle").await?;
            }
            let size = if progress.passed_half { PIECE } else { PIECE.min(to_half) };
            let piece: String = rest.by_ref().take(size).collect();
            progress.sent += piece.chars().count();
            if thinking {
                reply.thinking(&piece).await
            } else {
                reply.text(&piece).await
            }
            if !self.pace.is_zero() {
                tokio::time::sleep(self.pace).await;
            }
        }
        Ok(())
    }

    async fn close(&mut self, answer: &Answer, calls: usize, reply: &Reply) {
        reply.finish(if calls == 0 { "stop" } else { "tool_calls" }).await;
        if let Some(state) = self.state.take() {
            reply.provider_data(state).await;
        }
        if let Some(usage) = answer.usage {
            reply.usage(tokens(usage)).await;
        }
        reply.end().await;
    }

    async fn own_gate(&self, part: &str) -> Result<(), Broken> {
        if self.gate_every_answer { self.gate(&format!("answer-{}-{part}", self.place.index)).await } else { Ok(()) }
    }

    async fn gate(&self, name: &str) -> Result<(), Broken> {
        let detail = format!("{} {}", self.place.execution_id, self.place.index);
        match self.gates.wait(name, &detail).await {
            Passage::Open => Ok(()),
            Passage::Fail => Err(Broken),
        }
    }
}

fn text_chars(answer: &Answer) -> usize {
    let chars = |chunk: &Chunk| match chunk {
        Chunk::Thinking(text) | Chunk::Text(text) => text.chars().count(),
        Chunk::Code(_) | Chunk::CodeResult(_) | Chunk::Grounding(_) => 0,
        Chunk::Call(_) | Chunk::Wait(_) | Chunk::Gate(_) | Chunk::Cut(()) | Chunk::Hang(()) => 0,
    };
    answer.chunks.iter().map(chars).sum()
}

fn tokens(usage: Usage) -> UsageInfo {
    let count = |tokens: u32| i32::try_from(tokens).unwrap_or(i32::MAX);
    let total = usage.input.saturating_add(usage.output).saturating_add(usage.thinking);
    UsageInfo {
        input_tokens: count(usage.input),
        output_tokens: count(usage.output),
        total_tokens: count(total),
        thinking_tokens: count(usage.thinking),
        cache_read_tokens: count(usage.cached),
        cache_creation_tokens: 0,
    }
}
