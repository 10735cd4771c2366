//! `tarsy inspect stream`: the timeline events of a model's answer, without a worker.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::Value;

use crate::cli::args::{Controller, InspectStreamArgs};
use crate::cli::commands::output::print_json;
use crate::cli::commands::submit;
use crate::cli::exit::Exit;
use tarsy_core::execution::absorb;
use tarsy_core::execution::decide::{Decision, decide};
use tarsy_core::execution::entry::{Answer, Entry};
use tarsy_core::execution::results::CallError;
use tarsy_core::execution::state::State;
use tarsy_core::plan::{AgentPlan, AnswerCheck, Limits, ResultForm, Strategy};
use tarsy_core::projection::{Measured, project};
use tarsy_core::react::{self, ReplyKind};
use tarsy_core::timeline::{EventDraft, EventStatus, EventType};
use tarsy_engine::ports::ModelError;
use tarsy_llm::client::assemble;
use tarsy_llm::json;
use tarsy_llm::proto::GenerateResponse;

/// One line of the output.
#[derive(Serialize)]
struct Event {
    event_type: EventType,
    status: EventStatus,
    content: String,
    metadata: Value,
    sequence_number: u32,
}

pub(super) fn run(args: &InspectStreamArgs) -> anyhow::Result<Exit> {
    let named = submit::named(&args.file);
    let Ok(text) = String::from_utf8(submit::read(&args.file)?) else {
        bail!("{named} is not UTF-8 text")
    };
    let chunks = chunks(&text).with_context(|| named)?;
    if chunks.is_empty() {
        return Ok(Exit::Done);
    }
    for (number, event) in (1..).zip(projected(strategy(args.controller), assemble(chunks))) {
        print_json(&Event {
            event_type: event.event_type,
            status: event.status,
            content: event.content,
            metadata: event.metadata,
            sequence_number: number,
        })?;
    }
    Ok(Exit::Done)
}

fn chunks(text: &str) -> anyhow::Result<Vec<GenerateResponse>> {
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| json::chunk(line).with_context(|| format!("line {number}")))
        .collect()
}

fn strategy(controller: Controller) -> Strategy {
    match controller {
        Controller::NativeThinking => Strategy::NativeThinking,
        Controller::Synthesis => Strategy::Synthesis,
        Controller::React => Strategy::React,
        Controller::SingleCall => Strategy::SingleCall,
    }
}

/// The events of an answer that is the first of its execution.
fn projected(strategy: Strategy, reply: Result<Answer, ModelError>) -> Vec<EventDraft> {
    let tools = reply
        .as_ref()
        .map(|answer| called_tools(strategy, answer))
        .unwrap_or_default();
    let mut state = State::replay(Arc::new(plan(strategy, tools)), None, Vec::<Entry>::new());
    if let Decision::Append(opening) = decide(&state) {
        opening.into_iter().for_each(|entry| state.apply(entry));
    }
    let entries = match reply {
        Ok(answer) => absorb::absorb(&state, answer),
        Err(ModelError::Failed {
            code,
            message,
            timeout,
            ..
        }) => absorb::failed(
            &state,
            &code,
            CallError {
                message: &message,
                timeout,
            },
        ),
        Err(ModelError::Unavailable(message) | ModelError::Broke(message)) => absorb::failed(
            &state,
            "",
            CallError {
                message: &message,
                timeout: false,
            },
        ),
    };
    project(&state, &entries, &Measured::default())
}

/// The tools that the answer calls. There is no list of tools here, so every name of the right form counts as offered.
fn called_tools(strategy: Strategy, answer: &Answer) -> Vec<String> {
    match strategy {
        Strategy::React => {
            let reply = react::read(&answer.text, None);
            match reply.kind {
                ReplyKind::Action => reply.action.into_iter().collect(),
                ReplyKind::Final | ReplyKind::UnknownTool | ReplyKind::Malformed => Vec::new(),
            }
        }
        Strategy::SingleCall
        | Strategy::NativeThinking
        | Strategy::Synthesis
        | Strategy::SynthesisNativeThinking => {
            answer.calls.iter().map(|call| call.tool.clone()).collect()
        }
    }
}

fn plan(strategy: Strategy, tools: Vec<String>) -> AgentPlan {
    AgentPlan {
        name: String::new(),
        strategy,
        limits: Limits::default(),
        providers: Vec::new(),
        tools: tools.into_iter().map(super::tool).collect(),
        system_prompt: String::new(),
        user_prompt: String::new(),
        conclusion_prompt: String::new(),
        result_form: ResultForm::Bare,
        citable: None,
        omitted_tools: 0,
        summaries: None,
        answer_check: AnswerCheck::Off,
        clock: None,
        presentation: tarsy_core::plan::PresentationPlan::default(),
    }
}
