//! The arguments of the tool.

use serde_json::{Map, Value};

use super::finder::{Finder, Lines};
use super::pointer::Pointer;

/// The arguments of a call of `tarsy.read_result`.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number of the result's event.
    pub event: u32,
    pub timeline: Timeline,
    /// The values of a JSON result that are read instead of its lines.
    pub pointer: Option<Pointer>,
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
#[derive(Clone, Debug)]
pub enum Part {
    Lines(Lines),
    /// Offsets from 0; at most `count` bytes.
    Bytes {
        from: usize,
        count: usize,
    },
    Search(Search),
    Tally(Tally),
}

/// A search for a text or a pattern.
#[derive(Clone, Debug)]
pub struct Search {
    pub finder: Finder,
    /// The lines that are searched.
    pub lines: Lines,
    /// Lines before and after a match.
    pub context: usize,
    /// The first match that is shown, from 1.
    pub from_match: usize,
}

/// The matches of a search, added up.
#[derive(Clone, Debug)]
pub struct Tally {
    pub finder: Finder,
    /// The lines that are searched.
    pub lines: Lines,
    pub show: Show,
    pub split: Split,
}

/// The sum of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Count,
    /// Least, median, 90th percentile and greatest of the numbers of group 1, or of the first ones behind the matches.
    Numbers,
}

/// The division of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    Whole,
    /// The text of group 1.
    Group,
    Period(Period),
}

/// A period of the lines' times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Minute,
    QuarterOfAnHour,
    Hour,
    Day,
}

impl Period {
    /// Its length.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::QuarterOfAnHour => 900,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "1m" => Ok(Self::Minute),
            "15m" => Ok(Self::QuarterOfAnHour),
            "1h" => Ok(Self::Hour),
            "24h" => Ok(Self::Day),
            _ => Err("per is one of 1m, 15m, 1h and 24h".to_owned()),
        }
    }
}

const KEYS: [&str; 14] = [
    "event",
    "from_line",
    "lines",
    "from_byte",
    "bytes",
    "search",
    "pattern",
    "show",
    "per",
    "by",
    "pointer",
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
        let event = number(&arguments, "event")?
            .ok_or("the argument event is missing: the number of the result's event")?;
        Ok(Self {
            event: u32::try_from(event).map_err(|_| format!("there is no event {event}"))?,
            timeline: timeline(&arguments, default)?,
            pointer: word(&arguments, "pointer")
                .map(Pointer::parse)
                .transpose()?,
            part: part(&arguments)?,
        })
    }
}

fn part(arguments: &Map<String, Value>) -> Result<Part, String> {
    let number = |key: &str| number(arguments, key);
    let lines = Lines {
        from: number("from_line")?.unwrap_or(1).max(1),
        count: number("lines")?.unwrap_or(usize::MAX).max(1),
    };
    let finder = match (word(arguments, "search"), word(arguments, "pattern")) {
        (Some(_), Some(_)) => return Err("give either search or pattern".to_owned()),
        (Some(text), None) => Some(Finder::text(text)),
        (None, Some(pattern)) => Some(Finder::pattern(pattern)?),
        (None, None) => None,
    };
    let split = split(arguments)?;
    let show = match word(arguments, "show") {
        None if split == Split::Whole => None,
        None | Some("count") => Some(Show::Count),
        Some("numbers") => Some(Show::Numbers),
        Some("lines") if split == Split::Whole => None,
        Some("lines") => return Err("per and by need show: count or show: numbers".to_owned()),
        Some(_) => return Err("show is one of lines, count and numbers".to_owned()),
    };
    if let Some(show) = show {
        let finder = finder.unwrap_or(Finder::Line);
        if split == Split::Group && !finder.has_group() {
            return Err(
                "by: group needs a pattern with a group, such as status=([0-9]+)".to_owned(),
            );
        }
        return Ok(Part::Tally(Tally {
            finder,
            lines,
            show,
            split,
        }));
    }
    if let Some(finder) = finder {
        return Ok(Part::Search(Search {
            finder,
            lines,
            context: number("context")?
                .unwrap_or(DEFAULT_CONTEXT)
                .min(MAX_CONTEXT),
            from_match: number("from_match")?.unwrap_or(1).max(1),
        }));
    }
    Ok(match number("from_byte")? {
        Some(from) => Part::Bytes {
            from,
            count: number("bytes")?.unwrap_or(usize::MAX),
        },
        None => Part::Lines(lines),
    })
}

fn split(arguments: &Map<String, Value>) -> Result<Split, String> {
    match (word(arguments, "by"), word(arguments, "per")) {
        (None, None) => Ok(Split::Whole),
        (Some("group"), None) => Ok(Split::Group),
        (Some(_), None) => Err("by has one value: group".to_owned()),
        (None, Some(period)) => Period::parse(period).map(Split::Period),
        (Some(_), Some(_)) => Err("give either per or by".to_owned()),
    }
}

/// A text that is not empty.
fn word<'a>(arguments: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
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
