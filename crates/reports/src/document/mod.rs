//! An investigation as Markdown, for the ticket: `sessions show --report`, and a link of the web interface.

mod markdown;

use chrono::{DateTime, Utc};

use self::markdown::{block, code, inline, quote, written};
use crate::words::{model, moment, retry_of, state, status_word};
use crate::{
    AlertReport, ExecutionReport, JoinedAlert, QuestionReport, SeenSession, SessionReport,
    ToolCallReport,
};
use tarsy_core::alert::Severity;
use tarsy_core::execution::event_refs::cited;
use tarsy_core::readable::format::{self, millis};
use tarsy_core::readable::results;
use tarsy_core::readable::text::{self, Charset, short_id};
use tarsy_core::summary::{below, executive_summary};
use tarsy_core::timeline::rows::{CitedPage, arguments, footnotes};
use tarsy_engine::ports::ToolCallState;

/// Maximum number of lines of the alert in a report.
const MAX_ALERT_LINES: usize = 60;
/// Columns of a call's arguments, a fingerprint or an address.
const ARGUMENT_COLUMNS: usize = 120;
/// Columns of a call's result.
const RESULT_COLUMNS: usize = 100;

/// The lines of the document; the time that a running session took ends at `now`.
pub fn report(report: &AlertReport, now: DateTime<Utc>) -> Vec<String> {
    let title = report.title.as_deref().unwrap_or("Alert");
    let mut lines = vec![format!("# {}", inline(title)), String::new()];
    lines.extend(facts(report, now));
    if let Some(session) = &report.session {
        lines.extend(outcome(report, session));
        lines.extend(analysis(report, session));
        lines.extend(agents(session));
        lines.extend(timeline(session));
    }
    if let Some(session) = &report.session {
        lines.extend(verdicts(session));
    }
    lines.extend(questions(report));
    lines.extend(seen_before(report));
    lines.extend(joined(report));
    lines.extend(alert(report));
    lines
}

fn facts(report: &AlertReport, now: DateTime<Utc>) -> Vec<String> {
    let is_question = report.parent_id.is_some();
    let kind = if is_question { "Question" } else { "Session" };
    let severity = report.severity.map_or("unknown", Severity::as_str);
    let mut facts = vec![
        fact(kind, &code(&report.alert_id.to_string(), 40)),
        fact("Outcome", &inline(&state(report, now))),
        fact("Severity", &inline(severity)),
    ];
    if let Some(url) = &report.url {
        facts.push(fact("Page", &format!("<{url}>")));
    }
    if let Some(of_type) = &report.alert_type {
        facts.push(fact("Alert type", &inline(of_type)));
    }
    match &report.session {
        Some(session) => facts.extend(session_facts(session)),
        None => facts.push(fact("Received", &moment(report.received_at))),
    }
    if let Some(parent) = report.parent_id {
        facts.push(fact("About session", &code(&parent.to_string(), 40)));
    }
    if let Some(of) = retry_of(report) {
        facts.push(fact("Rerun of", &code(&short_id(of), 40)));
    }
    if let Some(text) = &report.fingerprint {
        facts.push(fact("Fingerprint", &code(text, ARGUMENT_COLUMNS)));
    }
    facts
}

fn session_facts(session: &SessionReport) -> Vec<String> {
    let mut time = moment(session.created_at);
    if let Some(at) = session.finished_at {
        time.push_str(&format!(" to {}", moment(at)));
    }
    let chain = inline(&session.chain);
    let chain = format!("{chain} on worker {}", inline(&session.worker));
    let mut facts = vec![fact("Time", &time), fact("Chain", &chain)];
    let late = session.late_updates();
    if late > 0 {
        let late = format::count(late, "change");
        let late = format!("{late} of the alert after the last model call");
        facts.push(fact("Not covered", &late));
    }
    let models = session.models.iter().map(model);
    facts.extend(models.map(|model| fact("Model", &inline(&model))));
    facts
}

fn fact(name: &str, value: &str) -> String {
    format!("- **{name}:** {value}")
}

/// The mark and the fields of the analysis, or the error if there is none.
fn outcome(report: &AlertReport, session: &SessionReport) -> Vec<String> {
    let mark = session.mark.map(|mark| format!("**{}**", mark.sentence()));
    let mut lines: Vec<String> = match (summary(report, session), &session.error) {
        (Some(summary), _) => summary.lines().map(summary_line).collect(),
        (None, Some(error)) if session.final_analysis.is_none() => {
            vec![format!("No analysis: {}", inline(error))]
        }
        (None, _) => Vec::new(),
    };
    let review = session.review.as_ref();
    let review = review.and_then(|review| review.beside(session.mark));
    let remarks: Vec<String> = mark
        .into_iter()
        .chain(review.map(|text| inline(&text)))
        .collect();
    if !remarks.is_empty() {
        let gap = (!lines.is_empty()).then(String::new);
        lines.splice(0..0, [remarks.join(" ")].into_iter().chain(gap));
    }
    let stored = session.executive_summary.as_deref().unwrap_or_default();
    if !lines.is_empty() && !cited(stored).is_empty() {
        lines.extend([String::new(), CITATIONS.to_owned()]);
    }
    section("Summary", lines)
}

