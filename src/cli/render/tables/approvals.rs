//! `approvals list` and `approvals show`: requests for approvals.

use chrono::{DateTime, Utc};

use super::table::{Cell, Column, edges, fact, hanging, table};
use crate::cli::render::style::{Charset, Paint, Style};
use crate::cli::render::{format, text};
use tarsy_core::approvals::Origins;
use tarsy_core::visible::is_invisible;
use tarsy_reports::words::moment;
use tarsy_reports::{
    ApprovalDetail, ApprovalRow, FreezeReport, OtherRequest, RequestState, VoteReport,
};

/// Characters of the model's text that are shown.
const MAX_WHY: usize = 2_000;
/// Characters of a cited result that are shown; the timeline has all of it.
const MAX_RESULT: usize = 600;
/// Characters of the alert that are shown.
const MAX_ALERT: usize = 1_500;

/// The id by which commands name a request.
pub fn id(row: &ApprovalRow) -> String {
    format!("{}:{}", row.session_id.short(), row.event)
}

/// The table of requests; the time that is left ends at `now`.
pub fn list(rows: &[ApprovalRow], now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("request"),
        Column::Left("state"),
        Column::Left("tool"),
        Column::Left("policy"),
        Column::Left("votes"),
        Column::Rest("alert"),
    ];
    let cells = rows.iter().map(|row| {
        let paint = match row.state {
            RequestState::Open => Paint::Yellow,
            RequestState::Decided
            | RequestState::Expired
            | RequestState::Ended
            | RequestState::Closed => Paint::Plain,
        };
        [
            Cell::new(&id(row), style),
            Cell::new(&state(row, now), style).painted(paint),
            Cell::new(&row.tool, style),
            Cell::new(&row.policy, style),
            Cell::new(&format!("{} of {}", row.votes, row.quorum), style),
            Cell::new(row.title.as_deref().unwrap_or("(no title)"), style),
        ]
    });
    table(columns, &["votes", "policy"], cells, style)
}

/// The state of a request in words: `open, 3 h 12 min left`, `denied by ana`.
pub fn state(row: &ApprovalRow, now: DateTime<Utc>) -> String {
    match row.state {
        RequestState::Open => {
            let left = (row.expires_at - now).to_std().unwrap_or_default();
            format!("open, {} left", format::took(left.as_millis()))
        }
        RequestState::Decided => {
            let outcome = row.outcome.as_deref().unwrap_or("decided");
            format!(
                "{} by {}",
                outcome.replace('_', " "),
                row.decided_by.join(", ")
            )
        }
        RequestState::Expired => "expired".to_owned(),
        RequestState::Ended => "ended with its session".to_owned(),
        RequestState::Closed => {
            let closed = row.closed_as.as_deref().unwrap_or("closed");
            closed.replace('_', " ")
        }
    }
}

/// A request with everything that a person sees before they decide, in the order in which it matters.
pub fn show(detail: &ApprovalDetail, now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let row = &detail.row;
    let title = row.title.as_deref().unwrap_or("(no title)");
    let mut lines = edges(title, &format!("request {}", id(row)), style);
    lines.extend(freeze(detail.freeze.as_ref(), style));
    lines.extend(alert(detail, style));
    lines.push(String::new());
    lines.extend(fact("state", &state(row, now), style));
    lines.extend(fact("tool", &row.tool, style));
    let quorum = match row.quorum {
        1 => "one person approves".to_owned(),
        several => format!("{several} different people approve"),
    };
    let policy = format!("{}: {quorum}", row.policy);
    lines.extend(fact("policy", &policy, style));
    lines.extend(fact("expires", &moment(row.expires_at), style));
    let valid = std::time::Duration::try_from_secs_f64(detail.call.valid_for_secs);
    let valid = format!(
        "{} from the decision",
        format::took(valid.unwrap_or_default().as_millis())
    );
    lines.extend(fact("valid", &valid, style));
    lines.push(String::new());
    lines.push(Paint::Dim.over("Arguments, exactly as they will be sent", style));
    lines.extend(exact(&detail.call.arguments, style));
    lines.extend(origins(detail, style));
    lines.extend(evidence(detail, style));
    lines.extend(why(detail, style));
    lines.extend(others(&detail.others, style));
    lines.extend(votes(&detail.votes_cast, style));
    lines.push(String::new());
    lines.extend(fact("call", &row.call_sha256.to_string(), style));
    lines.extend(detail.url.as_deref().map(crate::cli::messages::link));
    lines
}

fn freeze(freeze: Option<&FreezeReport>, style: &Style) -> Vec<String> {
    let Some(freeze) = freeze else {
        return Vec::new();
    };
    let until = freeze.until.map_or_else(
        || "until a person ends it".to_owned(),
        |until| format!("until {}", moment(until)),
    );
    let reason = freeze
        .reason
        .as_deref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    let text = format!(
        "All changes are frozen by {}, {until}{reason}. No approval counts meanwhile.",
        freeze.person
    );
    hanging("", 0, &text, style)
        .iter()
        .map(|line| Paint::Yellow.over(line, style))
        .collect()
}

