//! The steps of a session: its rows, with a call and its result in one.
//!
//! The words of a row come from `timeline/rows/` of the core, as in the terminal. `row` makes the element of a step,
//! `opened` the texts below it, `chart` the drawing of a series, and `fold` decides which steps of a long session are
//! in the page.

mod row;
mod opened;
mod chart;
mod fold;
mod branch;

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use crate::markdown::Cites;
use serde_json::Value;
use tarsy_core::execution::event_refs::cited;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::Charset;
use tarsy_core::timeline::rows::{Kind, Row, Rows, Tone};
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_reports::AlertReport;

pub(crate) use self::branch::Branch;
pub(crate) use self::fold::{Part, fold};
pub(crate) use self::opened::{json, whole_event};
pub(crate) use self::row::{folded, step};

/// The view of the timeline: the steps to show, and their form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    /// A call and its result are one row.
    #[default]
    Steps,
    /// The results that the analysis cites.
    Cited,
    Errors,
    /// Every event is a row.
    All,
}

impl View {
    pub(crate) const EACH: [Self; 4] = [Self::Steps, Self::Cited, Self::Errors, Self::All];

    /// The word in addresses.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Steps => "",
            Self::Cited => "cited",
            Self::Errors => "errors",
            Self::All => "all",
        }
    }

    pub(crate) fn parse(word: &str) -> Self {
        Self::EACH
            .into_iter()
            .find(|view| view.word() == word)
            .unwrap_or_default()
    }
}

/// One event, or a call with its result.
#[derive(Clone, Debug)]
pub(crate) struct Step<'a> {
    /// The event whose number the step has: the result, or the call while it has none.
    pub event: &'a TimelineEvent,
    pub row: Row,
    /// The call of the result.
    pub call: Option<AnsweredCall<'a>>,
    pub(crate) is_cited: bool,
    /// The steps of the sub-agent that the event begins.
    pub(crate) branch: Branch,
}

/// A call that has a result.
#[derive(Clone, Debug)]
pub(crate) struct AnsweredCall<'a> {
    pub event: &'a TimelineEvent,
    pub row: Row,
}

impl Step<'_> {
    /// The number of its first event. The element keeps it when the result of a call arrives.
    pub(crate) fn first(&self) -> u32 {
        self.first_event().session_seq
    }

    /// The call of a result, otherwise the event itself.
    fn first_event(&self) -> &TimelineEvent {
        self.call.as_ref().map_or(self.event, |call| call.event)
    }

    /// The row of [`Self::first_event`].
    fn first_row(&self) -> &Row {
        self.call.as_ref().map_or(&self.row, |call| &call.row)
    }

    pub(crate) fn is_call(&self) -> bool {
        self.call.is_some() || is_call(self.event)
    }

    pub(crate) fn is_error(&self) -> bool {
        self.row.name_tone == Tone::Bad && !matches!(self.row.kind, Kind::End)
    }

    /// Whether one of these events is part of it.
    fn has_any_of(&self, numbers: &BTreeSet<u32>) -> bool {
        numbers.contains(&self.event.session_seq) || numbers.contains(&self.first())
    }

    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        self.event.content.len()
            + self
                .call
                .as_ref()
                .map_or(0, |call| call.event.content.len())
    }
}

/// Whether an event is a call that waits for its result.
pub(crate) fn is_call(event: &TimelineEvent) -> bool {
    matches!(
        event.event_type,
        EventType::LlmToolCall | EventType::McpToolCall
    )
}

/// The context that all rows of a page share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub session: SessionId,
    /// The investigation that the session answers a question about: its events are cited.
    pub parent: Option<SessionId>,
    pub view: View,
    /// `None` where the first event is not known.
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub agents: Agents,
    /// The number of the last event: a citation of a later one is text.
    pub(crate) last_event: u32,
    pub bodies: Bodies,
}

/// Whether rows name their agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agents {
    One,
    Several,
}

/// The place of the texts of closed rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bodies {
    InPage,
    /// The page has a link, which the script follows when a row is opened.
    Linked,
}

impl Context {
    /// The context of a page with all of these events.
    pub(crate) fn new(session: SessionId, events: &[TimelineEvent]) -> Self {
        let agents: BTreeSet<&str> = events
            .iter()
            .flat_map(|event| {
                event
                    .agent
                    .as_deref()
                    .into_iter()
                    .chain(named_agents(event))
            })
            .collect();
        let parent = events
            .first()
            .and_then(|first| first.metadata.get("parent_id")?.as_str());
        Self {
            session,
            parent: parent.and_then(SessionId::parse),
            view: View::Steps,
            started_at: events.first().map(|event| event.created_at),
            agents: if agents.len() > 1 {
                Agents::Several
            } else {
                Agents::One
            },
            last_event: events.last().map_or(0, |event| event.session_seq),
            bodies: Bodies::InPage,
        }
    }

    fn cites(&self) -> Cites {
        self.parent
            .map_or_else(|| Cites::of_page(self.last_event), Cites::of_investigation)
    }
}

/// The agents that the beginning of a session or of a stage names, before they have events.
pub(crate) fn named_agents(event: &TimelineEvent) -> impl Iterator<Item = &str> {
    let begins = matches!(
        event.event_type,
        EventType::SessionStarted | EventType::StageStarted
    );
    let agents = if begins {
        event.metadata.get("agents").and_then(Value::as_array)
    } else {
        None
    };
    agents.into_iter().flatten().filter_map(Value::as_str)
}

/// The numbers that the analysis cites. An answer to a question cites events of its investigation, and none of its own.
pub(crate) fn cited_events(report: &AlertReport) -> BTreeSet<u32> {
    match &report.session {
        Some(session) if report.parent_id.is_none() => {
            [&session.executive_summary, &session.final_analysis]
                .into_iter()
                .flatten()
                .flat_map(|text| cited(text))
                .collect()
        }
        Some(_) | None => BTreeSet::new(),
    }
}

/// The steps of all events of a session, in order.
pub(crate) fn steps<'a>(
    events: &'a [TimelineEvent],
    cited: &BTreeSet<u32>,
    view: View,
) -> Vec<Step<'a>> {
    let mut rows = Rows::new(Charset::Unicode);
    let mut steps: Vec<Step<'a>> = Vec::with_capacity(events.len());
    let mut open: HashMap<u32, usize> = HashMap::new();
    for event in events {
        let row = rows.row(event);
        let is_cited = cited.contains(&event.session_seq);
        let answered = match row.call {
            Some(call) if view != View::All && event.event_type == EventType::ToolResult => open
                .remove(&call)
                .and_then(|index: usize| steps.get_mut(index)),
            Some(_) | None => None,
        };
        let mut step = Step {
            event,
            row,
            call: None,
            is_cited,
            branch: Branch::default(),
        };
        match answered {
            // The result takes the place of its call, so that both are one row.
            Some(place) => {
                std::mem::swap(place, &mut step);
                place.call = Some(AnsweredCall {
                    event: step.event,
                    row: step.row,
                });
            }
            None => {
                if is_call(event) {
                    open.insert(event.session_seq, steps.len());
                }
                steps.push(step);
            }
        }
    }
    branch::grow(&mut steps);
    match view {
        View::Steps | View::All => {}
        View::Cited => steps.retain(|step| step.is_cited),
        View::Errors => steps.retain(Step::is_error),
    }
    steps
}
