//! Live updates of a running session: the rows that one event adds to a page or replaces in it.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};

use super::steps::{self, Agents, AnsweredCall, Context, Step};
use crate::shell::words::brief;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_core::readable::text::Charset;
use tarsy_core::timeline::live::{Live, LiveAnswer};
use tarsy_core::timeline::rows::{Row, Rows};
use tarsy_core::timeline::{Delta, DeltaKind, EventType, TimelineEvent};

/// Characters of an unfinished text that a page shows: its end.
const MAX_TEXT: usize = 400;

/// A page of a running session, as far as its reader has it.
#[derive(Debug)]
pub(crate) struct LivePage {
    session: SessionId,
    rows: Rows,
    live: Live,
    context: Option<Context>,
    agents: BTreeSet<String>,
    /// The calls without a result.
    open: HashMap<u32, OpenCall>,
}

#[derive(Debug)]
struct OpenCall {
    event: TimelineEvent,
    row: Row,
}

impl LivePage {
    /// A page without rows.
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            rows: Rows::new(Charset::Unicode),
            live: Live::default(),
            context: None,
            agents: BTreeSet::new(),
            open: HashMap::new(),
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Takes an event that the page has already.
    pub(crate) fn pass(&mut self, event: &TimelineEvent) {
        self.live.event(event);
        self.context(event);
        let row = self.rows.row(event);
        self.keep_call(event, row);
    }

    /// The rows that an event changes: its own, or that of its call; and the unfinished answers, which the page drops
    /// with every event.
    pub(crate) fn event(&mut self, event: &TimelineEvent) -> Markup {
        // The next worker requests the unfinished answers again.
        let superseded: Vec<Markup> = if event.event_type == EventType::SessionResumed {
            let answers = self.live.answers().iter();
            answers.map(|answer| self.gone(answer)).collect()
        } else {
            Vec::new()
        };
        self.live.event(event);
        let context = self.context(event);
        let row = self.rows.row(event);
        let answered = self.take_call(event, &row);
        let call = answered.as_ref().map(|call| AnsweredCall {
            event: &call.event,
            row: call.row.clone(),
        });
        let step = Step {
            event,
            row: row.clone(),
            call,
            is_cited: false,
            branch: steps::Branch::default(),
        };
        let shown = html! {
            (steps::step(&step, &context))
            @for answer in &superseded { (answer) }
            @for answer in self.live.answers() { (self.unfinished(answer)) }
            span.cnt #count { (event.session_seq) }
        };
        self.keep_call(event, row);
        shown
    }

    /// The call of a result.
    fn take_call(&mut self, event: &TimelineEvent, row: &Row) -> Option<OpenCall> {
        if event.event_type != EventType::ToolResult {
            return None;
        }
        self.open.remove(&row.call?)
    }

    /// Keeps a call until its result comes.
    fn keep_call(&mut self, event: &TimelineEvent, row: Row) {
        if steps::is_call(event) {
            let event = event.clone();
            self.open.insert(event.session_seq, OpenCall { event, row });
        } else {
            self.take_call(event, &row);
        }
    }

    /// The row of the answer that a delta belongs to, before it those that it supersedes; `None` for an outdated delta.
    pub(crate) fn delta(&mut self, delta: &Delta) -> Option<Markup> {
        let superseded: Vec<Markup> = self
            .live
            .superseded_by(delta)
            .map(|answer| self.gone(answer))
            .collect();
        let is_new = self.live.delta(delta);
        self.agents.extend(delta.agent.clone());
        if !is_new {
            return None;
        }
        let answer = self.live.answers().last()?;
        Some(html! { @for answer in &superseded { (answer) } (self.unfinished(answer)) })
    }

