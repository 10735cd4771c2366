//! Recorded evidence: the tools of a drill and their answers.
//!
//! Evidence is a folder with an index, `evidence.yaml`, and the files that it names. `mcp/` serves it over MCP.
//! `spelling` and `series` decide whether a call asks for what was recorded.

mod spelling;
pub mod series;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use tarsy_config::read::units::parse_duration;
use tarsy_config::read::yaml::{self, YamlError};

use self::series::Series;

/// The answer to a call that was not recorded. It names no recorded call, as a hint would help a model.
pub const NOT_RECORDED: &str = "This source was not recorded for that request.";

/// The name of the index in a folder of evidence.
const INDEX: &str = "evidence.yaml";

/// The tools of a drill, sorted by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The time when it was recorded: the time that the model of the drill is shown.
    pub now: Option<DateTime<Utc>>,
    /// Sorted by name.
    pub tools: Vec<EvidenceTool>,
}

/// A tool that answers from a recording.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceTool {
    /// The name without the prefix of the server; its key in the index.
    #[serde(skip)]
    pub name: String,
    /// The description that the model gets.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub schema: Map<String, Value>,
    /// The tool declares that it changes nothing.
    pub read_only: bool,
    /// A call gets the first answer that matches.
    pub answers: Vec<Recorded>,
    /// The real tool's answer about objects that do not exist, if the recording has all existing objects. `{{name}}`
    /// represents the argument of that name. Without it, a call without an answer gets [`NOT_RECORDED`].
    #[serde(default)]
    pub not_found: Option<String>,
}

/// A recorded answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recorded {
    /// Arguments that must have these values, in any spelling; a list has values of which one is enough.
    pub when: BTreeMap<String, Value>,
    /// Arguments that must be texts with these parts.
    pub contains: BTreeMap<String, String>,
    /// Arguments that must be queries for these series.
    pub series: BTreeMap<String, Series>,
    /// The file with the text.
    file: Option<String>,
    /// The delay as the index writes it.
    #[serde(rename = "delay")]
    written_delay: Option<String>,
    /// The tool reports a failure.
    pub is_error: bool,
    /// The tool never answers.
    pub hang: bool,
    /// `{{name}}` in the text represents the argument of that name.
    pub fill: bool,
    /// The content of the file; empty without one.
    #[serde(skip)]
    pub text: String,
    /// The time that the tool takes.
    #[serde(skip)]
    pub delay: Duration,
}

