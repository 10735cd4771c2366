//! Reads the events of a stream in parallel with the crate `genai`: fields that the crate drops, and the time of the
//! last byte.

mod calls;
mod record;

use parking_lot::Mutex;

use ::genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef, Usage};
use serde_json::Value;
use tokio::time::Instant;

use self::calls::Calls;
pub(super) use self::calls::{Called, LastCalls};
pub(super) use self::record::is_signed;
use self::record::{FrameRecorder, append};
use super::target::Api;
use crate::service::provider::fields::kind;

/// The mark at the end of a stream of chat completions.
pub(super) const DONE: &str = "[DONE]";
/// The reason to stop of a model that refused.
pub(super) const REFUSAL: &str = "refusal";

/// The events of one response.
#[derive(Debug)]
pub(super) struct Frames {
    api: Api,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last: Option<Instant>,
    summary: Summary,
    calls: Calls,
    recorder: FrameRecorder,
}

/// The facts about the answer that the events contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    pub(super) response_id: String,
    pub(super) model_version: String,
    /// The reason why the model stopped; `None` before it did.
    pub(super) finish_reason: Option<String>,
    /// Whether the stream ended with its mark. A reason to stop may be missing before it.
    pub(super) is_done: bool,
    /// The words with which the model refused to answer.
    pub(super) refusal: String,
    /// The tokens of chat completions, whose stream may end before the crate reports them.
    pub(super) usage: Option<Usage>,
}

impl Frames {
    pub(super) fn new(api: Api) -> Self {
        Self {
            api,
            state: Mutex::new(State {
                last: None,
                summary: Summary::default(),
                calls: Calls::new(api),
                recorder: FrameRecorder::new(api),
            }),
        }
    }

    /// The time when the last event arrived.
    pub(super) fn last(&self) -> Option<Instant> {
        self.state.lock().last
    }

    /// Whether the model has stopped. After it, the response may bring only usage.
    pub(super) fn is_complete(&self) -> bool {
        let state = self.state.lock();
        state.summary.is_done || state.summary.finish_reason.is_some()
    }

    pub(super) fn summary(&self) -> Summary {
        self.state.lock().summary.clone()
    }

    /// The calls that have become complete since the last time.
    pub(super) fn take_calls(&self) -> Vec<Called> {
        self.state.lock().calls.take_complete()
    }

    /// All other calls, at the end of the answer.
    pub(super) fn take_last_calls(&self) -> LastCalls {
        self.state.lock().calls.take_last()
    }

    /// Takes the data that the provider needs back in the next request.
    pub(super) fn take_parts(&self) -> Vec<Value> {
        std::mem::replace(
            &mut self.state.lock().recorder,
            FrameRecorder::new(self.api),
        )
        .into_parts()
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _ctx: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut state = self.state.lock();
        state.last = Some(Instant::now());
        if frame.data == DONE {
            state.summary.is_done = true;
        }
        let Some(mut event) = frame.json() else {
            return;
        };
        state.summary.add(self.api, &event);
        state.calls.add(&event);
        // The recorder takes values out of the event, so it comes last.
        state.recorder.add(&mut event, frame.data.len());
    }
}

impl Summary {
    fn add(&mut self, api: Api, event: &Value) {
        match api {
            Api::Messages => self.add_message(event),
            Api::Responses => self.add_response(event),
            Api::Chat => self.add_completion(event),
            Api::Ollama => {
                replace(&mut self.model_version, event.get("model"));
                self.finish(event.get("done_reason"));
            }
            Api::Converse => self.finish(event.get("stopReason")),
        }
    }

    fn add_message(&mut self, event: &Value) {
        replace(&mut self.response_id, event.pointer("/message/id"));
        replace(&mut self.model_version, event.pointer("/message/model"));
        self.finish(event.pointer("/delta/stop_reason"));
    }

    fn add_response(&mut self, event: &Value) {
        replace(&mut self.response_id, event.pointer("/response/id"));
        replace(&mut self.model_version, event.pointer("/response/model"));
        match kind(event) {
            // The refusal is the answer, and no text follows.
            "response.refusal.done" => {
                self.finish_reason = Some(REFUSAL.to_owned());
                replace(&mut self.refusal, event.get("refusal"));
            }
            "response.completed" if self.finish_reason.is_none() => {
                self.finish(event.pointer("/response/status"));
            }
            "response.incomplete" => {
                self.finish(event.pointer("/response/status"));
                self.finish(event.pointer("/response/incomplete_details/reason"));
            }
            _ => {}
        }
    }

    fn add_completion(&mut self, event: &Value) {
        replace(&mut self.response_id, event.get("id"));
        replace(&mut self.model_version, event.get("model"));
        append(&mut self.refusal, event.pointer("/choices/0/delta/refusal"));
        self.finish(event.pointer("/choices/0/finish_reason"));
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.usage = serde_json::from_value(usage.clone()).ok();
        }
    }

    fn finish(&mut self, reason: Option<&Value>) {
        let reason = reason.and_then(Value::as_str).unwrap_or_default();
        if !reason.is_empty() {
            self.finish_reason = Some(reason.to_owned());
        }
    }
}

fn replace(field: &mut String, new: Option<&Value>) {
    if let Some(new) = new.and_then(Value::as_str).filter(|new| !new.is_empty()) {
        new.clone_into(field);
    }
}
