//! Plain text. Lines such as `Host: db-1` are fields, as in the mails of Nagios; of any other text the words that stay
//! the same from message to message are its key.

use serde_json::{Map, Value};

use super::title_mark;
use crate::alert::{AlertStatus, Severity};
use crate::intake::reading::ParsedBody;
use crate::intake::{clean, fingerprint, identity};
use crate::sources::{Note, Traced, is_severity_word, severity_of, status_of};

/// The number of such lines below which a text has no fields.
const MIN_FIELDS: usize = 3;
const MAX_FIELDS: usize = 64;
const MAX_NAME_CHARS: usize = 32;
const MAX_NAME_WORDS: usize = 3;
/// The first lines give fields, and of the key words; what is after them counts as it is written.
const MAX_LINES: usize = 64;
/// The words of a longer line count as they are written.
const MAX_LINE_CHARS: usize = 512;

/// An alert of plain text. Its first line may begin with its state: `[RESOLVED] disk full`. A text that differs only in
/// that state, in times and in measured numbers has the same key.
pub(in crate::intake) fn read_text(text: &str) -> ParsedBody {
    match fields(text) {
        Some(fields) => of_fields(text, &fields),
        None => of_words(text),
    }
}

pub(in crate::intake) fn text_key(text: &str) -> String {
    read_text(text).fingerprint.unwrap_or_default()
}

fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
}

fn of_fields(text: &str, fields: &Value) -> ParsedBody {
    let read = super::read_json(fields, None);
    let key = read.fingerprint.clone().unwrap_or_default();
    ParsedBody {
        source: "text".to_owned(),
        members: vec![fingerprint::member_of_key("text", &key)],
        notes: read
            .notes
            .into_iter()
            .filter(|note| *note != Note::Unrecognised)
            .collect(),
        text: text.to_owned(),
        ..read
    }
}

fn of_words(text: &str) -> ParsedBody {
    let title = first_line(text);
    let mark = title_mark::mark(title);
    let status = mark
        .and_then(|mark| status_of(mark.word))
        .filter(|status| *status != AlertStatus::Test);
    let rest = match mark {
        Some(mark) if status.is_some() => mark.rest,
        Some(_) | None => title,
    };
    let key = key(rest, text);
    let because =
        "it is a hash of the words that stay the same, without states, times and measured numbers";
    let mut trace = vec![
        Traced::rule("title", title, "it is the first line"),
        Traced::rule("key", &key, because),
    ];
    let place = "the beginning of the first line";
    if let (Some(mark), Some(status)) = (mark, status) {
        trace.push(Traced::word("status", place, mark.word, status.as_str()));
    }
    let severity = severity(title);
    if let Some((severity, word)) = severity {
        trace.push(Traced::word("severity", place, word, severity.as_str()));
    }
    ParsedBody {
        source: "text".to_owned(),
        title: title.to_owned(),
        severity: severity.map(|(severity, _)| severity),
        status: status.unwrap_or_default(),
        members: vec![fingerprint::member_of_key("text", &key)],
        fingerprint: Some(key),
        text: text.to_owned(),
        trace,
        ..ParsedBody::default()
    }
}

/// The hash of the words that name something, with this first line; of the whole text if there are none. Two long texts
/// that differ anywhere are two.
fn key(first: &str, text: &str) -> String {
    let others = text.lines().filter(|line| !line.trim().is_empty()).skip(1);
    let lines = std::iter::once(first)
        .chain(others)
        .enumerate()
        .filter_map(|(at, line)| {
            let is_long = at >= MAX_LINES || line.chars().nth(MAX_LINE_CHARS).is_some();
            if is_long {
                Some(line.to_owned())
            } else {
                identity::stable_title(&clean::line(line, MAX_LINE_CHARS))
            }
        });
    let words = lines.collect::<Vec<_>>().join("\n");
    fingerprint::of_body(
        if words.is_empty() {
            text.trim()
        } else {
            &words
        }
        .as_bytes(),
    )
}