/// Evidence that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The index is not YAML.
    #[error("{INDEX}: {0}")]
    Yaml(#[from] YamlError),
    /// The index has unknown or missing keys.
    #[error("{INDEX}: {0}")]
    Shape(#[from] serde_json::Error),
    /// A file cannot be read.
    #[error("{file}: {error}")]
    File {
        /// The name in the index.
        file: String,
        error: std::io::Error,
    },
    /// A delay is not a duration.
    #[error("{INDEX}: tool {tool:?}: delay {seen:?} is not a duration such as 300ms, 2s")]
    Delay { tool: String, seen: String },
}

impl Evidence {
    /// Reads a folder of evidence.
    ///
    /// # Errors
    /// When the index or a file that it names cannot be read, or the index is invalid.
    pub fn read(folder: &Path) -> Result<Self, EvidenceError> {
        let read = |file: &str| std::fs::read_to_string(folder.join(file));
        let index = read(INDEX).map_err(|error| EvidenceError::File {
            file: INDEX.to_owned(),
            error,
        })?;
        Self::parse(&index, read)
    }

    /// Parses an index; `file` returns the content of a file that the index names.
    ///
    /// # Errors
    /// When the index is invalid or `file` fails.
    pub fn parse(
        index: &str,
        file: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<Self, EvidenceError> {
        let index: Index = serde_json::from_value(yaml::to_json(index)?)?;
        let mut tools = Vec::new();
        for (name, mut tool) in index.tools {
            for answer in &mut tool.answers {
                answer.load(&name, &file)?;
            }
            tools.push(EvidenceTool { name, ..tool });
        }
        Ok(Self {
            now: index.now,
            tools,
        })
    }

    pub fn tool(&self, name: &str) -> Option<&EvidenceTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl EvidenceTool {
    /// The answer to a call with these arguments; `None` if no answer matches.
    pub fn answer(&self, arguments: &Map<String, Value>) -> Option<&Recorded> {
        self.answers
            .iter()
            .find(|recorded| recorded.matches(arguments))
    }

    /// The text for a call that matches no answer.
    pub fn miss(&self, arguments: &Map<String, Value>) -> String {
        self.not_found
            .as_ref()
            .map_or_else(|| NOT_RECORDED.to_owned(), |text| filled(text, arguments))
    }

    /// The conditions of the recorded answers, for the author of a drill. A model must not see them.
    pub fn recorded(&self) -> String {
        let conditions: Vec<String> = self.answers.iter().map(Recorded::condition).collect();
        format!("there are answers for: {}", conditions.join("; "))
    }
}

/// `text` with the arguments in the places of their names.
fn filled(text: &str, arguments: &Map<String, Value>) -> String {
    let mut text = text.to_owned();
    // Sorted by name, because a value may have the mark of another argument.
    let arguments: BTreeMap<&String, &Value> = arguments.iter().collect();
    for (name, value) in arguments {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), ToOwned::to_owned);
        text = text.replace(&format!("{{{{{name}}}}}"), &value);
    }
    text
}

impl Recorded {
    /// Reads the file and the delay that the index names.
    fn load(
        &mut self,
        tool: &str,
        read: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<(), EvidenceError> {
        if let Some(file) = &self.file {
            self.text = read(file).map_err(|error| EvidenceError::File {
                file: file.clone(),
                error,
            })?;
        }
        if let Some(seen) = &self.written_delay {
            self.delay = parse_duration(seen).ok_or_else(|| EvidenceError::Delay {
                tool: tool.to_owned(),
                seen: seen.clone(),
            })?;
        }
        Ok(())
    }

    /// The text of the answer to a call with these arguments.
    pub fn text_for(&self, arguments: &Map<String, Value>) -> String {
        if self.fill {
            filled(&self.text, arguments)
        } else {
            self.text.clone()
        }
    }

    fn matches(&self, arguments: &Map<String, Value>) -> bool {
        self.when
            .iter()
            .all(|(name, value)| spelling::is_same(name, value, arguments.get(name)))
            && self
                .contains
                .iter()
                .all(|(name, part)| spelling::contains(part, arguments.get(name)))
            && self.series.iter().all(|(name, series)| {
                let query = arguments.get(name).and_then(Value::as_str);
                series.answers(query.unwrap_or_default())
            })
    }

    fn condition(&self) -> String {
        let equal = self
            .when
            .iter()
            .map(|(name, value)| format!("{name} = {value}"));
        let contained = self
            .contains
            .iter()
            .map(|(name, part)| format!("{name} with {part:?} in it"));
        let series = self
            .series
            .iter()
            .map(|(name, series)| format!("{name} for {}", series.metrics.join(" or ")));
        let all: Vec<String> = equal.chain(contained).chain(series).collect();
        if all.is_empty() {
            "any arguments".to_owned()
        } else {
            all.join(", ")
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    now: Option<DateTime<Utc>>,
    tools: BTreeMap<String, EvidenceTool>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INDEX_TEXT: &str = "
tools:
  look:
    description: Looks.
    read_only: true
    schema: {type: object}
    answers:
      - {when: {pod: a, previous: true}, file: old.txt, delay: 20ms}
      - {contains: {pod: a}, file: new.txt, is_error: true}
      - {when: {pod: '{{n}}', n: 7}, file: '{{n}} of {{pod}}', fill: true}
";

    fn file(name: &str) -> std::io::Result<String> {
        Ok(format!("content of {name}"))
    }

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_call_gets_the_first_answer_that_matches() {
        let evidence = Evidence::parse(INDEX_TEXT, file).unwrap();
        let tool = evidence.tool("look").unwrap();
        let text = |value: Value| {
            tool.answer(&arguments(value))
                .map(|recorded| recorded.text.as_str())
        };
        assert_eq!(
            text(json!({"pod": "a", "previous": true})),
            Some("content of old.txt")
        );
        assert_eq!(
            text(json!({"pod": "a-1", "previous": false})),
            Some("content of new.txt")
        );
        assert_eq!(text(json!({"pod": "b"})), None);
        let filled = arguments(json!({"pod": "{{n}}", "n": 7}));
        assert_eq!(
            tool.answer(&filled).unwrap().text_for(&filled),
            "content of 7 of {{n}}"
        );
        assert_eq!(tool.answers[0].delay, Duration::from_millis(20));
        assert_eq!(
            tool.recorded(),
            "there are answers for: pod = \"a\", previous = true; pod with \"a\" in it; n = 7, pod = \"{{n}}\""
        );
    }

    #[test]
    fn a_call_without_an_answer_learns_nothing_about_the_recording() {
        let evidence = Evidence::parse(INDEX_TEXT, file).unwrap();
        let mut tool = evidence.tool("look").unwrap().clone();
        let asked = arguments(json!({"pod": "b"}));
        assert_eq!(tool.miss(&asked), NOT_RECORDED);
        tool.not_found = Some("pods \"{{pod}}\" not found".to_owned());
        assert_eq!(tool.miss(&asked), "pods \"b\" not found");
    }

    #[test]
    fn an_invalid_index_is_refused_with_the_value_that_was_found() {
        let fault = |from: &str, to: &str| {
            Evidence::parse(&INDEX_TEXT.replace(from, to), file)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            fault("20ms", "soon"),
            "evidence.yaml: tool \"look\": delay \"soon\" is not a duration such as 300ms, 2s"
        );
        assert!(fault("is_error", "is_eror").contains("unknown field `is_eror`"));
        assert!(fault("{type: object}", "[").contains("evidence.yaml: line"));
        let missing = Evidence::parse(INDEX_TEXT, |_| Err(std::io::ErrorKind::NotFound.into()));
        assert_eq!(
            missing.unwrap_err().to_string(),
            "old.txt: entity not found"
        );
    }
}