/// The explanation of the numbers in brackets.
const CITATIONS: &str =
    "A number in brackets is an event of the timeline; `tarsy watch` and the page show it.";

/// The fields of an analysis with the marks of the pages that it rests on; the answer to a question is shown whole.
fn summary(report: &AlertReport, session: &SessionReport) -> Option<String> {
    if report.parent_id.is_some() {
        return None;
    }
    let stored = session.executive_summary.as_deref()?;
    let noted = session
        .final_analysis
        .as_deref()
        .map(|analysis| footnotes(analysis, Some(&session.citations)));
    let noted = noted.filter(|notes| notes.sources().next().is_some());
    let noted = noted.and_then(|notes| executive_summary(&notes.text));
    Some(noted.unwrap_or_else(|| stored.to_owned()))
}

fn summary_line(line: &str) -> String {
    match line.split_once(": ") {
        Some((label, text)) => format!("- **{}:** {}", inline(label), written(text)),
        None => format!("- {}", written(line)),
    }
}

/// The analysis without the lines that the summary has.
fn analysis(report: &AlertReport, session: &SessionReport) -> Vec<String> {
    let Some(analysis) = session.final_analysis.as_deref() else {
        return Vec::new();
    };
    let notes = footnotes(analysis, Some(&session.citations));
    let rest = if summary(report, session).is_some() {
        below(&notes.text)
    } else {
        notes.text.as_str()
    };
    let mut lines = quote(rest);
    let sources: Vec<String> = notes
        .sources()
        .map(|(mark, page)| source(&mark, page))
        .collect();
    if !sources.is_empty() {
        lines.extend([String::new(), "Sources:".to_owned(), String::new()]);
        lines.extend(sources);
    }
    let is_answer = report.parent_id.is_some();
    section(if is_answer { "Answer" } else { "Analysis" }, lines)
}

/// A page with its visible address; the address is a link only if it is one of the web.
fn source(mark: &str, source: &CitedPage) -> String {
    let CitedPage { title, uri } = source;
    let is_web = (uri.starts_with("https://") || uri.starts_with("http://"))
        && uri
            .chars()
            .all(|c: char| !c.is_whitespace() && !matches!(c, '<' | '>' | '\\'));
    let address = if is_web {
        format!("<{uri}>")
    } else {
        code(uri, ARGUMENT_COLUMNS)
    };
    let title = if title == uri {
        String::new()
    } else {
        format!(" {}", inline(title))
    };
    format!("- {}{title} {address}", inline(mark))
        .trim_end()
        .replace("  ", " ")
}

/// The questions about the investigation with their answers.
fn questions(report: &AlertReport) -> Vec<String> {
    let parts: Vec<Vec<String>> = report
        .questions
        .iter()
        .map(|each: &QuestionReport| {
            let question = inline(each.question.as_deref().unwrap_or("(no text)"));
            let head = format!(
                "**{question}** ({}, {})",
                moment(each.created_at),
                code(&each.session_id.short(), 40)
            );
            let answer = match &each.answer {
                Some(answer) => quote(answer),
                None => {
                    let error = each.error.clone();
                    let why = error.unwrap_or_else(|| status_word(each.status.as_str()));
                    vec![format!("No answer: {}", inline(&why))]
                }
            };
            [vec![head, String::new()], answer].concat()
        })
        .collect();
    section("Questions", parts.join(&String::new()))
}

/// The analysis of each agent that a synthesis combined, and the answer of each sub-agent.
fn agents(session: &SessionReport) -> Vec<String> {
    let parts: Vec<Vec<String>> = session
        .stages
        .iter()
        .flat_map(|stage| {
            let is_team = stage.agents() > 1;
            let ordered = stage.ordered().into_iter();
            ordered.filter(move |execution| is_team || execution.is_sub_agent())
        })
        .map(agent)
        .collect();
    section("What each agent found", parts.join(&String::new()))
}

fn agent(execution: &ExecutionReport) -> Vec<String> {
    let role = if execution.is_sub_agent() {
        "sub-agent, "
    } else {
        ""
    };
    let head = format!(
        "### {} ({role}{})",
        inline(&execution.agent),
        inline(&status_word(execution.status.as_str()))
    );
    let found = match (&execution.analysis, &execution.error) {
        (Some(analysis), _) => quote(analysis),
        (None, Some(error)) => vec![format!("No analysis: {}", inline(error))],
        (None, None) => vec!["No analysis.".to_owned()],
    };
    [vec![head, String::new()], found].concat()
}

