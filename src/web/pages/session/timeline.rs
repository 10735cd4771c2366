//! The timeline of a session: views, lanes, rows.

use maud::{Markup, html};

use super::lanes::lanes;
use super::{Events, Session};
use crate::investigation::readable::text::short_id;
use crate::web::pages::steps::{self, Agents, Context, Part, Step, View, cited_events};

/// The section below the answer.
pub(in crate::web) fn timeline(page: &Session<'_>, events: &Events<'_>) -> Markup {
    let cited = cited_events(page.report.session.as_ref());
    let shown = steps::steps(events.events, &cited, events.view);
    let context = Context::new(page.report.alert_id, events.events);
    let is_whole = events.view == View::Steps && events.from <= 1 && events.to == u32::MAX;
    let is_long = shown.len() > 400;
    let rows = if is_whole { folded_rows(&shown, &context) } else { range_rows(&shown, events, &context) };
    let errors = shown.iter().filter(|step| step.is_error()).count();
    html! {
        section.tl #timeline aria-labelledby="h-t" {
            div.tlh {
                h2 #h-t { "Timeline " span.cnt #count { (events.events.len()) } }
                (views(page, events.view, cited.len(), if events.view == View::Steps { Some(errors) } else { None }))
            }
            (lanes(events.events, &cited, page.now))
            @if !is_whole { p.note { (range_note(page, events, &shown)) } }
            // Screen readers hear a step when it is over.
            div role="log" aria-label="Steps" aria-live=(if page.is_open() { "polite" } else { "off" }) {
                ol class={ "rows" @if context.agents == Agents::Several { " multi" } @if is_long { " long" } }
                    #rows data-last=(context.last_event) {
                    (rows)
                }
            }
            @if events.events.is_empty() { p.muted { "No event yet." } }
            p.new hidden { a href="#rows" { "New rows" } }
        }
    }
}

fn views(page: &Session<'_>, current: View, cited: usize, errors: Option<usize>) -> Markup {
    let id = page.report.alert_id;
    let view = |view: View, name: &str, count: Option<usize>| {
        let query = if view == View::Steps { String::new() } else { format!("?view={}", view.word()) };
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
    html! {
        @match events.view {
            View::Cited if shown.is_empty() => "No result is cited. ",
            View::Errors if shown.is_empty() => "No step went wrong. ",
            View::Cited => "The results that the analysis cites. ",
            View::Errors => "The steps that went wrong. ",
            View::All => "Every event by itself. ",
            View::Steps => {},
        }
        @if events.from > 1 || events.to < u32::MAX { "Events " (events.from) " to " (events.to.min(last(events))) " of " (short_id(&id.to_string())) ". " }
        a href={ "/sessions/" (id) "#timeline" } { "Show all steps" }
    }
}

fn last(events: &Events<'_>) -> u32 {
    events.events.last().map_or(0, |event| event.session_seq)
}

fn folded_rows(shown: &[Step<'_>], context: &Context) -> Markup {
    html! {
        @for part in steps::fold(shown) {
            @match part {
                Part::Step(step, bodies) => (steps::step(step, &Context { bodies, ..*context })),
                Part::Folded(range) => (steps::folded(&range, context)),
            }
        }
    }
}

fn range_rows(shown: &[Step<'_>], events: &Events<'_>, context: &Context) -> Markup {
    let is_in = |step: &&Step<'_>| step.event.session_seq >= events.from && step.first() <= events.to;
    html! { @for step in shown.iter().filter(is_in) { (steps::step(step, context)) } }
}

/// The rows of a range by themselves, which the script puts into the place of a folded one.
pub(in crate::web) fn range(page: &Session<'_>, events: &Events<'_>) -> Markup {
    let cited = cited_events(page.report.session.as_ref());
    let shown = steps::steps(events.events, &cited, View::Steps);
    let context = Context::new(page.report.alert_id, events.events);
    // A cited step is in the page already.
    let is_in = |step: &&Step<'_>| !step.is_cited && step.event.session_seq >= events.from && step.first() <= events.to;
    html! { @for step in shown.iter().filter(is_in) { (steps::step(step, &context)) } }
}
