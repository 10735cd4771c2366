//! The page of one model call: the messages of its request, the tools, and the model's answer.

use maud::{Markup, html};

use super::message::{calls, message, text};
use crate::shell::words::{brief, moment, plain};
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_reports::calls::{
    AnswerReport, CallReport, RequestReport, ToolReport, own_form, purpose,
};
use tarsy_reports::words::tokens;

/// The page of a call, below its bar.
pub(crate) fn call(id: SessionId, report: &CallReport) -> Markup {
    let call = &report.call.call;
    html! {
        div.head {
            p.crumb {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" }
                a href={ "/sessions/" (id) } { (id.short()) } span aria-hidden="true" { "/" }
                a href={ "/sessions/" (id) "/calls" } { "calls" } span aria-hidden="true" { "/" } span.id { (report.call.number) }
            }
            h1 { b { "Call " (report.call.number) } " " span { (brief(&call.agent, 60)) ", " (brief(&purpose(&report.call), 60)) } }
            p.meta {
                span { (moment(call.at)) } span { (brief(&call.provider, 60)) " " (brief(&call.model, 80)) }
                span { "took " (format::took(call.duration_ms)) }
                @if let Some(usage) = call.usage { span { (tokens(usage)) } }
            }
        }
        (ways(id, report))
        @if let Some(error) = &call.error { (failure(error, call.response.as_ref().and_then(|said| said["code"].as_str()))) }
        @match (&report.request, &report.not_rebuilt) {
            (Some(request), _) => (of_request(id, report.call.number, request)),
            (None, reason) => p.banner { "The request cannot be made again: " (brief(reason.as_deref().unwrap_or("unknown"), 400)) "." },
        }
        @if let Some(answer) = &report.answer { (of_answer(answer)) }
        @if let Some(summary) = &report.summary { section.ms { h2 { "Summary" } div.m { (text(summary)) } } }
    }
}

fn ways(id: SessionId, report: &CallReport) -> Markup {
    let number = report.call.number;
    html! {
        p.tools {
            @if number > 1 { a href={ "/sessions/" (id) "/calls/" (number - 1) } rel="prev" { "Call " (number - 1) } }
            @if number < report.calls { a href={ "/sessions/" (id) "/calls/" (number + 1) } rel="next" { "Call " (number + 1) } }
            a href={ "/api/v1/sessions/" (id) "/calls/" (number) } { "JSON" }
            span.cli { code { "tarsy sessions show " (id.short()) " --prompt " (number) } }
        }
    }
}

/// The error, with the code of the LLM service if it does not name it.
fn failure(error: &str, code: Option<&str>) -> Markup {
    let code = code.filter(|code| !error.contains(*code));
    html! {
        section.ms {
            h2 { "Error" }
            @if let Some(code) = code { p.err { (brief(&plain(code), 60)) } }
            div.m.bad { (text(error)) }
        }
    }
}

fn of_request(id: SessionId, number: u32, request: &RequestReport) -> Markup {
    let address = |from: usize| format!("/sessions/{id}/calls/{number}?from={from}");
    let blanked = request
        .messages
        .iter()
        .filter(|message| message.is_blanked)
        .count();
    let first = request.messages.first().map(|message| message.number);
    let last = request.messages.last().map(|message| message.number);
    let range = first.zip(last);
    let part = range.filter(|(first, last)| last - first + 1 < request.message_count);
    html! {
        section.ms {
            h2 { "Messages " span.cnt { (request.message_count) } }
            @if blanked > 0 {
                p.note { (format::count(blanked, "result")) " here removed to save space: a note stands in the place of each." }
            }
            @if let Some((first, last)) = part { p.note { "Messages " (first) " to " (last) " of " (request.message_count) "." } }
            @for each in &request.messages { (message(id, each)) }
            p.tools {
                @if let Some((first, _)) = range.filter(|(first, _)| *first > 1) {
                    a href=(address(first.saturating_sub(100).max(1))) rel="prev" { "Messages before" }
                }
                @if let Some(next) = request.next { a href=(address(next)) rel="next" { "Messages from " (next) } }
            }
        }
        section.ms {
            h2 { "Tools " span.cnt { (request.tools.len()) } }
            @if request.tools.is_empty() { p.note { "The model could call nothing." } }
            @if request.declared_tools > 0 {
                p.note { (request.declared_tools) " tools of earlier requests were declared." }
            }
            @for each in &request.tools { (tool(each)) }
            @if !request.native_tools.is_empty() { p.note { "Tools of the provider: " (request.native_tools.join(", ")) } }
        }
    }
}

fn tool(tool: &ToolReport) -> Markup {
    let schema = match tool.parameters_schema.as_str() {
        Some(text) => text.to_owned(),
        None => serde_json::to_string_pretty(&tool.parameters_schema).unwrap_or_default(),
    };
    html! {
        details.m {
            summary { b { (brief(&tool.name, 120)) } " " span { (brief(&tool.description, 160)) } }
            @if !tool.description.is_empty() { (text(&tool.description)) }
            (text(&schema))
        }
    }
}

fn of_answer(answer: &AnswerReport) -> Markup {
    html! {
        section.ms {
            h2 { "Answer" }
            p.note { "Ended by " (plain(answer.finish.as_str())) "." }
            @if !answer.thinking.is_empty() {
                details.m { summary { b { "Reasoning" } " " span { (format::bytes(answer.thinking.len())) } } (text(&answer.thinking)) }
            }
            @if !answer.text.is_empty() { div.m { (text(&answer.text)) } }
            (calls(&answer.tool_calls))
            @if let Some(own) = &answer.own_form { p.note { (brief(&own_form(own), 200)) } }
        }
    }
}
