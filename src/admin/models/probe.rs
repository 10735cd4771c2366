//! Probes a model: asks it for one word, on the path of every model call.

use std::time::{Duration, Instant};

use serde::Serialize;
use uuid::Uuid;

use super::{ModelReport, Problem, State, advice};
use tarsy_core::execution::entry::{Answer as ModelAnswer, Finish, Role};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{ProviderPlan, Thinking, ThinkingLevel, ToolSpec};
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::ports::{Message, ModelError, ModelRequest};
use tarsy_llm::client::{CheckError, Client, Observed};

const PROMPT: &str = "This is a test of the connection. Answer with the single word: ready";
/// Models that think need more than the answer has. Anthropic accepts budgets for thinking from 1,024 tokens.
const MAX_OUTPUT_TOKENS: u32 = 4_096;

/// The answer of a model to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeAnswer {
    /// The time from the request to the first chunk; `None` if there was none.
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
    match ask(client, plan, question).await {
        Ok(answered) => ModelReport {
            state: State::Ready,
            problem: None,
            answer: Some(answered.answer),
            ..report
        },
        Err(error) => ModelReport {
            state: State::Unusable,
            problem: Some(problem(error, &report)),
            ..report
        },
    }
}

/// An answer, and how long it took.
pub(super) struct Answered {
    pub(super) observed: Observed,
    pub(super) answer: ProbeAnswer,
}

/// Sends the request of a probe. A model that reaches the low limit of output tokens before its first word works: it
/// has answered, with nothing.
pub(super) async fn ask(
    client: &Client,
    plan: ProviderPlan,
    question: Question,
) -> Result<Answered, ModelError> {
    let began = Instant::now();
    let observed = match client.observe(request(plan, question)).await {
        Ok(observed) => observed,
        Err(ModelError::Failed { code, .. }) if ErrorCode::parse(&code) == ErrorCode::MaxTokens => {
            Observed {
                answer: ModelAnswer {
                    finish: Finish::MaxTokens,
                    ..ModelAnswer::default()
                },
                ..Observed::default()
            }
        }
        Err(error) => return Err(error),
    };
    let answer = measured(&observed, began.elapsed());
    Ok(Answered { observed, answer })
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
        messages: question.messages,
        tools: question.tools,
        declared_tools: Vec::new(),
        timeout: question.timeout,
        clear_cache: false,
    }
}

fn measured(observed: &Observed, took: Duration) -> ProbeAnswer {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let usage = observed.answer.usage;
    ProbeAnswer {
        first_chunk_ms: observed.first_chunk.map(millis),
        took_ms: millis(took),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        thinking_tokens: usage.thinking_tokens,
        finish: observed.answer.finish.as_str().to_owned(),
        text: observed.answer.text.clone(),
    }
}

pub(super) fn problem(error: ModelError, report: &ModelReport) -> Problem {
    match error {
        ModelError::Failed {
            code,
            message,
            provider,
            ..
        } => Problem {
            fix: advice::of_code(&code, &report.name, &report.key_env, provider.retry_after),
            code,
            provider_status: provider.status,
            message,
        },
        ModelError::Unavailable(message) | ModelError::Broke(message) => Problem {
            code: "llm_service_unavailable".to_owned(),
            provider_status: String::new(),
            message,
            fix: advice::of_service(&CheckError::Unavailable(String::new())),
        },
    }
}
