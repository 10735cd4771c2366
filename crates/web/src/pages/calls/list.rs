//! The model calls of a session, in order.

use maud::{Markup, html};

use crate::shell::words::brief;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_reports::calls::{NumberedCall, purpose};

/// The page of the calls, below its bar.
pub(crate) fn list(id: SessionId, calls: &[NumberedCall]) -> Markup {
    html! {
        div.head {
            p.crumb {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" }
                a href={ "/sessions/" (id) } { (id.short()) } span aria-hidden="true" { "/" } span.id { "calls" }
            }
            h1 { b { "What the model saw" } " " span { (format::count(calls.len(), "model call")) } }
        }
        p.tools { a href={ "/api/v1/sessions/" (id) "/calls" } { "JSON" } }
        @if calls.is_empty() {
            p.empty { "No model call is stored: none has ended yet, or they are deleted." }
        } @else {
            h2.vh { "Calls" }
            div.scroll tabindex="0" role="group" aria-label="Model calls" { table {
                thead { tr {
                    th.num scope="col" { "call" } th scope="col" { "agent" } th scope="col" { "purpose" }
                    th scope="col" { "model" } th.num scope="col" { "in" } th.num scope="col" { "cached" }
                    th.num scope="col" { "out" } th.num scope="col" { "took" } th scope="col" { "error" }
                } }
                tbody { @for each in calls { (row(id, each)) } }
            } }
        }
    }
}

fn row(id: SessionId, each: &NumberedCall) -> Markup {
    let call = &each.call;
    let tokens = |of: fn(&tarsy_reports::Tokens) -> i64| {
        call.usage.as_ref().map(|usage| format::tokens(of(usage)))
    };
    let error = call
        .error
        .as_deref()
        .map(|error| brief(error, 200))
        .unwrap_or_default();
    html! {
        tr {
            td.num { a href={ "/sessions/" (id) "/calls/" (each.number) } { (each.number) } }
            td { (brief(&call.agent, 60)) } td { (brief(&purpose(each), 60)) }
            td { (brief(&call.provider, 60)) " " (brief(&call.model, 80)) }
            td.num { (tokens(|usage| usage.input).unwrap_or_default()) }
            td.num { (tokens(|usage| usage.cached).unwrap_or_default()) }
            td.num { (tokens(|usage| usage.output).unwrap_or_default()) }
            td.num { (format::took(call.duration_ms)) }
            td.text.err { (error) }
        }
    }
}
