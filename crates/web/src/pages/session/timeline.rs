//! The timeline of a session: views, lanes, rows.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::lanes::lanes;
use super::{Events, Session, Span, last_event};
use crate::pages::search;
use crate::pages::steps::{self, Agents, Context, Part, Step, View, cited_events};
use crate::rendering::is_over;
use tarsy_core::readable::text::short_id;

/// A longer list of rows is drawn as far as it is in the window.
const MANY_ROWS: usize = 400;

/// The section below the answer.
pub(crate) fn timeline(page: &Session<'_>, events: &Events<'_>) -> Markup {
    let cited = cited_events(page.report);
    let shown = steps_of(events, &cited);
    let context = context(page, events);
    // Other views do not have all steps, and a tab without a number is better than a wrong one.
    let errors = events
        .is_whole()
        .then(|| shown.iter().filter(|step| step.is_error()).count());
    let last = events.events.last().map_or(0, |event| event.session_seq);
    html! {
        section.tl #timeline aria-labelledby="h-t" {
            div.tlh {
                h2 #h-t { "Timeline " span.cnt #count { (last.max(last_event(page.report.session.as_ref()))) } }
                (views(page, events.view, cited.len(), errors))
                @if page.report.session.is_some() { (search::form(page.report.alert_id, "")) }
            }
            @if events.span.is_none() { (lanes(events.events, &cited, page.now)) }
            @if !events.is_whole() { p.note { (range_note(page, events, &shown)) } }
            // Screen readers hear a step when it is over.
            div role="log" aria-label="Steps" aria-live=(if page.is_open() { "polite" } else { "off" }) {
                ol class={ "rows" @if context.agents == Agents::Several { " multi" } @if shown.len() > MANY_ROWS { " long" } }
                    #rows data-last=(last) {
                    (rows(&shown, events, &context))
                }
            }
            @if events.events.is_empty() { p.muted { "No event yet." } }
            (further(page, events, last))
            p.new hidden { a href="#timeline" {} }
        }
    }
}

/// The events that one page has no room for.
fn further(page: &Session<'_>, events: &Events<'_>, last: u32) -> Markup {
    let all = last_event(page.report.session.as_ref());
    let is_cut = events.span.is_none() && !page.is_open() && last < all;
    html! {
        @if is_cut {
            p.note { "This page has the events up to " (last) ". "
                a href={ "/sessions/" (page.report.alert_id) "?from=" (last + 1) } { "Show those after it" } }
        }
    }
}

fn context(page: &Session<'_>, events: &Events<'_>) -> Context {
    let context = Context::new(page.report.alert_id, events.events);
    let session = page.report.session.as_ref();
    let agents: BTreeSet<&str> = session
        .into_iter()
        .flat_map(|session| &session.stages)
        .flat_map(|stage| &stage.executions)
        .map(|execution| execution.agent.as_str())
        .collect();
    // A range may have events of one agent alone.
    let has_several = events.span.is_some() && agents.len() > 1;
    Context {
        parent: page.report.parent_id,
        view: events.view,
        agents: if has_several {
            Agents::Several
        } else {
            context.agents
        },
        last_event: context.last_event.max(last_event(session)),
        ..context
    }
}

/// The steps that are shown.
fn steps_of<'e>(events: &Events<'e>, cited: &BTreeSet<u32>) -> Vec<Step<'e>> {
    let mut shown = steps::steps(events.events, cited, events.view);
    if let Some(Span { from, to }) = events.span {
        shown.retain(|step| step.event.session_seq >= from && step.first() <= to);
    }
    shown
}

fn views(page: &Session<'_>, current: View, cited: usize, errors: Option<usize>) -> Markup {
    let id = page.report.alert_id;
    let view = |view: View, name: &str, count: Option<usize>| {
        let query = if view == View::Steps {
            String::new()
        } else {
            format!("?view={}", view.word())
        };
        html! {
            a aria-current=[(view == current).then_some("true")] href={ "/sessions/" (id) (query) "#timeline" } {
                (name) @if let Some(count) = count { " " span { (count) } }
            }
        }
    };
    html! {
        nav.seg aria-label="Rows" {
            (view(View::Steps, "Steps", None))
            (view(View::Cited, "Cited", Some(cited)))
            (view(View::Errors, "Errors", errors))
            (view(View::All, "Every event", None))
        }
    }
}

fn range_note(page: &Session<'_>, events: &Events<'_>, shown: &[Step<'_>]) -> Markup {
    let id = page.report.alert_id;
    let last = last_event(page.report.session.as_ref());
    html! {
        @match events.view {
            View::Cited if shown.is_empty() => "No result is cited. ",
            View::Errors if shown.is_empty() => "No step went wrong. ",
            View::Cited => "The results that the analysis cites. ",
            View::Errors => "The steps that went wrong. ",
            View::All => "Every event by itself. ",
            View::Steps => {},
        }
        @if let Some(Span { from, to }) = events.span { "Events " (from) " to " (to.min(last)) " of " (short_id(&id.to_string())) ". " }
        a href={ "/sessions/" (id) "#timeline" } { "Show all steps" }
    }
}

fn rows(shown: &[Step<'_>], events: &Events<'_>, context: &Context) -> Markup {
    html! {
        @for part in steps::fold(shown, events.cut).into_iter().take_while(|_| !is_over()) {
            @match part {
                Part::Step(step, bodies) => (steps::step(step, &Context { bodies, ..*context })),
                Part::Folded(range) => (steps::folded(&range, context)),
            }
        }
    }
}

/// The rows of a range by themselves, which the script puts into the place of a folded one.
pub(crate) fn range(page: &Session<'_>, events: &Events<'_>) -> Markup {
    let mut shown = steps_of(events, &cited_events(page.report));
    // A cited step is in the page already.
    shown.retain(|step| !step.is_cited);
    rows(&shown, events, &context(page, events))
}
