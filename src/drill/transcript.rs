//! Transcripts: what a scripted model says, answer by answer.
//!
//! A transcript is a YAML file of a drill or a test. `answers[i]` is given to a request that holds `i` assistant
//! messages, so nobody has to remember how far an investigation has come. This file owns the format; `llm/` plays it.

mod native;
mod question;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::repeat;
use crate::config::read::yaml::{self, YamlError};

pub use native::{Code, CodeResult, Research, Resting};
pub use question::Question;

/// The transcripts of a drill that is part of the program; `None` when there is no such drill.
pub fn builtin(name: &str) -> Option<Result<Vec<Transcript>, TranscriptError>> {
    super::builtin(name).map(|drill| drill.transcripts.iter().map(|text| Transcript::parse(text)).collect())
}

/// A recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// A request can ask for it by this name.
    pub name: String,
    /// A request whose prompt contains this text gets it, too.
    pub matches: Option<String>,
    /// Only for the agent of this name; of several transcripts that fit, one for the agent itself is taken.
    pub agent: Option<String>,
    /// The pause between two pieces of streamed text.
    pub pace: Duration,
    /// Every answer carries provider state, and the next request has to bring all of it back byte for byte.
    pub provider_state: bool,
    /// Tokens of the largest request that it takes, as a model would; any size when `None`.
    pub context_window: Option<u64>,
    /// By the number of assistant messages in the request; never empty. The last one is given again and again.
    pub answers: Vec<Answer>,
    /// What is said to follow-up questions about the investigation that `answers` is.
    pub questions: Vec<Question>,
}

/// One recorded answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What happens, in order.
    pub chunks: Vec<Chunk>,
    /// An error instead of the answer.
    pub fail: Option<Fail>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// What is said instead when this answer calls tools and the request offers none.
    pub conclusion: Option<Box<Answer>>,
}

impl Answer {
    /// Whether it asks for a tool.
    pub fn calls_tools(&self) -> bool {
        self.chunks.iter().any(|chunk| matches!(chunk, Chunk::Call(_)))
    }
}

/// One thing that happens in an answer.
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
    /// What came of it.
    CodeResult(CodeResult),
    /// A search of the provider, or pages that it read.
    Grounding(Research),
    /// Nothing for a while: `300ms`, `2s`, `1m`.
    #[serde(deserialize_with = "duration")]
    Wait(Duration),
    /// Waits at the gate of this name.
    Gate(String),
    /// The stream breaks here.
    #[serde(deserialize_with = "yes")]
    Cut(()),
    /// Nothing ever comes again.
    #[serde(deserialize_with = "yes")]
    Hang(()),
}

/// A recorded tool call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// `server.tool`.
    pub tool: String,
    /// A mapping; a string is sent as it stands, so that it can be wrong.
    #[serde(default)]
    pub arguments: Value,
}

impl Call {
    /// The arguments as a model would write them.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => self.arguments.to_string(),
        }
    }
}

/// A recorded error of the provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// The service's word, e.g. `max_retries`.
    pub code: String,
    /// For people.
    pub message: String,
    /// How many calls of this answer fail, per execution; all of them by default.
    pub times: Option<u32>,
}

/// Tokens of a recorded answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Input, cached tokens included.
    pub input: u32,
    /// Of these, read from a cache.
    pub cached: u32,
    /// Output without reasoning.
    pub output: u32,
    /// Reasoning.
    pub thinking: u32,
}

/// Why a text is no transcript.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// It is not YAML.
    #[error("transcript: {0}")]
    Yaml(#[from] YamlError),
    /// Something in it is not understood.
    #[error("transcript: {path}: {message}")]
    Invalid {
        /// Where, e.g. `answers[1].chunks[0]`.
        path: String,
        /// What is wrong.
        message: String,
    },
}

impl Transcript {
    /// Whether it is for the agent whom this system message is for; one that names no agent is for all.
    pub fn is_for(&self, system_message: &str) -> bool {
        self.agent.as_deref().is_none_or(|agent| {
            let named = system_message.strip_prefix("You are ").and_then(|rest| rest.strip_prefix(agent));
            named.is_some_and(|rest| rest.starts_with(','))
        })
    }

    /// Reads a transcript from YAML.
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

/// The outer layer of the file. The inner ones are read one by one, so that an error can say where it is.
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
}

fn answers(path: &str, values: Vec<Value>) -> Result<Vec<Answer>, TranscriptError> {
    if values.is_empty() {
        return Err(invalid(path, "needs at least one answer"));
    }
    let values = repeat::expanded(values).map_err(|(i, error)| invalid(&format!("{path}[{i}]"), &error))?;
    values.into_iter().enumerate().map(|(i, value)| answer(&format!("{path}[{i}]"), value)).collect()
}

fn answer(path: &str, value: Value) -> Result<Answer, TranscriptError> {
    let layer: AnswerLayer = read(path, value)?;
    let chunks = layer.chunks.into_iter().enumerate();
    Ok(Answer {
        chunks: chunks.map(|(i, value)| read(&format!("{path}.chunks[{i}]"), value)).collect::<Result<_, _>>()?,
        fail: read(&format!("{path}.fail"), layer.fail)?,
        usage: read(&format!("{path}.usage"), layer.usage)?,
        conclusion: layer
            .conclusion
            .map(|value| answer(&format!("{path}.conclusion"), value).map(Box::new))
            .transpose()?,
    })
}

fn read<T: DeserializeOwned>(path: &str, value: Value) -> Result<T, TranscriptError> {
    serde_json::from_value(value).map_err(|error| invalid(path, &error.to_string()))
}

fn invalid(path: &str, message: &str) -> TranscriptError {
    TranscriptError::Invalid { path: path.to_owned(), message: message.to_owned() }
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit_ms = match text.strip_prefix(digits) {
        Some("ms") => Some(1),
        Some("s") => Some(1_000),
        Some("m") => Some(60_000),
        Some(_) | None => None,
    };
    let amount = digits.parse::<u64>().ok();
    match amount.zip(unit_ms).and_then(|(amount, unit)| amount.checked_mul(unit)) {
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Err(D::Error::custom(format!("bad duration '{text}', expected a number with ms, s or m, like 300ms"))),
    }
}

/// A switch that is only ever written when it is on.
fn yes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    if bool::deserialize(deserializer)? { Ok(()) } else { Err(D::Error::custom("may only be true: leave it out")) }
}
