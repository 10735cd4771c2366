//! Probes a model: asks it for one word, on the path of every model call.

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::{ModelReport, Problem, State, advice};
use tarsy_core::execution::entry::{Answer as ModelAnswer, Finish, Role, Usage};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{ProviderPlan, Thinking, ThinkingLevel, ToolSpec};
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::ports::{Message, ModelError, ModelRequest, ProviderFailure};
use tarsy_llm::client::{CheckError, Client, Observed};

const PROMPT: &str = "This is a test of the connection. Answer with the single word: ready";
/// Models that think need more than the answer has. Anthropic accepts budgets for thinking from 1,024 tokens.
const MAX_OUTPUT_TOKENS: u32 = 4_096;

/// The answer of a model to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// From the request to the first chunk; `None` if there was none.
    pub first_chunk_ms: Option<u64>,
    pub took_ms: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub thinking_tokens: u64,
    /// The reason why the model stopped: `stop`, `max_tokens`, …
    pub finish: String,
    pub text: String,
}

/// The request of a probe, and its time limit.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) timeout: Duration,
}

/// The report with the model's answer, or with the reason why there is none.
pub(super) async fn probe(
    report: ModelReport,
    plan: ProviderPlan,
    client: &Client,
    timeout: Duration,
) -> ModelReport {
    let question = Question {
        messages: vec![message(Role::User, PROMPT)],
        tools: Vec::new(),
        timeout,
    };
    let began = std::time::Instant::now();
    match client.observe(request(plan, question)).await {
        Ok(observed) => {
            let answer = measured(&observed, began.elapsed());
            ModelReport {
                state: State::Ready,
                problem: None,
                answer: Some(answer),
                ..report
            }
        }
        // The model works; only the limit of the probe was too low for its thinking.
        Err(ModelError::Failed { code, .. }) if ErrorCode::of(&code) == ErrorCode::MaxTokens => {
            let answer = measured(&cut_off(), began.elapsed());
            ModelReport {
                state: State::Ready,
                problem: None,
                answer: Some(answer),
                ..report
            }
        }
        Err(error) => {
            let problem = problem(error, &report);
            ModelReport {
                state: State::Unusable,
                problem: Some(problem),
                ..report
            }
        }
    }
}

/// An answer that reached the limit of output tokens before its first word.
pub(super) fn cut_off() -> Observed {
    let answer = ModelAnswer {
        finish: Finish::MaxTokens,
        ..ModelAnswer::default()
    };
    Observed {
        answer,
        ..Observed::default()
    }
}

pub(super) fn message(role: Role, content: impl Into<String>) -> Message {
    Message {
        role,
        content: content.into(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: None,
        is_error: false,
        provider_data: None,
    }
}

/// A request with little thinking, a low limit of output and none of the provider's own tools.
pub(super) fn request(plan: ProviderPlan, question: Question) -> ModelRequest {
    let limit = plan
        .max_output_tokens
        .unwrap_or(MAX_OUTPUT_TOKENS)
        .min(MAX_OUTPUT_TOKENS);
    // A model that was configured without thinking may refuse the setting.
    let thinking = plan.thinking.map(|thinking| match thinking {
        Thinking::Level(_) | Thinking::Budget(1..) => Thinking::Level(ThinkingLevel::Low),
        Thinking::Budget(0) => Thinking::Budget(0),
    });
    let Question {
        messages,
        tools,
        timeout,
    } = question;
    ModelRequest {
        session_id: SessionId(Uuid::now_v7()),
        execution_id: ExecutionId(Uuid::now_v7()),
        request_id: "probe".to_owned(),
        provider: ProviderPlan {
            max_output_tokens: Some(limit),
            thinking,
            native_tools: Vec::new(),
            ..plan
        },
        messages,
        tools,
        timeout,
        clear_cache: false,
    }
}

pub(super) fn measured(observed: &Observed, took: Duration) -> Answer {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let Usage {
        input_tokens,
        output_tokens,
        thinking_tokens,
        ..
    } = observed.answer.usage;
    Answer {
        first_chunk_ms: observed.first_chunk.map(millis),
        took_ms: millis(took),
        input_tokens,
        output_tokens,
        thinking_tokens,
        finish: observed.answer.finish.as_str().to_owned(),
        text: observed.answer.text.clone(),
    }
}

pub(super) fn problem(error: ModelError, report: &ModelReport) -> Problem {
    let (code, message, provider) = match error {
        ModelError::Failed {
            code,
            message,
            provider,
            ..
        } => (code, message, provider),
        ModelError::Unavailable(message) | ModelError::Broke(message) => {
            let fix = advice::of_service(&CheckError::Unavailable(String::new()));
            let code = "llm_service_unavailable".to_owned();
            return Problem {
                code,
                provider_status: String::new(),
                message,
                fix,
            };
        }
    };
    let ProviderFailure {
        status,
        retry_after,
        ..
    } = provider;
    let fix = advice::of_code(&code, &report.name, &report.key_env, retry_after);
    Problem {
        code,
        provider_status: status,
        message,
        fix,
    }
}
