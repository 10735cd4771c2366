//! Transcripts: what a scripted model says, answer by answer.
//!
//! A transcript is a YAML file of a drill or a test. `answers[i]` is given to a request that holds `i` assistant
//! messages, so nobody has to remember how far an investigation has come. This file owns the format; `llm/` plays it.

use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::repeat;
use crate::config::yaml::{self, YamlError};

/// The transcript of a drill that is part of the program; `None` when there is no such drill.
pub fn builtin(name: &str) -> Option<Result<Transcript, TranscriptError>> {
    super::builtin(name).map(|drill| Transcript::parse(drill.transcript))
}

/// A recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// A request can ask for it by this name.
    pub name: String,
    /// A request whose prompt contains this text gets it, too.
    pub matches: Option<String>,
    /// The pause between two pieces of streamed text.
    pub pace: Duration,
    /// Every answer carries provider state, and the next request has to bring all of it back byte for byte.
    pub provider_state: bool,
    /// Tokens of the largest request that it takes, as a model would; any size when `None`.
    pub context_window: Option<u64>,
    /// By the number of assistant messages in the request; never empty. The last one is given again and again.
    pub answers: Vec<Answer>,
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
    /// Reads a transcript from YAML.
    ///
    /// # Errors
    /// When the text is not YAML, has unknown keys or bad values, or has no answers.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        let file: File = read("top level", yaml::to_json(text)?)?;
        if file.answers.is_empty() {
            return Err(invalid("answers", "needs at least one answer"));
        }
        let answers = repeat::expanded(file.answers).map_err(|(i, error)| invalid(&format!("answers[{i}]"), &error))?;
        let answers = answers.into_iter().enumerate();
        Ok(Self {
            name: file.name,
            matches: file.matches,
            pace: file.pace,
            provider_state: file.provider_state,
            context_window: file.context_window,
            answers: answers.map(|(i, value)| answer(&format!("answers[{i}]"), value)).collect::<Result<_, _>>()?,
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
    #[serde(default, deserialize_with = "duration")]
    pace: Duration,
    #[serde(default)]
    provider_state: bool,
    context_window: Option<u64>,
    answers: Vec<Value>,
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::drill::BUILTIN;
    use crate::investigation::react;

    #[test]
    fn a_transcript_says_what_happens_in_each_answer() {
        let text = "
name: short
match: DiskFull
pace: 20ms
answers:
  - chunks:
      - thinking: Look first.
      - wait: 2s
      - gate: before-call
      - call: {tool: k8s.pods, arguments: {namespace: shop}}
    fail: {code: max_retries, message: busy, times: 1}
    usage: {input: 10, output: 2}
    conclusion:
      chunks: [{text: No tools left.}]
  - chunks:
      - text: Half
      - cut: true
";
        let first = Answer {
            chunks: vec![
                Chunk::Thinking("Look first.".into()),
                Chunk::Wait(Duration::from_secs(2)),
                Chunk::Gate("before-call".into()),
                Chunk::Call(Call { tool: "k8s.pods".into(), arguments: json!({"namespace": "shop"}) }),
            ],
            fail: Some(Fail { code: "max_retries".into(), message: "busy".into(), times: Some(1) }),
            usage: Some(Usage { input: 10, output: 2, ..Usage::default() }),
            conclusion: Some(Box::new(Answer {
                chunks: vec![Chunk::Text("No tools left.".into())],
                ..Answer::default()
            })),
        };
        let second = Answer { chunks: vec![Chunk::Text("Half".into()), Chunk::Cut(())], ..Answer::default() };
        assert_eq!(
            Transcript::parse(text).unwrap(),
            Transcript {
                name: "short".into(),
                matches: Some("DiskFull".into()),
                pace: Duration::from_millis(20),
                provider_state: false,
                context_window: None,
                answers: vec![first, second],
            }
        );
    }

    #[test]
    fn arguments_are_sent_as_json_and_a_string_as_it_stands() {
        let text = |arguments| Call { tool: "a.b".into(), arguments }.arguments_text();
        assert_eq!(text(json!({"n": 1})), r#"{"n":1}"#);
        assert_eq!(text(json!("{broken")), "{broken");
        assert_eq!(text(Value::Null), "{}");
    }

    #[test]
    fn a_fault_says_where_it_is_and_what_is_accepted() {
        let fault = |text: &str| Transcript::parse(text).unwrap_err().to_string();
        assert_eq!(
            fault("name: x\nanswers: [\n"),
            "transcript: line 3: while parsing a node, did not find expected node content"
        );
        assert_eq!(fault("name: x\nanswers: []\n"), "transcript: answers: needs at least one answer");
        assert_eq!(
            fault("name: x\nanswer: []\nanswers: []\n"),
            "transcript: top level: unknown field `answer`, expected one of `name`, `match`, `pace`, `provider_state`, `context_window`, `answers`"
        );
        assert_eq!(
            fault("name: x\nanswers:\n  - chunks: []\n  - chunks: [{text: a}, {txt: b}]\n"),
            "transcript: answers[1].chunks[1]: unknown variant `txt`, expected one of `thinking`, `text`, `call`, `wait`, `gate`, `cut`, `hang`"
        );
        assert_eq!(
            fault("name: x\nanswers:\n  - chunks: [{wait: 3 weeks}]\n"),
            "transcript: answers[0].chunks[0]: bad duration '3 weeks', expected a number with ms, s or m, like 300ms"
        );
        assert_eq!(
            fault("name: x\nanswers:\n  - conclusion: {chunks: [{cut: false}]}\n"),
            "transcript: answers[0].conclusion.chunks[0]: may only be true: leave it out"
        );
    }

    #[test]
    fn every_built_in_transcript_is_found_by_its_name_and_ends_without_a_call() {
        for drill in BUILTIN {
            let transcript = builtin(drill.name).unwrap().unwrap();
            assert_eq!(transcript.name, drill.name);
            assert!(drill.alert.contains(transcript.matches.as_deref().unwrap()), "{}", drill.name);
            assert_eq!(calls(transcript.answers.last().unwrap()), vec![], "{}", drill.name);
        }
        assert_eq!(builtin("no-such-drill"), None);
    }

    #[test]
    fn every_call_of_a_built_in_transcript_is_answered_by_the_evidence_beside_it() {
        for drill in BUILTIN {
            let (evidence, transcript) = (drill.evidence().unwrap(), builtin(drill.name).unwrap().unwrap());
            let calls: Vec<_> = transcript.answers.iter().flat_map(calls).collect();
            assert!(calls.len() >= 4, "{}", drill.name);
            for (tool, arguments) in calls {
                let found = evidence.tool(tool.strip_prefix("drill.").unwrap()).unwrap();
                assert!(found.read_only && found.answer(&arguments).is_some(), "{tool} {arguments:?}");
            }
        }
    }

    /// The calls of an answer, bound or written down.
    fn calls(answer: &Answer) -> Vec<(String, Map<String, Value>)> {
        let of = |chunk: &Chunk| match chunk {
            Chunk::Call(call) => Some((call.tool.clone(), call.arguments.as_object().unwrap().clone())),
            Chunk::Text(text) => react::read(text, None).action.zip(react::read(text, None).arguments),
            Chunk::Thinking(_) | Chunk::Wait(_) | Chunk::Gate(_) | Chunk::Cut(()) | Chunk::Hang(()) => None,
        };
        answer.chunks.iter().filter_map(of).collect()
    }
}
