//! The format of transcripts: the recorded answers of a scripted model.
//!
//! A transcript is a YAML file of a drill or a test. A request with `i` assistant messages gets `answers[i]`, so the
//! LLM service needs no state. `llm/` plays the answers.

mod native;
mod question;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::repeat;
use tarsy_config::read::units::parse_duration;
use tarsy_config::read::yaml::{self, YamlError};

pub use native::{Code, CodeResult, Research, Resting};
pub use question::Question;

/// A recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The name by which a provider of the configuration chooses the transcript.
    pub name: String,
    /// A request whose prompt contains this text also gets the transcript.
    pub matches: Option<String>,
    /// The agent to which the transcript belongs. A transcript that names the agent is preferred to one that names
    /// none.
    pub agent: Option<String>,
    /// The pause between two pieces of streamed text.
    pub pace: Duration,
    /// Whether each answer carries provider state, which the next request has to return byte for byte.
    pub provider_state: bool,
    /// The largest request that is accepted, in tokens; `None` for no limit.
    pub context_window: Option<u64>,
    /// Indexed by the number of assistant messages in the request; never empty. The last answer repeats.
    pub answers: Vec<RecordedAnswer>,
    /// The answers to follow-up questions about the investigation.
    pub questions: Vec<Question>,
}

/// The answer to one request, in the parts that a stream would have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedAnswer {
    pub chunks: Vec<Chunk>,
    /// An error instead of the answer.
    pub fail: Option<Fail>,
    pub usage: Option<Usage>,
    /// Replaces this answer if it calls tools and the request offers none.
    pub conclusion: Option<Box<RecordedAnswer>>,
    /// Replaces this answer if a person has denied a call of the answer before.
    pub denied: Option<Box<RecordedAnswer>>,
}

impl RecordedAnswer {
    pub fn calls_tools(&self) -> bool {
        self.chunks
            .iter()
            .any(|chunk| matches!(chunk, Chunk::Call(_)))
    }
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// Reasoning, streamed in pieces.
    Thinking(String),
    /// Text, streamed in pieces.
    Text(String),
    /// A tool call, sent whole.
    Call(Call),
    /// Code that the provider runs.
    Code(Code),
    CodeResult(CodeResult),
    /// A search of the provider, or the pages that it read.
    Grounding(Research),
    /// A pause: `300ms`, `2s`, `1m`.
    #[serde(deserialize_with = "duration")]
    Wait(Duration),
    /// A wait at the gate of this name.
    Gate(String),
    /// The stream breaks off.
    #[serde(deserialize_with = "yes")]
    Cut(()),
    /// The stream stays open without another part.
    #[serde(deserialize_with = "yes")]
    Hang(()),
}

/// A recorded tool call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The full name, `server.tool`.
    pub tool: String,
    /// A mapping; a string is sent unchanged, so that it can be malformed.
    #[serde(default)]
    pub arguments: Value,
}

impl Call {
    /// The arguments as a model would write them.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.arguments.to_string()
            }
        }
    }
}

/// A recorded error of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// The error code of the LLM service, e.g. `max_retries`.
    pub code: String,
    pub message: String,
    /// The number of calls of this answer that fail in each execution; by default all of them.
    pub times: Option<u32>,
    /// Whether the same request may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// The delay that the provider asks for.
    #[serde(default, deserialize_with = "optional_duration")]
    pub retry_after: Option<Duration>,
    /// The provider's own words, e.g. `429 RESOURCE_EXHAUSTED`.
    #[serde(default)]
    pub status: String,
}

/// Tokens of a recorded answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input: u32,
    /// Input tokens that were read from a cache.
    pub cached: u32,
    /// Output tokens without reasoning.
    pub output: u32,
    /// Reasoning tokens.
    pub thinking: u32,
}