fn timeline(session: &SessionReport) -> Vec<String> {
    let calls = session.tool_calls.iter().map(|each| call(each, session));
    section("What was looked at", calls.collect())
}

fn call(call: &ToolCallReport, session: &SessionReport) -> String {
    let since = format::since_start(millis(session.created_at, call.at));
    let executions: usize = session
        .stages
        .iter()
        .map(|stage| stage.executions.len())
        .sum();
    let agent = if executions > 1 {
        format!("{}: ", inline(&call.agent))
    } else {
        String::new()
    };
    let arguments = code(
        &arguments(&call.arguments, Charset::Unicode),
        ARGUMENT_COLUMNS,
    );
    let took = format::took(call.duration_ms);
    let bytes = call.result_bytes.map(format::bytes);
    let result = match (call.state, &call.result, &call.error) {
        (ToolCallState::Done, Some(result), _) => code(
            results::line(result).as_deref().unwrap_or(result),
            RESULT_COLUMNS,
        ),
        (ToolCallState::Done, None, _) => "done".to_owned(),
        (state @ (ToolCallState::Failed | ToolCallState::Lost), result, error) => {
            let why = error.as_deref().or(result.as_deref()).unwrap_or_default();
            format!(
                "**{}** {}",
                inline(state.as_str()),
                code(why, RESULT_COLUMNS)
            )
        }
    };
    let measured = text::join([Some(took), bytes], ", ");
    let number = call
        .event
        .map(|number| format!("[{number}] "))
        .unwrap_or_default();
    format!(
        "- {number}{since} {agent}{} {arguments} → {result} ({measured})",
        code(&call.tool, ARGUMENT_COLUMNS)
    )
    .replace("  ", " ")
}

/// The words of people about the analysis, the newest first.
fn verdicts(session: &SessionReport) -> Vec<String> {
    let lines = session.verdicts.iter().flat_map(|verdict| {
        let rating = verdict.rating.as_str();
        let head = format!(
            "- {} **{rating}** by {} ({})",
            moment(verdict.at),
            inline(&verdict.person),
            inline(&verdict.channel)
        );
        let cause = verdict.cause.as_deref();
        let cause = cause.map(|text| format!("  - Cause: {}", inline(text)));
        let action = verdict.action.as_deref();
        let action = action.map(|text| format!("  - Did: {}", inline(text)));
        [Some(head), cause, action].into_iter().flatten()
    });
    section("Verdicts of people", lines.collect())
}

/// The earlier investigations of the alert. Their words come from models and alerts.
fn seen_before(report: &AlertReport) -> Vec<String> {
    let Some(seen) = &report.seen_before else {
        return Vec::new();
    };
    let mut lines = vec![format!("{}.", seen.in_words()), String::new()];
    lines.extend(seen.sessions.iter().map(earlier));
    section("Seen before", lines)
}

fn earlier(session: &SeenSession) -> String {
    let words = session.in_words();
    let words = if words.is_empty() {
        String::new()
    } else {
        format!(", {}", inline(&words))
    };
    let cause = session.cause.as_deref().unwrap_or("no cause is named");
    format!(
        "- {} {}{words}: {}",
        moment(session.finished_at),
        code(&session.session_id.short(), 40),
        inline(cause)
    )
}

fn joined(report: &AlertReport) -> Vec<String> {
    let lines: Vec<String> = report
        .joined
        .iter()
        .map(|alert: &JoinedAlert| {
            let title = inline(alert.title.as_deref().unwrap_or("(no title)"));
            format!(
                "- {} {} {title}",
                moment(alert.received_at),
                code(&alert.alert_id.short(), 40)
            )
        })
        .collect();
    let title = if report.limited_by.is_some() {
        "Other alerts above the limit"
    } else {
        "Alerts that joined"
    };
    section(title, lines)
}

fn alert(report: &AlertReport) -> Vec<String> {
    let Some(body) = report.body.as_deref() else {
        return Vec::new();
    };
    let total = body.lines().count();
    let kept: Vec<&str> = body.lines().take(MAX_ALERT_LINES).collect();
    let mut lines = block(&kept.join("\n"));
    if total > kept.len() {
        lines.extend([String::new(), format!("({} of {total} lines)", kept.len())]);
    }
    let is_question = report.parent_id.is_some();
    section(if is_question { "Question" } else { "Alert" }, lines)
}

/// The lines below a heading; none without lines.
fn section(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let head = [String::new(), format!("## {title}"), String::new()];
    head.into_iter().chain(lines).collect()
}
