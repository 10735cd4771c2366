//! `dead-letters list` and `dead-letters show`.

use super::table::{Cell, Column, hanging, short_moment, table};
use crate::cli::render::style::{Charset, Paint, Style};
use crate::cli::render::{format, text};
use tarsy_bus::{SESSION_ID, StoredDeadLetter, TITLE};
use tarsy_reports::words::moment;

/// The table of dead letters.
pub fn letters(letters: &[StoredDeadLetter], style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("alert"),
        Column::Left("when (utc)"),
        Column::Left("reason"),
        Column::Rest("what"),
        Column::Right("size"),
    ];
    let rows = letters.iter().map(|letter| {
        let what = title(letter).unwrap_or_else(|| letter.detail.clone());
        [
            Cell::new(&letter.alert_id.short(), style),
            Cell::new(&short_moment(letter.stored_at), style),
            Cell::new(&letter.reason, style).painted(Paint::Red),
            Cell::new(&what, style),
            Cell::new(&format::bytes(letter.body.len()), style),
        ]
    });
    table(columns, &["size", "when (utc)"], rows, style)
}

/// The remedy for a dead letter, besides dropping it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Retrying may help, with one of these chains if there are any.
    Retry(Vec<String>),
    /// The alert is too large, and its body may be lost: only a shorter alert helps.
    SubmitAgain,
    /// No worker can read the body.
    Nothing,
}

/// One dead letter with the commands that help.
pub fn letter(letter: &StoredDeadLetter, remedy: &Remedy, style: &Style) -> Vec<String> {
    let short = letter.alert_id.short();
    let head = format!(
        "{short}  {}  reason {}",
        moment(letter.stored_at),
        text::one_line(&letter.reason, style.charset)
    );
    let from = format!(
        "from {}, sequence {}, delivery {}",
        text::one_line(&letter.subject, style.charset),
        letter.alert_sequence,
        letter.deliveries
    );
    let both = format!("{head}   {from}");
    let mut lines = if text::width(&both) <= style.width {
        vec![both]
    } else {
        vec![
            text::cut(&head, style.width, style.charset),
            text::cut(&format!("  {from}"), style.width, style.charset),
        ]
    };
    lines.extend(entry("why", &letter.detail, style));
    if let Some(headers) = letter.headers.as_object() {
        let others = headers.iter().filter(|(name, _)| *name != SESSION_ID);
        let shown = others.filter_map(|(name, value)| Some(format!("{name}: {}", value.as_str()?)));
        lines.extend(entry("with", &shown.collect::<Vec<_>>().join(", "), style));
    }
    lines.push(body(letter, style));
    let drop = format!("tarsy dead-letters drop {short}");
    let first = match remedy {
        Remedy::Retry(chains) => {
            let chain = chains
                .first()
                .map(|chain| format!(" [--chain {}]", text::one_line(chain, style.charset)))
                .unwrap_or_default();
            format!("  then   tarsy dead-letters retry {short}{chain}")
        }
        Remedy::SubmitAgain => "  then   submit it again, with less text".to_owned(),
        Remedy::Nothing => {
            lines.push(format!("  then   {drop}"));
            return lines;
        }
    };
    let both = format!("{first}   or   {drop}");
    if text::width(&both) <= style.width {
        lines.push(both);
    } else {
        lines.extend([first, format!("  or     {drop}")]);
    }
    lines
}

/// A dead letter within a sentence.
pub fn named(letter: &StoredDeadLetter) -> String {
    let title = title(letter)
        .map(|title| format!(", {title}"))
        .unwrap_or_default();
    let [reason, subject] =
        [&letter.reason, &letter.subject].map(|text| text::one_line(text, Charset::Unicode));
    let short = letter.alert_id.short();
    let size = format::bytes(letter.body.len());

    format!("alert {short} ({reason}, from {subject}{title}, {size})")
}

/// The alert's body, cleaned for a terminal.
pub fn body_text(letter: &StoredDeadLetter, style: &Style) -> String {
    text::clean(&String::from_utf8_lossy(&letter.body), style.charset)
}

fn title(letter: &StoredDeadLetter) -> Option<String> {
    letter
        .headers
        .get(TITLE)
        .and_then(serde_json::Value::as_str)
        .map(|title| text::one_line(title, Charset::Unicode))
}

fn body(letter: &StoredDeadLetter, style: &Style) -> String {
    const HINT: &str = "(--body prints it)";
    if letter.body.is_empty() {
        return "  body   not kept".to_owned();
    }
    let front = format!("  body   {}  ", format::bytes(letter.body.len()));
    let room = style
        .width
        .saturating_sub(text::width(&front) + HINT.len() + 3);
    let shown = text::cut(
        &text::one_line(&String::from_utf8_lossy(&letter.body), style.charset),
        room,
        style.charset,
    );
    format!("{front}{}{HINT}", text::pad(&shown, room + 3))
}

fn entry(label: &str, value: &str, style: &Style) -> Vec<String> {
    hanging(&format!("  {label:<5}  "), 9, value, style)
}