    fn context(&mut self, event: &TimelineEvent) -> Context {
        self.agents.extend(event.agent.clone());
        self.agents
            .extend(steps::named_agents(event).map(str::to_owned));
        let agents = self.shown_agents();
        let context = self
            .context
            .get_or_insert_with(|| Context::new(self.session, std::slice::from_ref(event)));
        context.last_event = event.session_seq;
        context.agents = agents;
        *context
    }

    fn shown_agents(&self) -> Agents {
        if self.agents.len() > 1 {
            Agents::Several
        } else {
            Agents::One
        }
    }

    fn unfinished(&self, answer: &LiveAnswer) -> Markup {
        // About four bytes are a token.
        let tokens = format::tokens((answer.bytes() / 4).max(1));
        self.row(answer, "", &format!("{tokens} tok"))
    }

    /// An answer that is requested again, struck out until the next event.
    fn gone(&self, answer: &LiveAnswer) -> Markup {
        let mark = format!("try {}, cut off", answer.attempt());
        self.row(answer, " gone", &mark)
    }

    fn row(&self, answer: &LiveAnswer, class: &'static str, mark: &str) -> Markup {
        // Each attempt has its own row.
        let id = format!(
            "w-{}-{}-{}",
            answer.execution.0.simple(),
            answer.epoch,
            answer.attempt()
        );
        let (word, text) = match answer.kind {
            DeltaKind::Thinking => ("thinking", end_of(answer.text())),
            DeltaKind::Text => ("writing", end_of(answer.text())),
            DeltaKind::Raw => ("writing", String::new()),
        };
        let agent = self.live.agent(answer.execution).unwrap_or_default();
        html! {
            // Screen readers get the step when it is over.
            li class={ "r think live" (class) } id=(id) aria-hidden="true" {
                div.s {
                    span {} i.ic { "∴" }
                    @if self.shown_agents() == Agents::Several { span.ag { (brief(agent, 40)) } }
                    b.w { (word) } span.d { (text) }
                    span.mk { span.m { (mark) } } span.tk {}
                }
            }
        }
    }
}

