//! The arguments of the tool.

use serde_json::{Map, Value};

/// The arguments of a call of `tarsy.read_result`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of the result's event.
    pub event: u32,
    pub timeline: Timeline,
    pub part: Part,
}

/// The timeline that an event number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeline {
    /// The session that calls.
    Own,
    /// The investigation that the session is a question about.
    Investigation,
}

/// The part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Numbers from 1; at most `count` lines.
    Lines {
        from: usize,
        count: usize,
    },
    /// Offsets from 0; at most `count` bytes.
    Bytes {
        from: usize,
        count: usize,
    },
    Search(Search),
}

/// A search for a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    pub text: String,
    /// Lines before and after a match.
    pub context: usize,
    /// The first match that is shown, from 1.
    pub from_match: usize,
}

const KEYS: [&str; 9] = [
    "event",
    "from_line",
    "lines",
    "from_byte",
    "bytes",
    "search",
    "context",
    "from_match",
    "timeline",
];
const DEFAULT_CONTEXT: usize = 2;
const MAX_CONTEXT: usize = 20;

impl Request {
    /// Parses the arguments; `default` is the timeline of a call that names none.
    ///
    /// # Errors
    /// When they are invalid; the text tells the model how to call the tool.
    pub fn parse(arguments: &str, default: Timeline) -> Result<Self, String> {
        let arguments: Map<String, Value> = serde_json::from_str(arguments)
            .map_err(|error| format!("the arguments are not a JSON object: {error}"))?;
        if let Some(key) = arguments.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!(
                "unknown argument {key:?}; accepted: {}",
                KEYS.join(", ")
            ));
        }
        let number = |key: &str| number(&arguments, key);
        let event = number("event")?
            .ok_or("the argument event is missing: the number of the result's event")?;
        let event = u32::try_from(event).map_err(|_| format!("there is no event {event}"))?;
        let text = arguments
            .get("search")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        let part = if let Some(text) = text {
            Part::Search(Search {
                text: text.to_owned(),
                context: number("context")?
                    .unwrap_or(DEFAULT_CONTEXT)
                    .min(MAX_CONTEXT),
                from_match: number("from_match")?.unwrap_or(1).max(1),
            })
        } else if let Some(from) = number("from_byte")? {
            Part::Bytes {
                from,
                count: number("bytes")?.unwrap_or(usize::MAX),
            }
        } else {
            let from = number("from_line")?.unwrap_or(1).max(1);
            Part::Lines {
                from,
                count: number("lines")?.unwrap_or(usize::MAX).max(1),
            }
        };
        Ok(Self {
            event,
            timeline: timeline(&arguments, default)?,
            part,
        })
    }
}

/// A number from 0. Models that write their calls as text may write it as a text.
fn number(arguments: &Map<String, Value>, key: &str) -> Result<Option<usize>, String> {
    let Some(value) = arguments.get(key).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number
            .as_u64()
            .and_then(|number| usize::try_from(number).ok()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number
        .map(Some)
        .ok_or_else(|| format!("{key} is not a whole number from 0"))
}

fn timeline(arguments: &Map<String, Value>, default: Timeline) -> Result<Timeline, String> {
    match (default, arguments.get("timeline").and_then(Value::as_str)) {
        // An investigation has one timeline.
        (Timeline::Own, _) | (Timeline::Investigation, Some("now")) => Ok(Timeline::Own),
        (Timeline::Investigation, None | Some("investigation" | "")) => Ok(Timeline::Investigation),
        (Timeline::Investigation, Some(_)) => {
            Err("timeline is either investigation or now".to_owned())
        }
    }
}
