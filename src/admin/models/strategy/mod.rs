//! Asks a model for one call of a tool, and finds the strategy that fits it. Nothing is called.
//!
//! The request goes the way of every model call: the client, the LLM service, the provider's stream. Only if it shows
//! no structured call, a second one asks for a call in the form of `react`. The readings are those of investigations.

mod reading;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use serde::Serialize;

pub use self::reading::{Interpretation, Outcome};

use super::probe::{self, ProbeAnswer, Question, ask, message};
use super::{ModelReport, Problem, State, advice};
use tarsy_core::execution::entry::{Finish, Role, ToolCall};
use tarsy_core::plan::{ProviderPlan, Strategy, ToolSpec};
use tarsy_core::prompt::{self, Briefing, PromptOptions};
use tarsy_core::react;
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::ports::ModelError;
use tarsy_llm::client::{Client, Observed};
use tarsy_mcp::{ArgumentFit, fit_arguments};

/// The tool of the probe. No MCP server may have its first part, and there is no such tool.
const TOOL: &str = "tarsy.echo";
const DESCRIPTION: &str = "Repeats a word and some numbers. It changes nothing.";
const SCHEMA: &str = r#"{"type": "object", "properties": {"word": {"type": "string", "description": "The word"}, "numbers": {"type": "array", "items": {"type": "integer"}, "description": "The numbers"}}, "required": ["word", "numbers"], "additionalProperties": false}"#;
const TASK: &str = "This is a test of tool calls. Call the tool that you have exactly once, with the word \"ready\" and the \
                    numbers 1, 2 and 3. Do not write any other answer.";
/// Codes of failures that a request without tools may not meet.
const ABOUT_TOOLS: [ErrorCode; 5] = [
    ErrorCode::InvalidRequest,
    ErrorCode::MalformedToolCall,
    ErrorCode::ModelNotFound,
    ErrorCode::EmptyResponse,
    ErrorCode::Provider,
];

/// The result of the probe of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StrategyReport {
    /// The `iteration_strategy` that fits; `None` if none does, or if no model was asked.
    pub strategy: Option<&'static str>,
    /// The answer to a request with a tool; `None` if no model was asked.
    pub native: Option<Interpretation>,
    /// The answer to a request for a call as text; `None` if it was not asked for.
    pub react: Option<Interpretation>,
    /// The same in sentences.
    pub notes: Vec<String>,
}

/// The plans for the probes of a provider.
#[derive(Debug)]
pub(super) struct Plans {
    pub(super) native: ProviderPlan,
    pub(super) react: ProviderPlan,
    pub(super) timeout: Duration,
}

/// The report of a provider that replays recordings.
pub(super) fn of_recording(report: ModelReport) -> ModelReport {
    ModelReport {
        probe: Some(StrategyReport {
            strategy: None,
            native: None,
            react: None,
            notes: vec![words::RECORDING.to_owned()],
        }),
        ..report
    }
}

/// The report with the strategy that fits, or with the reason why none does.
pub(super) async fn probe(report: ModelReport, plans: Plans, client: &Client) -> ModelReport {
    let native = match ask(client, plans.native, native_question(plans.timeout)).await {
        Ok(answered) => Asked::answered(of_native(&answered.observed).await, answered.answer),
        Err(error) => Asked::failed(error, &report),
    };
    if !native.needs_react() {
        return concluded(report, native, None);
    }
    let react = match ask(client, plans.react, react_question(plans.timeout)).await {
        Ok(answered) => Asked::answered(of_react(&answered.observed).await, answered.answer),
        Err(error) => Asked::failed(error, &report),
    };
    concluded(report, native, Some(react))
}

/// A request, and what its answer or its failure shows.
struct Asked {
    reading: Interpretation,
    answer: Option<ProbeAnswer>,
    problem: Option<Problem>,
}

impl Asked {
    fn answered(reading: Interpretation, answer: ProbeAnswer) -> Self {
        Self {
            reading,
            answer: Some(answer),
            problem: None,
        }
    }

