//! `sessions show --prompt`: a model call as text. The lines of every text are indented, so none of them passes for a
//! heading.

use super::format;
use super::style::{Paint, Style};
use super::text;
use tarsy_reports::calls::{
    AnswerReport, CallReport, MessageReport, OwnForm, RequestReport, RequestedCall, call_title,
    message_title, own_form,
};
use tarsy_reports::words::{moment, tokens};

/// The call: its measures, the messages, the tools, and what came of it.
pub fn call(report: &CallReport, style: &Style) -> Vec<String> {
    let stored = &report.call.call;
    let title = format!(
        "{} ({} of {})",
        call_title(&report.call),
        report.call.number,
        report.calls
    );
    let model = format!("{} {}", stored.provider, stored.model);
    let usage = stored
        .usage
        .map(|usage| format!(", {}", tokens(usage)))
        .unwrap_or_default();
    let measures = format!(
        "{}, took {}{usage}",
        moment(stored.at),
        format::took(stored.duration_ms)
    );
    let mut lines = vec![heading(&title, style)];
    for fact in [model, measures] {
        lines.push(format!("  {}", text::one_line(&fact, style.charset)));
    }
    match (&report.request, &report.not_rebuilt) {
        (Some(request), _) => lines.extend(of_request(request, style)),
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or("unknown");
            let text = format!("cannot be made again: {reason}");
            lines.extend(part("request", &text, style));
        }
    }
    if let Some(answer) = &report.answer {
        lines.extend(of_answer(answer, style));
    }
    if let Some(summary) = &report.summary {
        lines.extend(part("summary", summary, style));
    }
    if let Some(error) = &stored.error {
        lines.extend(part("error", error, style));
    }
    lines
}

fn heading(title: &str, style: &Style) -> String {
    Paint::Bold.over(&text::one_line(title, style.charset), style)
}

/// A heading with an indented text below it.
fn part(title: &str, body: &str, style: &Style) -> Vec<String> {
    let mut lines = vec![String::new(), heading(title, style)];
    lines.extend(indented(body, style));
    lines
}

fn indented(body: &str, style: &Style) -> Vec<String> {
    text::clean(body, style.charset)
        .lines()
        .map(|line| format!("    {line}").trim_end().to_owned())
        .collect()
}

fn of_request(request: &RequestReport, style: &Style) -> Vec<String> {
    let mut lines: Vec<String> = request
        .messages
        .iter()
        .flat_map(|message| of_message(message, style))
        .collect();
    for tool in &request.tools {
        let title = format!("may call {}", tool.name);
        lines.extend(part(&title, &tool.description, style));
        let schema = &tool.parameters_schema;
        let schema = schema
            .as_str()
            .map_or_else(|| schema.to_string(), str::to_owned);
        lines.extend(indented(&schema, style));
    }
    if request.tools.is_empty() {
        lines.extend(part("tools", "none", style));
    }
    if request.declared_tools > 0 {
        let declared = format!("{} of earlier requests", request.declared_tools);
        lines.extend(part("tools that could not be called", &declared, style));
    }
    if !request.native_tools.is_empty() {
        let tools = request.native_tools.join(", ");
        lines.extend(part("tools of the provider", &tools, style));
    }
    lines
}

fn of_message(message: &MessageReport, style: &Style) -> Vec<String> {
    let title = format!("{} {}", message.number, message_title(message));
    let mut lines = part(&title, &message.content, style);
    lines.extend(calls(&message.tool_calls, message.own_form.as_ref(), style));
    lines
}

fn of_answer(answer: &AnswerReport, style: &Style) -> Vec<String> {
    let title = format!("answer, ended by {}", answer.finish.as_str());
    let mut lines = part(&title, &answer.text, style);
    lines.extend(calls(&answer.tool_calls, answer.own_form.as_ref(), style));
    if !answer.thinking.is_empty() {
        lines.extend(part("reasoning", &answer.thinking, style));
    }
    lines
}

/// The calls of an answer, and the size of the form in which its provider sent it.
fn calls(calls: &[RequestedCall], own: Option<&OwnForm>, style: &Style) -> Vec<String> {
    let lines = calls
        .iter()
        .map(|call| format!("  calls {} ({}): {}", call.tool, call.id, call.arguments))
        .chain(own.map(|own| format!("  {}", own_form(own))));
    lines
        .map(|line| format!("  {}", text::one_line(&line, style.charset)))
        .collect()
}