/// The word of a severity with which a line begins: `CRITICAL: disk full`, `[P1] disk full`.
fn severity(line: &str) -> Option<(Severity, &str)> {
    let begin = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let word = begin
        .split(|c: char| c.is_whitespace() || matches!(c, ']' | ':' | '|' | ')'))
        .next()?;
    let is_capital = !word.chars().any(char::is_lowercase);
    if !is_capital || !is_severity_word(word) {
        return None;
    }
    Some((severity_of(word)?, word))
}

/// The lines with a name and a value, as an object; `None` for a text with hardly any.
fn fields(text: &str) -> Option<Value> {
    let mut fields = Map::new();
    for (name, value) in text
        .lines()
        .take(MAX_LINES)
        .filter_map(field)
        .take(MAX_FIELDS)
    {
        fields
            .entry(name)
            .or_insert_with(|| Value::String(value.to_owned()));
    }
    (fields.len() >= MIN_FIELDS).then_some(Value::Object(fields))
}

fn field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let value = value.strip_prefix([' ', '\t'])?.trim();

    let is_name = name.starts_with(char::is_alphabetic)
        && name
            .chars()
            .all(|c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/' | '.'))
        && name.chars().count() <= MAX_NAME_CHARS
        && name.split_whitespace().count() <= MAX_NAME_WORDS;
    (is_name && !value.is_empty()).then(|| (name.replace(' ', "_"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> Vec<String> {
        let mut keys: Vec<String> = texts
            .iter()
            .map(|text| read_text(text).fingerprint.unwrap())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn a_text_keeps_its_key_when_only_states_times_and_measured_numbers_change() {
        for texts in [
            [
                "disk full on db-1: 94 %",
                "[RESOLVED] disk full on db-1: 12 %",
                "CRITICAL: disk full on db-1: 97.5 %",
            ],
            [
                "2026-11-28 16:42:10 web1 is DOWN",
                "2026-11-28 17:00:00 web1 is DOWN",
                "RECOVERY: web1 is UP",
            ],
            [
                "load of web1 is 12.4\n5 processes",
                "load of web1 is 9\n5 processes",
                "[OK] load of web1 is 1\n5 processes",
            ],
        ] {
            assert_eq!(keys(&texts).len(), 1, "{texts:?}");
        }
        let others = [
            "disk full on db-1",
            "disk full on db-2",
            "host 10.0.0.1 down",
            "host 10.0.0.2 down",
            "port 80 closed",
            "port 443 closed",
            "queue 7 messages lost",
            "queue 8 messages lost",
            "load\nweb1",
            "load\nweb2",
        ];
        assert_eq!(keys(&others).len(), others.len());
    }

    #[test]
    fn lines_with_names_are_fields() {
        let nagios = |state: &str, kind: &str, time: &str| {
            format!(
                "***** Nagios *****\n\nNotification Type: {kind}\n\nService: Disk /var\nHost: db-1\nState: {state}\n\n\
                     Date/Time: {time}\n\nAdditional Info:\n\nDISK {state} - free space: /var 3%"
            )
        };
        let [problem, recovery] = [
            nagios("CRITICAL", "PROBLEM", "2026-11-28 16:00:00"),
            nagios("OK", "RECOVERY", "2026-11-28 17:00:00"),
        ];
        let problem = read_text(&problem);
        let recovery = read_text(&recovery);

        assert_eq!(
            (problem.status, problem.severity),
            (AlertStatus::Firing, Some(Severity::Critical))
        );
        assert_eq!(
            (recovery.status, &recovery.fingerprint),
            (AlertStatus::Resolved, &problem.fingerprint)
        );
        assert_eq!(problem.title, "Disk /var  db-1");
        assert_ne!(
            read_text("Host: a\nService: b\nState: CRITICAL").fingerprint,
            read_text("Host: b\nService: b\nState: CRITICAL").fingerprint
        );
    }

    #[test]
    fn a_line_may_begin_with_its_severity() {
        let of = |text: &str| read_text(text).severity;
        assert_eq!(of("CRITICAL: disk full"), Some(Severity::Critical));
        assert_eq!(of("[P3] disk full"), severity_of("P3"));
        assert_eq!(of("Critical systems are well"), None);
        assert_eq!(of("disk full"), None);
    }
}
