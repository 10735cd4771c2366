//! `sessions show`: one session with its stages, joined alerts and questions.

use chrono::{DateTime, Utc};

use super::queue::QueuedAlert;
use super::table::{Cell, Column, edges, fact, status_paint, table};
use crate::cli::messages;
use crate::cli::render::format::{self, millis};
use crate::cli::render::style::Style;
use crate::cli::render::text;
use crate::cli::render::timeline::prose;
use tarsy_core::alert::Severity;
use tarsy_core::alert_update::AlertUpdate;
use tarsy_core::timeline::rows::Footnotes;
use tarsy_core::verdicts::PersonVerdict;
use tarsy_reports::words::{model, moment, retry_of, state, status_word, tokens};
use tarsy_store::{AlertReport, DispositionKind, ExecutionReport, SessionReport, Tokens};

/// The number of joined alerts that are listed; the others are counted.
const MAX_JOINED: usize = 5;
/// The number of alerts above the limit of a route that are listed; the others are counted.
const MAX_LISTED: usize = 200;
/// The number of questions that are listed; earlier ones are counted.
const MAX_QUESTIONS: usize = 10;

/// An alert and its session; the time that a running session took ends at `now`.
pub fn show(report: &AlertReport, now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let short = report.alert_id.short();
    let title = report
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty())
        .unwrap_or(match report.disposition {
            DispositionKind::Undecided => "(not read yet)",
            DispositionKind::Dead | DispositionKind::Ended => "(not read)",
            DispositionKind::Opened | DispositionKind::Joined => "(no title)",
        });
    let mut lines = edges(title, &format!("session {short}"), style);
    lines.extend(fact("id", &report.alert_id.to_string(), style));
    let about = report
        .parent_id
        .map(|parent| format!("session {} (tarsy watch {short} --thread)", parent.short()));
    lines.extend(fact("asks about", &about.unwrap_or_default(), style));
    lines.extend(fact("state", &state(report, now), style));
    let is_question = report.parent_id.is_some();
    let label = if is_question { "question" } else { "alert" };
    lines.extend(fact(label, &alert(report), style));
    lines.extend(fact("subject", &subject(report), style));
    let fingerprint = report.fingerprint.as_deref().unwrap_or_default();
    lines.extend(fact("fingerprint", fingerprint, style));
    if let Some(session) = &report.session {
        lines.extend(of_session(session, now, style));
    }
    let seen = report
        .seen_before
        .as_ref()
        .map(|seen| format!("{} (tarsy sessions past {short})", seen.in_words()));
    lines.extend(fact("seen", &seen.unwrap_or_default(), style));
    let newest = report
        .session
        .as_ref()
        .and_then(|session| session.verdicts.first());
    let verdict = newest.map(judged).unwrap_or_default();
    lines.extend(fact("judged", &verdict, style));
    lines.extend(joined(report, style));
    if let Some(session) = &report.session {
        lines.extend(changes(session, style));
        lines.extend(outcome(report, session, style));
    }
    lines.extend(questions(report, style));
    lines.push(String::new());
    lines.extend(next(report, &short, style));
    // The link is in one piece, so that a terminal recognises it.
    lines.extend(report.url.as_deref().map(messages::link));
    lines
}

/// An alert that no worker has seen. `place` is its place in the queue.
pub fn queued(alert: &QueuedAlert, sequence: u64, place: &str, style: &Style) -> Vec<String> {
    let short = alert.alert_id.short();
    let mut lines = edges(
        alert.title.as_deref().unwrap_or("(no alert)"),
        &format!("session {short}"),
        style,
    );
    let subject = format!(
        "{}, sequence {sequence}, no worker has seen it",
        alert.subject
    );
    let since = format!("queued at {}", moment(alert.queued_at));
    let facts = [
        ("id", alert.alert_id.to_string()),
        ("state", place.to_owned()),
        ("when", since),
        ("subject", subject),
    ];
    for (label, value) in facts {
        lines.extend(fact(label, &value, style));
    }
    lines.extend([
        String::new(),
        format!(
            "Watch: tarsy watch {}      Cancel: tarsy sessions cancel {short}      Queue: tarsy queue",
            alert.alert_id
        ),
    ]);
    lines
}

fn alert(report: &AlertReport) -> String {
    let severity = report.severity.map(Severity::as_str);
    let parts = [
        ("severity", severity),
        ("type", report.alert_type.as_deref()),
        ("source", report.source.as_deref()),
    ];
    text::join(
        parts.map(|(name, value)| value.map(|value| format!("{name} {value}"))),
        ", ",
    )
}

/// A verdict: `wrong by ana (cli), 2026-11-30 14:03:00Z; cause: …; did: …`.
fn judged(verdict: &PersonVerdict) -> String {
    let PersonVerdict {
        at,
        person,
        channel,
        rating,
        cause,
        action,
    } = verdict;
    let head = format!(
        "{} by {person} ({channel}), {}",
        rating.as_str(),
        moment(*at)
    );
    let cause = cause.as_ref().map(|text| format!("cause: {text}"));
    let action = action.as_ref().map(|text| format!("did: {text}"));
    text::join([Some(head), cause, action], "; ")
}

