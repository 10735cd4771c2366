//! The rows of the events about the session itself: start, resume, stages, joined alerts, end.

use std::time::Duration;

use serde_json::Value;

use crate::summary::Mark;
use crate::timeline::TimelineEvent;

use super::meta::Meta;
use super::row::{Body, Kind, Row, Tone};
use crate::readable::text::Charset;
use crate::readable::{format, text};

/// Input, cached, output and thinking tokens, as far as the event has them.
pub(super) fn usage(meta: &Meta<'_>) -> String {
    let tokens = |key: &str| meta.number(key).filter(|n| *n > 0).map(format::tokens);
    let input = meta
        .number("input_tokens")
        .map(|n| format!("{} in", format::tokens(n)));
    let cached = tokens("cached_tokens").map(|n| format!("({n} cached)"));
    let output = meta
        .number("output_tokens")
        .map(|n| format!("{} out", format::tokens(n)));
    let thinking = tokens("thinking_tokens").map(|n| format!("{n} thinking"));
    text::join([input, cached, output, thinking], " ")
}

/// The subject of a session, from its first event: the title of the alert, or that it answers a question.
pub fn title(event: &TimelineEvent, charset: Charset) -> String {
    let meta = Meta::new(&event.metadata, charset);
    // The next event has the question itself.
    let about = meta
        .text("parent_id")
        .map(|parent| format!("question about session {}", text::short_id(&parent)));
    let title = about
        .or_else(|| meta.text("title"))
        .or_else(|| meta.text("alert_type"));
    title
        .filter(|title| !title.trim().is_empty())
        .unwrap_or_else(|| "(no title)".to_owned())
}

/// The first event: chain, strategy, provider and worker of the investigation.
pub(super) fn started(meta: &Meta<'_>, content: &str) -> Row {
    let chain = meta.text("chain").map(|chain| format!("chain {chain}"));
    let provider = match (meta.text("provider"), meta.text("model")) {
        (Some(provider), Some(model)) if provider != model => Some(format!("{provider} {model}")),
        (provider, model) => provider.or(model),
    };
    let worker = meta.text("worker").map(|worker| format!("worker {worker}"));
    let queued = meta
        .number("queued_ms")
        .map(|ms| format!("queued {}", format::span(Duration::from_millis(ms))));
    let by = meta.text("asked_by").map(|by| format!("by {by}"));
    let facts = [chain, meta.text("strategy"), provider, worker, queued, by];
    let facts = text::join(facts, ", ");
    let detail = if facts.is_empty() { content } else { &facts };
    let missing: Vec<&str> = meta
        .pairs("unavailable_servers")
        .map(|(server, _)| server.as_str())
        .collect();
    if missing.is_empty() {
        return Row::line(Kind::Start, "started", detail);
    }
    // At the beginning, because a narrow terminal cuts the end off.
    let missing = text::one_line(&missing.join(", "), meta.charset);
    let detail = format!("without tools of {missing}, {detail}");
    Row::line(Kind::Start, "started", &detail).toned(Tone::Caution)
}

/// Another worker continues the session; the row says what it has to repeat.
pub(super) fn resumed(meta: &Meta<'_>, content: &str) -> Row {
    let name = meta.text("worker").map_or_else(
        || "resumed".to_owned(),
        |worker| format!("resumed on {worker}"),
    );
    let previous = meta
        .text("previous_worker")
        .unwrap_or_else(|| "its worker".to_owned());
    let reason = meta.text("reason").map(|reason| match reason.as_str() {
        "lease_expired" => format!("lease of {previous} expired"),
        "restarted" => format!("{previous} died and was started again"),
        // Older versions wrote the words after the bar; stored timelines still have them.
        "store_unavailable" | "store_away" => {
            format!("lease of {previous} expired while the database was unavailable")
        }
        "released" | "handed_back" => match meta
            .text("release_reason")
            .as_deref()
            .and_then(release_reason)
        {
            Some(why) => format!("released by {previous}: {why}"),
            None => format!("released by {previous}"),
        },
        other => format!("{other} ({previous})"),
    });
    let repeats = match (meta.number("repeats_calls"), meta.number("repeats_model")) {
        (None, None) => None,
        (calls, model) => {
            let calls = calls.unwrap_or_default();
            let verb = if calls == 1 { "runs" } else { "run" };
            let model = model
                .filter(|model| *model > 0)
                .map(|model| format::count(model, "model call"));
            let calls = format!("{} {verb} again", format::count(calls, "read-only call"));
            Some(text::join([Some(calls), model], ", "))
        }
    };
    let facts = text::join([reason, repeats], "; ");
    let facts = if facts.is_empty() { content } else { &facts };
    Row::line(Kind::Resumed, &name, facts).toned(Tone::Caution)
}

/// Adds to the row of a takeover how long there was no step.
pub(super) fn without_steps(row: &mut Row, ms: u64) {
    if let Body::Line(line) = &mut row.body {
        let gap = format::took(ms);
        let (reason, repeats) = line.split_at(line.find("; ").unwrap_or(line.len()));
        *line = match reason.strip_suffix(" expired") {
            Some(_) => format!("{reason} after {gap}{repeats}"),
            None => format!("{reason}, {gap} without a step{repeats}"),
        };
    }
}

/// The reason why a worker released the session; `None` for a word of a later version.
fn release_reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "drain" => "it shut down",
        "model_unavailable" => "the LLM service did not answer",
        "model_broke" => "the LLM service broke off its answer",
        "store_unavailable" => "the database did not answer",
        "store_refused" => "the database refused a write",
        "store_timed_out" => "the database took too long for a write",
        "store_behind" => "the database had lost commits",
        "incompatible" => "it could not go on with this session",
        _ => return None,
    })
}

