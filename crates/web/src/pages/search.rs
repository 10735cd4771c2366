//! The page of a search in the timeline of one session, and the form that leads to it.

use maud::{Markup, html};

use crate::shell::words::{brief, moment, whole};
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_core::readable::text::Charset;
use tarsy_core::search::MAX_LITERAL_BYTES;
use tarsy_core::timeline::rows::single;
use tarsy_reports::{FoundEvent, FoundEvents, Match, Place};

/// The content of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    pub id: SessionId,
    /// The number of the last event of the session.
    pub last: u32,
    /// The text as it was typed.
    pub text: &'a str,
    /// The events after this number are searched.
    pub after: u32,
    /// The reason why the text is not searched.
    pub problem: Option<&'a str>,
    /// `None` without a text.
    pub found: Option<&'a FoundEvents>,
}

/// The form. It needs no script.
pub(crate) fn form(id: SessionId, text: &str) -> Markup {
    html! {
        form.flt role="search" aria-label="This session" action={ "/sessions/" (id) "/search" } {
            label.vh for="find" { "Search in this session" }
            input #find name="q" type="search" value=(brief(text, MAX_LITERAL_BYTES)) maxlength=(MAX_LITERAL_BYTES)
                autocomplete="off" placeholder="Search in this session";
            button { "Find" }
        }
    }
}

/// The page below its bar.
pub(crate) fn search(page: &Search<'_>) -> Markup {
    let id = page.id;
    html! {
        div.head {
            p.crumb {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" }
                a href={ "/sessions/" (id) } { (id.short()) } span aria-hidden="true" { "/" } span.id { "search" }
            }
            h1 { "Search in this session" }
        }
        div.tlh { (form(id, page.text)) }
        @if let Some(problem) = page.problem { p.banner { (brief(problem, 300)) } }
        @match page.found {
            Some(found) => { (results(page, found)) }
            None => p.note {
                "Finds a text as it is, in any case, in the contents of events and in the stored results of tool calls."
            }
        }
    }
}

fn results(page: &Search<'_>, found: &FoundEvents) -> Markup {
    let continued = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("q", page.text)
        .append_pair("after", &found.searched_to.to_string())
        .finish();
    html! {
        h2 { (format::count(found.events.len(), "event")) " with “" (brief(page.text, MAX_LITERAL_BYTES)) "”" }
        p.note #searched {
            @if page.after > 0 { "From event " (page.after.saturating_add(1)) " on. " }
            @if found.is_complete {
                "All stored events up to " (found.searched_to) " were searched."
            } @else {
                "Searched up to event " (found.searched_to) " of " (page.last.max(found.searched_to)) ". "
                a href={ "/sessions/" (page.id) "/search?" (continued) } rel="next" { "Continue after it" }
            }
        }
        @if !found.events.is_empty() {
            ol.hits { @for each in &found.events { (hit(page.id, each)) } }
        }
    }
}

fn hit(id: SessionId, each: &FoundEvent) -> Markup {
    let FoundEvent { event, found } = each;
    let number = found.event;
    let row = single(event, Charset::Unicode);
    html! {
        li {
            p {
                a href={ "/s/" (id) "/" (number) } { b { (number) } " " (brief(&row.name, 120)) }
                @if let Some(agent) = &event.agent { span { (brief(agent, 60)) } }
                span { (moment(event.created_at)) }
                @match found.place {
                    Place::Content => {}
                    Place::Result => { span { "in the stored result" } }
                }
            }
            (excerpt(found))
        }
    }
}

fn excerpt(found: &Match) -> Markup {
    html! {
        p.x {
            @if found.cut_before { "…" }
            @for piece in &found.excerpt {
                @if piece.is_match { mark { (whole(&piece.text)) } } @else { (whole(&piece.text)) }
            }
            @if found.cut_after { "…" }
        }
    }
}