fn subject(report: &AlertReport) -> String {
    let AlertReport {
        subject,
        stream_sequence,
        deliveries,
        ..
    } = report;
    let times = format::count(*deliveries, "time");
    let rerun = retry_of(report)
        .map(|of| format!("; rerun of {}", messages::short(of)))
        .unwrap_or_default();
    format!("{subject}, sequence {stream_sequence}, delivered {times}{rerun}")
}

fn of_session(session: &SessionReport, now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let until = session.finished_at.map_or_else(
        || format!("deadline {}", moment(session.deadline_at)),
        |finished| format!("until {}", moment(finished)),
    );
    let when = format!("{}, {until}", moment(session.created_at));
    let mut lines = fact("when", &when, style);
    let chain = format!(
        "{} on worker {}{}",
        session.chain,
        session.worker,
        earlier(session)
    );
    lines.extend(fact("chain", &chain, style));
    for each in &session.models {
        lines.extend(fact("model", &model(each), style));
    }
    if !session.stages.is_empty() {
        lines.push(String::new());
        lines.extend(stages(session, now, style));
    }
    lines
}

/// The other workers that had the session. A lease epoch does not count workers: one worker may take several leases.
fn earlier(session: &SessionReport) -> String {
    let mut others: Vec<&str> = Vec::new();
    for worker in session
        .previous_workers
        .iter()
        .filter(|worker| **worker != session.worker)
    {
        if !others.contains(&worker.as_str()) {
            others.push(worker);
        }
    }
    if others.is_empty() {
        String::new()
    } else {
        format!(", earlier on {}", others.join(", "))
    }
}

fn stages(session: &SessionReport, now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let stages = &session.stages;
    let columns = [
        Column::Left("  stage"),
        Column::Left("agent"),
        Column::Left("status"),
        Column::Right("iterations"),
        Column::Right("calls"),
        Column::Right("took"),
        Column::Rest("tokens"),
    ];
    let mut rows = Vec::new();
    let mut previous = "";
    for stage in stages {
        // The name of a synthesis begins with the name of the stage above it.
        let own = stage
            .name
            .strip_prefix(previous)
            .and_then(|name| name.strip_prefix(' '))
            .unwrap_or(&stage.name);
        for (index, execution) in stage.ordered().into_iter().enumerate() {
            let name = if index == 0 { own } else { "" };
            rows.push(row(name, execution, now, style));
        }
        previous = &stage.name;
    }
    let mut lines = table(
        columns,
        &["iterations", "calls", "tokens"],
        rows.into_iter(),
        style,
    );
    let of_session = session.error.as_deref();
    for execution in stages.iter().flat_map(|stage| &stage.executions) {
        // The error of the session is shown below.
        if let Some(error) = &execution.error
            && !of_session.is_some_and(|whole| whole.contains(error))
        {
            let error = format!("{}: {error}", execution.agent);
            lines.extend(fact("error", &error, style));
        }
    }
    lines
}

fn row(stage: &str, execution: &ExecutionReport, now: DateTime<Utc>, style: &Style) -> [Cell; 7] {
    let took = format::took(millis(
        execution.started_at,
        execution.finished_at.unwrap_or(now),
    ));
    let name = text::cut(&text::one_line(stage, style.charset), 16, style.charset);
    let indent = if execution.is_sub_agent() { "  " } else { "" };
    let agent = format!(
        "{indent}{}",
        text::one_line(&execution.agent, style.charset)
    );
    let agent = text::cut(&agent, 14, style.charset);
    let usage = Tokens {
        cached: 0,
        thinking: 0,
        ..execution.usage
    };
    [
        Cell::indented(&name, style),
        Cell::new(&agent, style),
        Cell::new(&status_word(execution.status.as_str()), style)
            .painted(status_paint(execution.status)),
        Cell::new(&execution.iteration.to_string(), style),
        Cell::new(&execution.tool_calls.to_string(), style),
        Cell::new(&took, style),
        Cell::new(&tokens(usage), style),
    ]
}

fn joined(report: &AlertReport, style: &Style) -> Vec<String> {
    if report.joined.is_empty() {
        return Vec::new();
    }
    let (what, shown) = match report.limited_by {
        Some(_) => ("above the limit, too", MAX_LISTED),
        None => ("joined", MAX_JOINED),
    };
    let mut lines = vec![
        String::new(),
        format!(
            "  {} {what}:",
            format::count(report.joined.len(), "other alert")
        ),
    ];
    for alert in report.joined.iter().take(shown) {
        let title = alert.title.as_deref().unwrap_or("(no title)");
        let severity = alert.severity.map_or("-", Severity::as_str);
        let line = format!(
            "{}  {}  {severity}  {title}",
            alert.alert_id.short(),
            moment(alert.received_at)
        );
        let line = text::clean(&line, style.charset).replace('\n', " ");
        lines.push(format!(
            "    {}",
            text::cut(&line, style.width.saturating_sub(4), style.charset)
        ));
    }
    let more = report.joined.len().saturating_sub(shown);
    if more > 0 {
        lines.push(format!("    and {more} more (--json lists them)"));
    }
    lines
}