/// A stage begins or ends.
pub(super) fn stage(event: &TimelineEvent, meta: &Meta<'_>, kind: Kind, fallback: &str) -> Row {
    let name = meta
        .text("stage")
        .or_else(|| event.stage.clone())
        .unwrap_or_default();
    let status = meta
        .text("status")
        .filter(|status| status != "running")
        .unwrap_or_else(|| fallback.to_owned());
    Row::line(kind, "stage", &format!("{name} {status}{}", who(meta)))
}

/// The agents of a stage with several ones: those that start, or those that did not complete.
fn who(meta: &Meta<'_>) -> String {
    let word = |value: &Value| {
        value
            .as_str()
            .map(|word| text::one_line(word, meta.charset))
    };
    let agents: Vec<String> = meta.list("agents").iter().filter_map(word).collect();
    if agents.len() > 1 {
        let all = if meta.text("success_policy").as_deref() == Some("all") {
            "; all must complete"
        } else {
            ""
        };
        return format!(": {}{all}", agents.join(", "));
    }
    let outcomes = meta
        .pairs("outcomes")
        .filter_map(|(agent, status)| Some((agent, word(status)?)));
    let outcomes: Vec<(&String, String)> = outcomes.collect();
    let others = outcomes
        .iter()
        .filter(|(_, status)| outcomes.len() > 1 && status != "completed");
    let others = others.map(|(agent, status)| format!("{agent} {}", status.replace('_', " ")));
    let others = others.collect::<Vec<_>>().join(", ");
    if others.is_empty() {
        others
    } else {
        format!(": {}", text::one_line(&others, meta.charset))
    }
}

/// Another alert of the same fingerprint joined the session.
pub(super) fn alert_joined(meta: &Meta<'_>, content: &str) -> Row {
    let count = meta
        .number("count")
        .map(|count| format!(", the {count}th so far; not every one is shown"));
    let count = count.unwrap_or_default();
    if meta.is_set("outdated") {
        let detail = "a resolution that is older than the last firing: nothing has changed";
        return Row::line(Kind::Joined, "joined", detail);
    }
    let alert = meta
        .text("alert_id")
        .map(|id| format!("alert {}: same fingerprint{count}", text::short_id(&id)));
    Row::line(Kind::Joined, "joined", alert.as_deref().unwrap_or(content))
}

/// The changes of the alert that came after the last model call.
fn late(meta: &Meta<'_>) -> Option<String> {
    let late = meta.number("late_updates").filter(|late| *late > 0)?;
    Some(format!(
        "{} of the alert came too late for it",
        format::count(late, "change")
    ))
}

/// The marks on the analysis, and its missing parts.
fn remarks(meta: &Meta<'_>) -> String {
    let mark = meta.text("mark").map(|word| {
        Mark::parse(&word)
            .sentence()
            .trim_end_matches('.')
            .to_owned()
    });
    let review = meta
        .review()
        .map(|verdict| format!("second look: {}", verdict.word()));
    text::join([mark, review, late(meta)], "; ")
}

/// The end of a session with an analysis; a marked one is no success.
pub(super) fn completed(meta: &Meta<'_>) -> Row {
    let tone = if meta.text("mark").is_some() {
        Tone::Bad
    } else {
        Tone::Good
    };
    end(meta, remarks(meta), "completed", tone)
}

/// The last event; `error` is the reason for a missing analysis.
pub(super) fn end(meta: &Meta<'_>, error: String, name: &str, tone: Tone) -> Row {
    // A final answer is the normal end of a session; every other reason is shown.
    let reason = meta
        .text("stop_reason")
        .filter(|reason| reason != "final_answer")
        .map(|r| r.replace('_', " "));
    // The sentence of a session without an error only repeats the name of the row.
    let error = Some(error).filter(|error| !repeats_name(error));
    let reason = reason.filter(|reason| error.is_some() || reason != name);
    let by = meta.text("cancelled_by").map(|by| format!("by {by}"));
    let by = by.or_else(|| meta.text("cancel_reason").as_deref().map(cancel_reason));
    let reason = Some(text::join([reason, error], ": ")).filter(|why| !why.is_empty());
    let why = text::join([by, reason], "; ");
    let body = if why.is_empty() {
        Body::Line(why)
    } else {
        Body::Whole {
            text: why,
            limit: None,
        }
    };
    let mut row = Row::new(Kind::End, name, body).toned(tone);
    row.took_ms = meta.number("duration_ms");
    row.totals = totals(meta);
    if tone == Tone::Good {
        row.body_tone = Tone::Plain;
    }
    row
}

fn repeats_name(error: &str) -> bool {
    error.trim().is_empty() || error.starts_with("Investigation ")
}

/// The reason why a session was cancelled that no person has cancelled.
fn cancel_reason(word: &str) -> String {
    if word == "alert_resolved" {
        "its alert is resolved".to_owned()
    } else {
        word.replace('_', " ")
    }
}

fn totals(meta: &Meta<'_>) -> String {
    let iterations = meta
        .number("iterations")
        .map(|n| format::count(n, "iteration"));
    let calls = meta.number("tool_calls").map(|n| format::count(n, "call"));
    let usage = Some(usage(meta)).filter(|usage| !usage.is_empty());
    let separator = meta.charset.pick(" · ", ", ");
    text::join([iterations, calls, usage], separator)
}
