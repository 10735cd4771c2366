//! The front matter of a skill: its name, its description, and what is only shown to people.

use serde_json::Value;
use tarsy_config::read::yaml;
use tarsy_core::skills::is_name;
use tarsy_core::visible::{is_blank, visible};

/// The longest front matter.
const MAX_BYTES: usize = 16 * 1024;
/// The longest description.
const MAX_DESCRIPTION_CHARS: usize = 1_024;
const MARK: &str = "---";
/// Keys that people see and no model. Others are ignored; `allowed-tools` grants nothing.
const SHOWN: [&str; 3] = ["license", "compatibility", "metadata"];

/// A text with its front matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) description: String,
    /// Keys and values for people.
    pub(crate) shown: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Parses the text of the skill that its folder or file calls `name`.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn parse(name: &str, text: &str) -> Result<Parsed, String> {
    if !is_name(name) {
        return Err(format!(
            "{name:?} is no name of a skill: 1 to 64 of a-z, 0-9 and -"
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    let parts = split(&text).ok_or_else(|| {
        "it has no front matter: the first line has to be ---, and a later one, too".to_owned()
    })?;
    if parts.matter.len() > MAX_BYTES {
        return Err(format!(
            "its front matter has {} bytes; at most {MAX_BYTES} are read",
            parts.matter.len()
        ));
    }
    let matter =
        yaml::to_json(parts.matter).map_err(|error| format!("its front matter: {error}"))?;
    if let Some(own) = matter.get("name").map(shown)
        && own != name
    {
        return Err(format!(
            "its front matter names it {own:?}, and its file {name:?}"
        ));
    }
    let body = visible(parts.body).trim().to_owned();
    if body.is_empty() {
        return Err("it has no text behind its front matter".to_owned());
    }
    Ok(Parsed {
        description: description(&matter)?,
        shown: SHOWN
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), visible(&shown(matter.get(key)?)))))
            .collect(),
        body,
    })
}

fn description(matter: &Value) -> Result<String, String> {
    let description = matter.get("description").and_then(Value::as_str);
    let description = description.map(visible).unwrap_or_default();
    if is_blank(&description) {
        return Err("its front matter has no description".to_owned());
    }
    let chars = description.chars().count();
    if chars > MAX_DESCRIPTION_CHARS {
        return Err(format!(
            "its description has {chars} characters; accepted: at most {MAX_DESCRIPTION_CHARS}"
        ));
    }
    Ok(description.trim().to_owned())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

struct Parts<'t> {
    matter: &'t str,
    body: &'t str,
}

fn split(text: &str) -> Option<Parts<'_>> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != MARK {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == MARK {
            return Some(Parts {
                matter: rest.get(..at)?,
                body: rest.get(at + line.len()..)?,
            });
        }
        at += line.len();
    }
    None
}