/// The changes by alerts that joined, and the number of those that came too late.
fn changes(session: &SessionReport, style: &Style) -> Vec<String> {
    let total = session.alert_updates.len();
    if total == 0 {
        return Vec::new();
    }
    let late = match session.late_updates() {
        0 => String::new(),
        late => format!("; the last {late} came too late for the analysis"),
    };
    let mut lines = vec![
        String::new(),
        format!(
            "  the alert changed {}{late}:",
            format::count(total, "time")
        ),
    ];
    for update in session.alert_updates.iter().take(MAX_JOINED) {
        let changed = serde_json::from_value::<AlertUpdate>(update.report.clone())
            .unwrap_or_default()
            .headline();
        let line = format!(
            "{}  {}  {changed}",
            update.alert_id.short(),
            moment(update.at)
        );
        lines.push(format!(
            "    {}",
            text::cut(&line, style.width.saturating_sub(4), style.charset)
        ));
    }
    let more = total.saturating_sub(MAX_JOINED);
    if more > 0 {
        lines.push(format!("    and {more} more (--json lists them)"));
    }
    lines
}

/// The questions about the investigation, each with the first sentence of its answer.
fn questions(report: &AlertReport, style: &Style) -> Vec<String> {
    if report.questions.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        format!("  {}:", format::count(report.questions.len(), "question")),
    ];
    let skipped = report.questions.len().saturating_sub(MAX_QUESTIONS);
    if skipped > 0 {
        lines.push(format!("    {skipped} earlier (--json lists them)"));
    }
    for each in report.questions.iter().skip(skipped) {
        let asked = text::first_sentence(&text::clean(
            each.question.as_deref().unwrap_or("(no text)"),
            style.charset,
        ));
        let answer = match (&each.answer, &each.error) {
            (Some(answer), _) => prose::sentence(&Footnotes::none(answer), style),
            (None, Some(error)) => format!("{}: {error}", status_word(each.status.as_str())),
            (None, None) => status_word(each.status.as_str()),
        };
        for (front, line) in [
            (format!("    {}  ", each.session_id.short()), asked),
            (" ".repeat(14), answer),
        ] {
            let room = style.width.saturating_sub(front.len());
            lines.push(format!(
                "{front}{}",
                text::cut(&text::one_line(&line, style.charset), room, style.charset)
            ));
        }
    }
    lines
}

/// The executive summary, else the first sentence of the analysis, else the error; an answer is shown whole.
fn outcome(report: &AlertReport, session: &SessionReport, style: &Style) -> Vec<String> {
    let text = match (
        &session.executive_summary,
        &session.final_analysis,
        &session.error,
    ) {
        (_, Some(answer), _) if report.parent_id.is_some() => answer.clone(),
        (Some(summary), _, _) => summary.clone(),
        (None, Some(analysis), _) => text::first_sentence(&text::clean(analysis, style.charset)),
        (None, None, Some(error)) => return no_analysis(error, style),
        (None, None, None) => return Vec::new(),
    };
    let text = match session.mark {
        Some(mark) => format!("{}\n\n{text}", mark.sentence()),
        None => text,
    };
    let review = session.review.as_ref();
    let text = match review.and_then(|review| review.beside(session.mark)) {
        Some(review) => format!("{review}\n\n{text}"),
        None => text,
    };
    let lines = prose::lines(
        &Footnotes::none(&text),
        style.width.saturating_sub(2),
        style,
    );
    let mut block = vec![String::new()];
    for line in lines {
        block.push(format!("  {line}").trim_end().to_owned());
    }
    block
}

fn no_analysis(error: &str, style: &Style) -> Vec<String> {
    let text = text::clean(&format!("No analysis: {error}"), style.charset);
    let mut lines = vec![String::new()];
    for line in text::wrap(&text, style.width.saturating_sub(2)) {
        lines.push(format!("  {line}"));
    }
    lines
}

fn next(report: &AlertReport, short: &str, style: &Style) -> Vec<String> {
    let row = |parts: &[String]| {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        text::flow(&parts, "      ", style.width)
    };
    match (
        &report.session,
        report.joined_session_id,
        report.disposition,
    ) {
        (Some(session), _, _) if session.finished_at.is_none() => row(&[
            format!("Watch: tarsy watch {short}"),
            format!("Cancel: tarsy sessions cancel {short}"),
        ]),
        (Some(session), _, _) => {
            let mut lines = vec![format!("Report: tarsy sessions show {short} --report")];
            lines.extend(row(&[
                format!("Timeline: tarsy watch {short}"),
                format!("Rerun: tarsy sessions rerun {short}"),
            ]));
            // Without an analysis there is little to ask about.
            if session.final_analysis.is_some() {
                lines.push(format!("Ask about it: tarsy ask {short} 'your question'"));
            }
            lines
        }
        (None, Some(joined), _) => vec![format!("Details: tarsy sessions show {}", joined.short())],
        (None, None, DispositionKind::Dead) => {
            vec![format!("Dead letter: tarsy dead-letters show {short}")]
        }
        (None, None, _) => vec![format!("Watch: tarsy watch {short}")],
    }
}
