//! A message of a request. Results are folded, everything else is open.

use maud::{Markup, html};

use crate::shell::words::{brief, whole};
use tarsy_core::execution::entry::Role;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_reports::calls::{MessageReport, RequestedCall, message_title, own_form};

/// Bytes of a text in the page. Results are shorter; an alert may be longer.
const MAX_TEXT: usize = 256 * 1024;

pub(super) fn message(id: SessionId, message: &MessageReport) -> Markup {
    let is_result = message.event.is_some() || message.role == Role::Tool;
    let class = match message.role {
        Role::Assistant => "m said",
        Role::System | Role::User | Role::Tool => "m",
    };
    html! {
        details class=(class) id={ "m" (message.number) } open[!is_result] {
            summary {
                span.n { (message.number) } " " b { (brief(&message_title(message), 160)) } " "
                span { (format::bytes(message.content.len())) }
            }
            @if !message.content.is_empty() { (text(&message.content)) }
            (calls(&message.tool_calls))
            @if let Some(own) = &message.own_form { p.note { (brief(&own_form(own), 200)) } }
            @if let Some(event) = message.event {
                p.acts { a href={ "/sessions/" (id) "/events/" (event) } { "Event " (event) } }
            }
        }
    }
}

/// Calls with their arguments.
pub(super) fn calls(calls: &[RequestedCall]) -> Markup {
    html! {
        @for call in calls {
            p.note { "calls " b { (brief(&call.tool, 160)) } " " code { (brief(&call.id, 80)) } }
            (text(&call.arguments))
        }
    }
}

/// A text as it is, up to a size that a browser shows.
pub(super) fn text(text: &str) -> Markup {
    let shown = text
        .get(..text.floor_char_boundary(MAX_TEXT))
        .unwrap_or_default();
    let hidden = text.len() - shown.len();
    html! {
        pre tabindex="0" { (whole(shown)) }
        @if hidden > 0 { p.note { (format::bytes(hidden)) " more: the JSON of this call has the whole text." } }
    }
}
