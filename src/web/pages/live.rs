//! The rows of a running session as they change: what one update adds to a page, or replaces in it.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};

use super::steps::{self, Agents, Asked, Context, Step};
use super::words::brief;
use crate::investigation::ids::SessionId;
use crate::investigation::readable::format;
use crate::investigation::readable::text::Charset;
use crate::investigation::timeline::live::{Answer, Live};
use crate::investigation::timeline::rows::{Row, Rows};
use crate::investigation::timeline::{Delta, DeltaKind, EventType, TimelineEvent};

/// Characters of an unfinished text that a page shows: its end.
const MAX_TEXT: usize = 400;

/// A page of a running session, as far as its reader has it.
#[derive(Debug)]
pub(in crate::web) struct LivePage {
    session: SessionId,
    rows: Rows,
    live: Live,
    context: Option<Context>,
    agents: BTreeSet<String>,
    /// The calls without a result.
    open: HashMap<u32, Open>,
}

#[derive(Debug)]
struct Open {
    event: TimelineEvent,
    row: Row,
}

impl LivePage {
    /// A page without rows.
    pub(in crate::web) fn new(session: SessionId) -> Self {
        Self {
            session,
            rows: Rows::new(Charset::Unicode),
            live: Live::default(),
            context: None,
            agents: BTreeSet::new(),
            open: HashMap::new(),
        }
    }

    /// Takes an event that the page has already.
    pub(in crate::web) fn pass(&mut self, event: &TimelineEvent) {
        self.live.event(event);
        self.context(event);
        let row = self.rows.row(event);
        self.keep_call(event, row);
    }

    /// The rows that an event changes: its own, or that of its call; and the unfinished answers, which the page drops
    /// with every event.
    pub(in crate::web) fn event(&mut self, event: &TimelineEvent) -> Markup {
        let superseded = if event.event_type == EventType::SessionResumed {
            self.superseded()
        } else {
            html! {}
        };
        self.live.event(event);
        let context = self.context(event);
        let row = self.rows.row(event);
        let asked = self.take_call(event, &row);
        let call = asked.as_ref().map(|call| Asked { event: &call.event, row: call.row.clone() });
        let step = Step { event, row: row.clone(), call, is_cited: false };
        let shown = html! {
            (steps::step(&step, &context))
            (superseded)
            @for answer in self.live.answers() { (unfinished(answer, "")) }
            span.cnt #count { (event.session_seq) }
        };
        self.keep_call(event, row);
        shown
    }

    fn take_call(&mut self, event: &TimelineEvent, row: &Row) -> Option<Open> {
        let call = row.call.filter(|_| event.event_type == EventType::ToolResult)?;
        self.open.remove(&call)
    }

    /// Keeps a call until its result comes.
    fn keep_call(&mut self, event: &TimelineEvent, row: Row) {
        if matches!(event.event_type, EventType::LlmToolCall | EventType::McpToolCall) {
            self.open.insert(event.session_seq, Open { event: event.clone(), row });
        } else {
            self.take_call(event, &row);
        }
    }

    /// The row of the answer that a delta belongs to; `None` for an outdated delta.
    pub(in crate::web) fn delta(&mut self, delta: &Delta) -> Option<Markup> {
        let is_new = self.live.delta(delta);
        self.live.answers().last().filter(|_| is_new).map(|answer| unfinished(answer, ""))
    }

    fn context(&mut self, event: &TimelineEvent) -> Context {
        let named = event.metadata.get("agents").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
        self.agents.extend(event.agent.clone());
        let first = || Context::new(self.session, std::slice::from_ref(event));
        let context = self.context.get_or_insert_with(first);
        context.last_event = event.session_seq;
        if named > 1 || self.agents.len() > 1 {
            context.agents = Agents::Several;
        }
        *context
    }

    /// The answers that another worker requests again, struck out until the next event.
    fn superseded(&self) -> Markup {
        html! { @for answer in self.live.answers() { (unfinished(answer, " gone")) } }
    }
}

fn unfinished(answer: &Answer, class: &'static str) -> Markup {
    let (word, text) = match answer.kind {
        DeltaKind::Thinking => ("thinking", end_of(answer.text())),
        DeltaKind::Text => ("writing", end_of(answer.text())),
        DeltaKind::Raw => ("writing", String::new()),
    };
    html! {
        // Screen readers get the step when it is over.
        li class={ "r think live" (class) } id={ "w-" (answer.execution.0.simple()) } aria-hidden="true" {
            div.s {
                span {} i.ic { "∴" } b.w { (word) } span.d { (text) }
                span.mk { span.m { (format::tokens((answer.bytes() / 4).max(1))) " tok" } } span.tk {}
            }
        }
    }
}

/// The end of a text in one line.
fn end_of(text: &str) -> String {
    let characters = text.chars().count();
    let tail: String = text.chars().skip(characters.saturating_sub(MAX_TEXT)).collect();
    let line = brief(&tail, MAX_TEXT);
    if characters > MAX_TEXT { format!("…{line}") } else { line }
}