    fn failed(error: ModelError, report: &ModelReport) -> Self {
        let problem = probe::problem(error, report);
        Self {
            reading: Interpretation::failed(words::of_problem(&problem)),
            answer: None,
            problem: Some(problem),
        }
    }

    /// Whether a call as text may succeed where a structured one did not.
    fn needs_react(&self) -> bool {
        !self.reading.fits()
            && self.reading.reason.as_deref() != Some(Finish::MaxTokens.as_str())
            && self
                .problem
                .as_ref()
                .is_none_or(|problem| ABOUT_TOOLS.contains(&ErrorCode::parse(&problem.code)))
    }
}

fn native_question(timeout: Duration) -> Question {
    Question {
        messages: vec![message(Role::User, TASK)],
        tools: vec![tool()],
        timeout,
    }
}

/// The prompt of an investigation, with the tool as text.
fn react_question(timeout: Duration) -> Question {
    let tools = [tool()];
    let briefing = Briefing {
        agent: "probe",
        strategy: Strategy::React,
        tools: &tools,
        instructions: "",
        max_iterations: 1,
        runbooks: &[],
        fetched: None,
        options: PromptOptions::default(),
        skills: "",
    };
    Question {
        messages: vec![
            message(Role::System, prompt::system(&briefing)),
            message(Role::User, TASK),
        ],
        tools: Vec::new(),
        timeout,
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: TOOL.to_owned(),
        original_name: None,
        description: DESCRIPTION.to_owned(),
        parameters_schema: SCHEMA.to_owned(),
        read_only: true,
        approval: None,
    }
}

async fn of_native(observed: &Observed) -> Interpretation {
    let fit = match called(observed) {
        Some(call) => Some(fit_arguments(&tool(), &call.arguments).await),
        None => None,
    };
    reading::native(observed, fit.as_ref())
}

/// The call that counts: the first one of the tool, or the first one.
fn called(observed: &Observed) -> Option<&ToolCall> {
    let calls = &observed.answer.calls;
    calls
        .iter()
        .find(|call| call.tool == TOOL)
        .or_else(|| calls.first())
}

async fn of_react(observed: &Observed) -> Interpretation {
    let reply = react::read(&observed.answer.text, Some(&[tool()]));
    let fit = match &reply.arguments_text {
        Some(arguments) => Some(fit_arguments(&tool(), arguments).await),
        None => None,
    };
    reading::react(observed, &reply, fit.as_ref())
}

/// The report after one or two requests.
fn concluded(report: ModelReport, native: Asked, react: Option<Asked>) -> ModelReport {
    let fits_react = react.as_ref().is_some_and(|asked| asked.reading.fits());
    let strategy = match (native.reading.fits(), fits_react) {
        (true, _) => Some(Strategy::NativeThinking),
        (false, true) => Some(Strategy::React),
        (false, false) => None,
    };
    let problem = strategy.is_none().then(|| match &native.problem {
        // A second failure is hardly one of tools: the first says what is wrong.
        Some(first) if react.as_ref().is_none_or(|asked| asked.problem.is_some()) => first.clone(),
        Some(_) | None => none_fits(&native.reading, &report.name),
    });
    let notes = words::notes(&native.reading, react.as_ref().map(|asked| &asked.reading));
    let answer = native
        .answer
        .or_else(|| react.as_ref().and_then(|asked| asked.answer.clone()));
    ModelReport {
        state: if problem.is_some() {
            State::Unusable
        } else {
            State::Ready
        },
        problem,
        answer,
        probe: Some(StrategyReport {
            strategy: strategy.map(Strategy::as_str),
            native: Some(native.reading),
            react: react.map(|asked| asked.reading),
            notes,
        }),
        ..report
    }
}

/// The problem of a model that answers, and whose calls cannot be used.
fn none_fits(native: &Interpretation, name: &str) -> Problem {
    let code = match native.reason.as_deref() {
        Some(word) if word == Finish::MaxTokens.as_str() => ErrorCode::MaxTokens.as_str(),
        Some(_) | None => "no_strategy",
    };
    Problem {
        code: code.to_owned(),
        provider_status: String::new(),
        message: words::none_fits(code).to_owned(),
        fix: advice::of_code(code, name, "", None),
    }
}