fn alert(detail: &ApprovalDetail, style: &Style) -> Vec<String> {
    let alert = &detail.alert;
    let body = head(alert.body.as_deref().unwrap_or_default(), MAX_ALERT, style);
    let mut lines = fact("alert", &body, style);
    lines.extend(fact(
        "asked by",
        alert.asked_by.as_deref().unwrap_or_default(),
        style,
    ));
    let count = detail.row.updates;
    if count > 0 {
        let changes = format!("{count} since it began; the last one is in what you approve");
        lines.extend(fact("changes", &changes, style));
    }
    if alert.is_resolved {
        lines.extend(fact("resolved", "the alert is resolved", style));
    }
    lines
}

fn origins(detail: &ApprovalDetail, style: &Style) -> Vec<String> {
    let origins = Origins::from_value(&detail.call.origins);
    let mut lines = Vec::new();
    if !origins.0.is_empty() {
        lines.push(String::new());
        lines.push(Paint::Dim.over("Each value occurs in", style));
    }
    for origin in &origins.0 {
        lines.extend(hanging(
            "  ",
            2,
            &format!("{}: {}", origin.at, origin.words()),
            style,
        ));
    }
    lines
}

fn evidence(detail: &ApprovalDetail, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for result in &detail.evidence {
        lines.push(String::new());
        let tool = result.tool.as_deref().unwrap_or("a tool");
        let label = format!("Cited result [{}] of {tool}", result.event);
        lines.push(Paint::Dim.over(&text::one_line(&label, style.charset), style));
        lines.extend(hanging(
            "  ",
            2,
            &head(&result.content, MAX_RESULT, style),
            style,
        ));
    }
    lines
}

/// The words of the model, which are marked as such: they may repeat what an attacker wrote into the alert.
fn why(detail: &ApprovalDetail, style: &Style) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        Paint::Dim.over("Written by the model, and by no person", style),
    ];
    lines.extend(hanging(
        "  | ",
        4,
        &head(&detail.call.why, MAX_WHY, style),
        style,
    ));
    lines
}

fn others(others: &[OtherRequest], style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    if !others.is_empty() {
        lines.push(String::new());
        lines.push(Paint::Dim.over("Other requests of this investigation", style));
    }
    for other in others {
        let outcome = other
            .closed_as
            .as_deref()
            .or(other.outcome.as_deref())
            .unwrap_or(other.state.as_str());
        let is_lost = other.call_state.as_deref() == Some("lost");
        let same = if other.is_same_call {
            ", the same call"
        } else {
            ""
        };
        let lost = if is_lost {
            "; it was sent and has no result: it may have changed something"
        } else {
            ""
        };
        let line = format!(
            ":{} {}{same}: {}{lost}",
            other.event,
            other.tool,
            outcome.replace('_', " ")
        );
        lines.extend(hanging("  ", 2, &line, style));
    }
    lines
}

fn votes(votes: &[VoteReport], style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    if !votes.is_empty() {
        lines.push(String::new());
        lines.push(Paint::Dim.over("Votes", style));
    }
    for vote in votes {
        let refused = vote
            .refused
            .as_deref()
            .map(|reason| format!(", does not count ({})", reason.replace('_', " ")))
            .unwrap_or_default();
        let comment = vote
            .comment
            .as_deref()
            .map(|comment| format!(": {comment}"))
            .unwrap_or_default();
        let line = format!(
            "{}  {} by {}{refused}{comment}",
            moment(vote.at),
            vote.verdict.replace('_', " "),
            vote.person,
        );
        lines.extend(hanging("  ", 2, &line, style));
    }
    lines
}

/// A text in one line, cut with a remark that it is.
fn head(text: &str, characters: usize, style: &Style) -> String {
    let shown: String = text.chars().take(characters).collect();
    if shown.len() == text.len() {
        return shown;
    }
    format!("{shown}{} (more in the timeline)", style.charset.ellipsis())
}

/// A text whose every character is shown: blanks stay, and what is invisible, or cannot be shown by a terminal without
/// Unicode, is written as its number.
fn exact(text: &str, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let room = style.width.saturating_sub(2).max(20);
    for c in text.chars() {
        let needs_number = c.is_control()
            || is_invisible(c)
            || (c.is_whitespace() && c != ' ')
            || (style.charset == Charset::Ascii && !c.is_ascii());
        let shown = if needs_number {
            c.escape_unicode().to_string()
        } else {
            c.to_string()
        };
        if text::width(&line) + text::width(&shown) > room {
            lines.push(format!("  {line}"));
            line.clear();
        }
        line.push_str(&shown);
    }
    if !line.is_empty() {
        lines.push(format!("  {line}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_with_every_blank_and_every_invisible_character() {
        let style = Style {
            width: 24,
            ..Style::default()
        };
        let arguments = "{\"a\":\"b  c\u{202e}\u{200b}\tend\"}";
        let shown = exact(arguments, &style);
        let joined: String = shown.iter().filter_map(|line| line.get(2..)).collect();
        assert_eq!(joined, "{\"a\":\"b  c\\u{202e}\\u{200b}\\u{9}end\"}");
        assert!(
            shown.iter().all(|line| text::width(line) <= 24),
            "{shown:?}"
        );
    }
}
