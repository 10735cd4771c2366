//! The built-in tool `tarsy.past_investigations`: finds earlier investigations, and shows the report of one.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};

use super::given::shown;
use super::text::{Known, block, days, list};
use super::{By, MAX_DAYS, MAX_LIMIT, Past, PastQuery, PastReport};
use crate::clock::ClockPlan;
use crate::plan::{PastPlan, ToolSpec};
use crate::search::all_of;
use crate::visible::visible;

/// The full name. No MCP server may have its first part.
pub const TOOL: &str = "tarsy.past_investigations";

const DESCRIPTION: &str = include_str!("description.md");
/// Records of an answer where a call names no number.
const DEFAULT_LIMIT: u32 = 5;
/// Words of a query: further ones are left out.
const MAX_WORDS: usize = 8;
/// The sentence below each answer.
const NO_PROOF: &str = "It is about another time and proves nothing about now.";

/// The tool.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: TOOL.to_owned(),
        original_name: None,
        description: DESCRIPTION.trim().to_owned(),
        parameters_schema: include_str!("schema.json").trim().to_owned(),
        read_only: true,
        approval: None,
    }
}

/// A call of the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Find(PastQuery),
    /// The report of the session whose id begins or ends with this text.
    Read(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    query: Option<String>,
    #[serde(default, deserialize_with = "switch")]
    same_alert: bool,
    #[serde(default)]
    session: Option<String>,
    #[serde(default, deserialize_with = "number")]
    days: Option<u32>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<u32>,
}

impl Request {
    /// Parses the arguments; `plan` has what they leave out.
    ///
    /// # Errors
    /// When they are invalid; the text tells the model how to call the tool.
    pub fn parse(arguments: &str, plan: PastPlan) -> Result<Self, String> {
        let arguments: Arguments = serde_json::from_str(arguments).map_err(|error| {
            format!(
                "the arguments are not valid: {error}; accepted: query, same_alert, session, days, limit"
            )
        })?;
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let query = given(arguments.query);
        if let Some(session) = given(arguments.session) {
            return Ok(Self::Read(session.trim().to_owned()));
        }
        let by =
            match (query, arguments.same_alert) {
                (Some(_), true) => return Err("give either query or same_alert".to_owned()),
                (None, false) => return Err("give query, same_alert or session".to_owned()),
                (None, true) => By::SameAlert,
                (Some(query), false) => By::Words(all_of(&query, MAX_WORDS).ok_or(
                    "query has no word: give at least one of two or more letters or digits",
                )?),
            };
        Ok(Self::Find(PastQuery {
            by,
            days: arguments.days.unwrap_or(plan.days).clamp(1, MAX_DAYS),
            limit: arguments.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
            scope: plan.scope,
        }))
    }
}

/// A switch. Models that write their calls as text may write it as a text.
fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Switch(bool),
        Word(String),
        Nothing(()),
    }
    match Written::deserialize(deserializer)? {
        Written::Switch(is_on) => Ok(is_on),
        Written::Nothing(()) => Ok(false),
        Written::Word(word) => match word.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => Ok(true),
            "false" | "no" | "" => Ok(false),
            _ => Err(serde::de::Error::custom("same_alert is true or false")),
        },
    }
}

/// A number, which may be written as a text.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u32),
        Text(String),
        Nothing(()),
    }
    match Written::deserialize(deserializer)? {
        Written::Number(number) => Ok(Some(number)),
        Written::Nothing(()) => Ok(None),
        Written::Text(text) => text
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| serde::de::Error::custom("days and limit are whole numbers")),
    }
}

/// The records as the result of a call; `now` is the present of the worker, and `clock` shows it.
pub fn found(past: &Past, now: DateTime<Utc>, clock: Option<ClockPlan>) -> String {
    let in_days = days(past.days);
    if past.sessions.is_empty() {
        return format!("No earlier investigation was found in {in_days}.");
    }
    let count = u32::try_from(past.sessions.len()).unwrap_or(u32::MAX);
    let total = past.total.max(count);
    let heading = if total > count {
        format!("{total} found in {in_days}, the newest {count}. {NO_PROOF}")
    } else {
        format!("{total} found in {in_days}, the newest first. {NO_PROOF}")
    };
    let blocks = past.sessions.iter().map(|record| {
        let at = shown(clock, record.finished_at);
        block(record, at, shown(clock, now), Known::Nothing)
    });
    list(&heading, blocks)
}

/// The report of one session as the result of a call.
///
/// # Errors
/// When there is no such report; the text says so.
pub fn report(
    wanted: &str,
    report: Option<&PastReport>,
    now: DateTime<Utc>,
    clock: Option<ClockPlan>,
) -> Result<String, String> {
    let PastReport { record, analysis } = report.ok_or_else(|| {
        format!(
            "there is no earlier investigation {:?} that may be read here: give the id of a session in a list of {TOOL}.",
            wanted.chars().take(64).collect::<String>()
        )
    })?;
    let at = shown(clock, record.finished_at);
    let head = block(record, at, shown(clock, now), Known::Nothing);
    let analysis = visible(analysis);
    let analysis: Vec<String> = analysis.lines().map(|line| format!("    {line}")).collect();
    Ok(format!(
        "{head}\nIts report. {NO_PROOF}\n{}",
        analysis.join("\n")
    ))
}