/// The end of a text in one line.
fn end_of(text: &str) -> String {
    let characters = text.chars().count();
    let tail: String = text
        .chars()
        .skip(characters.saturating_sub(MAX_TEXT))
        .collect();
    let line = brief(&tail, MAX_TEXT);
    if characters > MAX_TEXT {
        format!("…{line}")
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data::story;
    use crate::testing::markup::{check, texts};
    use tarsy_core::ids::ExecutionId;

    fn delta(epoch: u32, attempt: u32, text: &str) -> Delta {
        let event = &story()[3];
        Delta {
            session_id: event.session_id,
            execution_id: event.execution_id.unwrap(),
            agent: Some("sre".to_owned()),
            epoch,
            iteration: 7,
            attempt,
            kind: DeltaKind::Text,
            offset: 0,
            delta: text.to_owned(),
        }
    }

    /// The class and the words of each row in a piece of a page.
    fn rows(markup: Option<Markup>) -> Vec<(String, String)> {
        let html = markup.map(Markup::into_string).unwrap_or_default();
        assert_eq!(check(&html).err(), None, "{html}");
        let rows = html
            .split("<span class=\"cnt\"")
            .next()
            .unwrap()
            .split("<li class=\"")
            .skip(1);
        rows.map(|row| {
            let (class, rest) = row.split_once('"').unwrap();
            (
                class.to_owned(),
                texts(&format!("<li {rest}")).trim().to_owned(),
            )
        })
        .collect()
    }

    fn shown(class: &str, words: &str) -> (String, String) {
        (class.to_owned(), words.to_owned())
    }

    fn page() -> LivePage {
        let story = story();
        let mut page = LivePage::new(story[0].session_id);
        story[..4].iter().for_each(|event| page.pass(event));
        page
    }

    #[test]
    fn a_delta_is_the_row_of_its_answer_and_an_outdated_one_is_none() {
        let mut page = page();
        let writing = |words: &str| vec![shown("r think live", &format!("∴ writing {words} tok"))];
        assert_eq!(rows(page.delta(&delta(1, 1, "The h"))), writing("The h 1"));
        assert_eq!(
            rows(page.delta(&Delta {
                offset: 5,
                ..delta(1, 1, "eap")
            })),
            writing("The heap 2")
        );
        assert_eq!(
            rows(page.delta(&Delta {
                iteration: 6,
                ..delta(1, 1, "old")
            })),
            []
        );
        let long = "x".repeat(1_000);
        let row = rows(page.delta(&delta(1, 1, &long))).remove(0).1;
        assert!(
            row.contains("writing …") && row.ends_with("0.3 k tok") && row.len() < 450,
            "{row}"
        );
    }

    #[test]
    fn another_attempt_of_a_model_call_strikes_out_the_first_one() {
        let mut page = page();
        page.delta(&delta(1, 1, "The heap"));
        let again = rows(page.delta(&delta(1, 2, "The limit")));
        let gone = shown("r think live gone", "∴ writing The heap try 1, cut off");
        assert_eq!(
            again,
            [gone, shown("r think live", "∴ writing The limit 2 tok")]
        );
        let more = rows(page.delta(&Delta {
            offset: 9,
            ..delta(1, 2, " is low")
        }));
        assert_eq!(
            more,
            [shown("r think live", "∴ writing The limit is low 4 tok")],
            "struck out once"
        );
        assert_eq!(
            rows(page.delta(&Delta {
                offset: 8,
                ..delta(1, 1, "late")
            })),
            []
        );
    }

    #[test]
    fn a_takeover_strikes_out_what_was_being_written_until_the_next_event() {
        let mut page = page();
        page.delta(&delta(1, 1, "The heap"));
        let story = story();
        let resumed = story
            .iter()
            .find(|event| event.event_type == EventType::SessionResumed)
            .unwrap();
        let at_takeover = rows(Some(page.event(resumed)));
        assert_eq!(
            at_takeover.last().unwrap(),
            &shown("r think live gone", "∴ writing The heap try 1, cut off")
        );
        let next = rows(Some(page.event(&story[9])));
        assert!(
            next.iter().all(|(class, _)| !class.contains("live")),
            "{next:?}"
        );
        // A delta of the new owner may precede the event of its takeover.
        let mut page = self::page();
        page.delta(&delta(1, 1, "The heap"));
        assert_eq!(rows(page.delta(&delta(2, 1, "Again"))).len(), 2);
    }

    #[test]
    fn each_of_several_writing_agents_is_named() {
        let mut page = page();
        let parallel = |agent: Option<&str>, number: u128| Delta {
            agent: agent.map(str::to_owned),
            execution_id: ExecutionId(uuid::Uuid::from_u128(number)),
            ..delta(1, 1, "The heap")
        };
        let first = rows(page.delta(&parallel(Some("runtime"), 1)));
        assert_eq!(
            first,
            [shown("r think live", "∴ runtime writing The heap 2 tok")],
            "one of the page has begun"
        );
        let second = rows(page.delta(&parallel(Some("changes"), 2)));
        assert_eq!(
            second,
            [shown("r think live", "∴ changes writing The heap 2 tok")]
        );
        // A worker of an older version names no agent: its event does.
        let mut page = self::page();
        page.delta(&parallel(Some("runtime"), 1));
        let mut event = story()[3].clone();
        (event.session_seq, event.agent) = (5, Some("changes".to_owned()));
        (event.execution_id, event.iteration) =
            (Some(ExecutionId(uuid::Uuid::from_u128(2))), Some(1));
        let both = rows(Some(page.event(&event)));
        assert_eq!(
            both.last(),
            Some(&shown("r think live", "∴ runtime writing The heap 2 tok"))
        );
        let older = rows(page.delta(&parallel(None, 2)));
        assert_eq!(
            older,
            [shown("r think live", "∴ changes writing The heap 2 tok")]
        );
    }
}
