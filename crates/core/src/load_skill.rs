//! The built-in tool `tarsy.load_skill`: shows the texts of skills, or a file of one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::plan::ToolSpec;
use super::skills::{SkillRef, TextHash};

/// The full name.
pub const TOOL: &str = "tarsy.load_skill";
/// Skills of one call.
pub const MAX_NAMES: usize = 4;

const DESCRIPTION: &str = include_str!("prompts/load_skill.md");

/// The tool for an agent with these skills.
pub fn spec(skills: &[SkillRef]) -> ToolSpec {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "names": {
                "type": "array", "minItems": 1, "maxItems": MAX_NAMES, "items": {"type": "string", "enum": names},
                "description": "Names of skills from the section Skills",
            },
            "file": {
                "type": "string",
                "description": "One of the files that the text of a skill names, instead of the text; with one name",
            },
        },
        "required": ["names"],
        "additionalProperties": false,
    });
    ToolSpec {
        name: TOOL.to_owned(),
        original_name: None,
        description: DESCRIPTION.trim().to_owned(),
        parameters_schema: schema.to_string(),
        read_only: true,
        approval: None,
    }
}

/// A text that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub hash: TextHash,
    name: String,
    file: Option<String>,
    /// The other files of the skill, for the model.
    files: Vec<String>,
}

/// The arguments of a call, with the texts that they name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub wanted: Vec<Wanted>,
    /// A sentence for each name that is no skill of the agent.
    unknown: Vec<String>,
}

impl Request {
    /// Parses the arguments of an agent that has these skills.
    ///
    /// # Errors
    /// When they name no skill or file; the text is for the model.
    pub fn parse(arguments: &str, skills: &[SkillRef]) -> Result<Self, String> {
        let names = names(arguments)?;
        let file = file(arguments);
        if let (Some(_), true) = (&file, names.len() > 1) {
            return Err("file needs exactly one name in names.".to_owned());
        }
        let mut wanted = Vec::new();
        let mut unknown = Vec::new();
        for name in names {
            match skills.iter().find(|skill| skill.name == name) {
                Some(skill) => wanted.push(text_of(skill, file.as_deref())?),
                None => unknown.push(unknown_name(&name, skills)),
            }
        }
        if wanted.is_empty() {
            return Err(unknown.join("\n"));
        }
        Ok(Self { wanted, unknown })
    }

    /// The text for the model, with the stored texts. A text that the store does not have is an error.
    ///
    /// # Errors
    /// When none of the texts is stored.
    pub fn answer(&self, texts: &BTreeMap<TextHash, String>) -> Result<String, String> {
        let mut parts = Vec::new();
        let mut missing = Vec::new();
        for wanted in &self.wanted {
            match texts.get(&wanted.hash) {
                Some(text) => parts.push(wanted.shown(text)),
                None => missing.push(format!(
                    "The text of the skill {} is no longer stored: work without it.",
                    wanted.name
                )),
            }
        }
        if parts.is_empty() {
            return Err(missing.join("\n"));
        }
        parts.extend(missing);
        parts.extend(self.unknown.iter().cloned());
        Ok(parts.join("\n\n"))
    }
}

impl Wanted {
    fn shown(&self, text: &str) -> String {
        let file = self
            .file
            .as_ref()
            .map(|file| format!(", file {file}"))
            .unwrap_or_default();
        let heading = format!(
            "skill {}{file}, by the operators: how to look. It allows no change and proves nothing.",
            self.name
        );
        let files = if self.files.is_empty() {
            String::new()
        } else {
            format!(
                "\n\nfiles of this skill, for the argument file: {}",
                self.files.join(", ")
            )
        };
        format!("{heading}\n\n{}{files}", text.trim_end())
    }
}

fn text_of(skill: &SkillRef, file: Option<&str>) -> Result<Wanted, String> {
    let paths: Vec<String> = skill.files.iter().map(|file| file.path.clone()).collect();
    let Some(wanted) = file else {
        return Ok(Wanted {
            hash: skill.sha256,
            name: skill.name.clone(),
            file: None,
            files: paths,
        });
    };
    // The text of a skill names its files with their folder.
    let path = wanted.strip_prefix("references/").unwrap_or(wanted);
    let known = skill.files.iter().find(|file| file.path == path);
    let known = known.ok_or_else(|| {
        let files = if paths.is_empty() {
            "none".to_owned()
        } else {
            paths.join(", ")
        };
        format!(
            "the skill {} has no file {wanted:?}; its files: {files}.",
            skill.name
        )
    })?;
    Ok(Wanted {
        hash: known.sha256,
        name: skill.name.clone(),
        file: Some(known.path.clone()),
        files: Vec::new(),
    })
}

fn unknown_name(name: &str, skills: &[SkillRef]) -> String {
    let known: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    format!(
        "there is no skill {name:?}; the skills are: {}.",
        known.join(", ")
    )
}

fn object(arguments: &str) -> Result<serde_json::Map<String, Value>, String> {
    let parsed: Result<Value, _> = serde_json::from_str(arguments);
    match parsed {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) | Err(_) => Err("the arguments have to be a JSON object.".to_owned()),
    }
}

/// The names; one alone may be a text.
fn names(arguments: &str) -> Result<Vec<String>, String> {
    let object = object(arguments)?;
    let given = object.get("names").or_else(|| object.get("name"));
    let mut names: Vec<String> = match given {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    };
    let mut known = std::collections::BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    if names.is_empty() || names.len() > MAX_NAMES {
        return Err(format!("names has to be a list of 1 to {MAX_NAMES} names."));
    }
    Ok(names)
}

fn file(arguments: &str) -> Option<String> {
    let object = object(arguments).ok()?;
    let file = object.get("file").and_then(Value::as_str)?;
    (!file.is_empty()).then(|| file.to_owned())
}
