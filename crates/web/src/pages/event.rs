//! The page of one event with its whole content. It needs no script; the script loads its body into the page of the
//! session.

use maud::{Markup, html};

use super::steps::{Context, json, whole_event};
use crate::shell::words::{brief, moment};
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::Charset;
use tarsy_core::timeline::TimelineEvent;
use tarsy_core::timeline::rows::single;

/// The body of an event.
pub(crate) fn body(id: SessionId, event: &TimelineEvent) -> Markup {
    whole_event(event, &single(event, Charset::Unicode), &context(id, event))
}

/// The page of an event, below its bar.
pub(crate) fn event(id: SessionId, event: &TimelineEvent) -> Markup {
    let row = single(event, Charset::Unicode);
    let number = event.session_seq;
    html! {
        div.head {
            p.crumb {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" }
                a href={ "/sessions/" (id) } { (id.short()) } span aria-hidden="true" { "/" } span.id { (number) }
            }
            h1 { b { (brief(&row.name, 120)) } " " span { "event " (number) } }
            p.meta {
                span { (moment(event.created_at)) }
                @if let Some(agent) = &event.agent { span { "agent " (brief(agent, 60)) } }
                @if let Some(iteration) = event.iteration { span { "iteration " (iteration) } }
            }
        }
        p.tools {
            a href={ "/sessions/" (id) "#" (number) } { "In its timeline" }
            (json(id, number))
            @if number > 1 { a href={ "/sessions/" (id) "/events/" (number - 1) } rel="prev" { "Event " (number - 1) } }
            @if !event.event_type.is_end() { a href={ "/sessions/" (id) "/events/" (number + 1) } rel="next" { "Event " (number + 1) } }
        }
        h2.vh { "Content" }
        div.b.alone { (whole_event(event, &row, &context(id, event))) }
    }
}

fn context(id: SessionId, event: &TimelineEvent) -> Context {
    // Its citations lead to the numbers of another page, so they are text here.
    Context {
        last_event: 0,
        started_at: None,
        ..Context::new(id, std::slice::from_ref(event))
    }
}