/// The reason why a transcript is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The text is not YAML.
    #[error("transcript: {0}")]
    Yaml(#[from] YamlError),
    /// A key or value is invalid.
    #[error("transcript: {path}: {message}")]
    Invalid {
        /// The path of the value, e.g. `answers[1].chunks[0]`.
        path: String,
        message: String,
    },
}

impl Transcript {
    /// Whether the transcript is for the agent of this system message; one that names no agent is for all agents.
    pub fn is_for(&self, system_message: &str) -> bool {
        self.agent.as_deref().is_none_or(|agent| {
            let named = system_message
                .strip_prefix("You are ")
                .and_then(|rest| rest.strip_prefix(agent));
            named.is_some_and(|rest| rest.starts_with(','))
        })
    }

    /// Parses a transcript.
    ///
    /// # Errors
    /// When the text is not YAML, has unknown keys or bad values, or has no answers.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        let file: File = read("top level", yaml::to_json(text)?)?;
        let questions = file.questions.into_iter().enumerate();
        Ok(Self {
            name: file.name,
            matches: file.matches,
            agent: file.agent,
            pace: file.pace,
            provider_state: file.provider_state,
            context_window: file.context_window,
            answers: answers("answers", file.answers)?,
            questions: questions
                .map(|(i, value)| question::read_one(&format!("questions[{i}]"), value))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// The outer layer of the file. The inner layers are read one by one, so that an error has the path of its value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(rename = "match")]
    matches: Option<String>,
    agent: Option<String>,
    #[serde(default, deserialize_with = "duration")]
    pace: Duration,
    #[serde(default)]
    provider_state: bool,
    context_window: Option<u64>,
    answers: Vec<Value>,
    #[serde(default)]
    questions: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLayer {
    #[serde(default)]
    chunks: Vec<Value>,
    #[serde(default)]
    fail: Value,
    #[serde(default)]
    usage: Value,
    conclusion: Option<Value>,
    denied: Option<Value>,
}

fn answers(path: &str, values: Vec<Value>) -> Result<Vec<RecordedAnswer>, TranscriptError> {
    if values.is_empty() {
        return Err(invalid(path, "needs at least one answer"));
    }
    let values = repeat::expanded(values)
        .map_err(|error| invalid(&format!("{path}[{}]", error.index), &error.message))?;
    values
        .into_iter()
        .enumerate()
        .map(|(i, value)| answer(&format!("{path}[{i}]"), value))
        .collect()
}

fn answer(path: &str, value: Value) -> Result<RecordedAnswer, TranscriptError> {
    let layer: AnswerLayer = read(path, value)?;
    let chunks = layer.chunks.into_iter().enumerate();
    Ok(RecordedAnswer {
        chunks: chunks
            .map(|(i, value)| read(&format!("{path}.chunks[{i}]"), value))
            .collect::<Result<_, _>>()?,
        fail: read(&format!("{path}.fail"), layer.fail)?,
        usage: read(&format!("{path}.usage"), layer.usage)?,
        conclusion: layer
            .conclusion
            .map(|value| answer(&format!("{path}.conclusion"), value).map(Box::new))
            .transpose()?,
        denied: layer
            .denied
            .map(|value| answer(&format!("{path}.denied"), value).map(Box::new))
            .transpose()?,
    })
}

fn read<T: DeserializeOwned>(path: &str, value: Value) -> Result<T, TranscriptError> {
    serde_json::from_value(value).map_err(|error| invalid(path, &error.to_string()))
}

fn invalid(path: &str, message: &str) -> TranscriptError {
    TranscriptError::Invalid {
        path: path.to_owned(),
        message: message.to_owned(),
    }
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).ok_or_else(|| {
        D::Error::custom(format!("'{text}' is not a duration such as 300ms, 2s, 1m"))
    })
}

fn optional_duration<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

/// A flag that may only be written as `true`.
fn yes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    if bool::deserialize(deserializer)? {
        Ok(())
    } else {
        Err(D::Error::custom("may only be true: leave it out"))
    }
}
