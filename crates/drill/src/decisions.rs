//! The decisions of people in a drill: the calls that wait for a person, and what the person of the drill says.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use tarsy_config::read::units::parse_duration;
use tarsy_config::read::yaml::{self, YamlError};
use tarsy_core::approvals::{Choice, Sender};

/// A decision about one call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The full name, `server.tool`.
    pub tool: String,
    /// The arguments of the call, all of them.
    pub arguments: Map<String, Value>,
    /// The name of the person.
    pub person: String,
    pub verdict: Choice,
    pub comment: Option<String>,
    /// The comment of a person who denies what this decision approves (`tarsy drill --no-approve`).
    pub denial: Option<String>,
    /// The delay as the file writes it.
    #[serde(rename = "delay")]
    written_delay: Option<String>,
    /// The time that the person thinks.
    #[serde(skip)]
    pub delay: Duration,
}

/// A fault of a `decisions.yaml`.
#[derive(Debug, thiserror::Error)]
pub enum DecisionsError {
    /// The file is not YAML.
    #[error("{0}")]
    Yaml(#[from] YamlError),
    /// A key or value is invalid.
    #[error("{path}: {message}")]
    Invalid {
        /// The path of the value, e.g. `decisions[0].tool`.
        path: String,
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    decisions: Vec<Value>,
}

impl Decision {
    /// Parses a `decisions.yaml`; `tools` are the full names of the tools that the drill has.
    ///
    /// # Errors
    /// The first fault, with the path of its value.
    pub fn parse_all(text: &str, tools: &[String]) -> Result<Vec<Self>, DecisionsError> {
        let file: File = serde_json::from_value(yaml::to_json(text)?)
            .map_err(|error| invalid("top level", &error))?;
        if file.decisions.is_empty() {
            return Err(invalid("decisions", "needs at least one decision"));
        }
        let mut decisions: Vec<Self> = Vec::new();
        for (index, value) in file.decisions.into_iter().enumerate() {
            let path = format!("decisions[{index}]");
            let decision: Self =
                serde_json::from_value(value).map_err(|error| invalid(&path, &error))?;
            let decision = decision.checked(&path, tools)?;
            let first = decisions
                .iter()
                .position(|other| other.is_about(&decision.tool, &decision.arguments));
            if let Some(first) = first {
                let message = format!("decisions[{first}] is about the same call");
                return Err(invalid(&path, &message));
            }
            decisions.push(decision);
        }
        Ok(decisions)
    }

    /// Whether it is about a call of this tool with these arguments.
    pub fn is_about(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        self.tool == tool && self.arguments == *arguments
    }

    /// The same person, who denies the call if they would approve it.
    #[must_use]
    pub fn denied(self) -> Self {
        match self.verdict {
            Choice::Approve => Self {
                verdict: Choice::Deny,
                comment: self.denial.clone(),
                ..self
            },
            Choice::Deny | Choice::DenySession => self,
        }
    }

    fn checked(mut self, path: &str, tools: &[String]) -> Result<Self, DecisionsError> {
        if !tools.contains(&self.tool) {
            let message = format!(
                "the evidence has no tool {:?}; there are: {}",
                self.tool,
                tools.join(", ")
            );
            return Err(invalid(&format!("{path}.tool"), &message));
        }
        if Sender::cli(&self.person).is_none() {
            let message = format!("{:?} is no name of letters, digits, - and _", self.person);
            return Err(invalid(&format!("{path}.person"), &message));
        }
        if self.denial.is_some() && self.verdict != Choice::Approve {
            let message = "only a call that is approved can be denied with --no-approve";
            return Err(invalid(&format!("{path}.denial"), message));
        }
        if let Some(seen) = &self.written_delay {
            self.delay = parse_duration(seen).ok_or_else(|| {
                let message = format!("{seen:?} is not a duration such as 300ms, 2s");
                invalid(&format!("{path}.delay"), &message)
            })?;
        }
        Ok(self)
    }
}

fn invalid(path: &str, message: &(impl ToString + ?Sized)) -> DecisionsError {
    DecisionsError::Invalid {
        path: path.to_owned(),
        message: message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "
decisions:
  - tool: drill.mend
    arguments: {pod: a, force: true}
    person: ben
    verdict: approve
    comment: go on
    denial: not at noon
    delay: 20ms
";

    fn parse(text: &str) -> Result<Vec<Decision>, String> {
        let tools = ["drill.look", "drill.mend"].map(str::to_owned);
        Decision::parse_all(text, &tools).map_err(|error| error.to_string())
    }

    #[test]
    fn a_decision_is_about_one_call_with_all_of_its_arguments() {
        let [decision] = &*parse(TEXT).unwrap() else {
            panic!("there is one decision")
        };
        assert_eq!(
            (decision.person.as_str(), decision.verdict, decision.delay),
            ("ben", Choice::Approve, Duration::from_millis(20))
        );
        for (tool, arguments, is_about) in [
            ("drill.mend", json!({"force": true, "pod": "a"}), true),
            ("drill.mend", json!({"force": false, "pod": "a"}), false),
            ("drill.mend", json!({"pod": "a"}), false),
            ("drill.look", json!({"force": true, "pod": "a"}), false),
        ] {
            let arguments = arguments.as_object().unwrap();
            assert_eq!(
                decision.is_about(tool, arguments),
                is_about,
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn the_person_may_deny_what_they_would_approve_and_never_the_other_way_round() {
        let denied = |text: &str| parse(text).unwrap().remove(0).denied();
        let decision = denied(TEXT);
        assert_eq!(
            (decision.verdict, decision.comment.as_deref()),
            (Choice::Deny, Some("not at noon"))
        );
        let text = TEXT
            .replace("approve", "deny_session")
            .replace("    denial: not at noon\n", "");
        let decision = denied(&text);
        assert_eq!(
            (decision.verdict, decision.comment.as_deref()),
            (Choice::DenySession, Some("go on"))
        );
    }

    #[test]
    fn a_fault_names_its_place_and_what_is_accepted() {
        let second = format!(
            "{TEXT}{}",
            TEXT.trim_start().trim_start_matches("decisions:\n")
        );
        for (text, expected) in [
            (
                TEXT.replace("verdict", "verdikt"),
                "decisions[0]: unknown field `verdikt`, expected one of `tool`, `arguments`, `person`, `verdict`",
            ),
            (
                TEXT.replace("decisions:", "decision:"),
                "top level: unknown field `decision`, expected `decisions`",
            ),
            (TEXT.replace(": approve", ": yes"), "decisions[0]: "),
            (
                TEXT.replace("    person: ben\n", ""),
                "decisions[0]: missing field `person`",
            ),
            (
                TEXT.replace(": ben", ": 'ben b'"),
                "decisions[0].person: \"ben b\" is no name of letters",
            ),
            (
                TEXT.replace("drill.mend", "mend"),
                "decisions[0].tool: the evidence has no tool \"mend\"; there are: drill.look, drill.mend",
            ),
            (
                TEXT.replace("20ms", "soon"),
                "decisions[0].delay: \"soon\" is not a duration such as 300ms, 2s",
            ),
            (
                TEXT.replace(": approve", ": deny"),
                "decisions[0].denial: only a call that is approved",
            ),
            (second, "decisions[1]: decisions[0] is about the same call"),
            (
                "decisions: []".to_owned(),
                "decisions: needs at least one decision",
            ),
            ("decisions: [".to_owned(), "line "),
        ] {
            let fault = parse(&text).unwrap_err();
            assert!(fault.starts_with(expected), "{fault} instead of {expected}");
        }
    }
}
