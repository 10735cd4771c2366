//! Classifies a value by its form: a name, a time, a number, a state, an address or a sentence.

use crate::alert::AlertStatus;
use crate::sources::{WordList, is_severity_word, parse_time, pieces, status_of};

/// A longer text is a sentence.
const MAX_NAME_WORDS: usize = 6;
const MAX_NAME_CHARS: usize = 120;
/// Words of a title that only carry its state.
const FILLING: WordList = WordList::new(
    "is are was has have been back again now to alert alarm notification state status -> => → opened created \
     updated occurrence reactivated repeated occurred happened detected reported escalated for still the",
);
/// Texts of a value that is not set, or that says only yes or no.
const UNSET: WordList = WordList::new("true false yes no on off - n/a none null unknown *");
/// Words of the events of an alert: `incident.created`, `new_item`.
const OF_ALERTS: WordList =
    WordList::new("incident issue item event monitor check group ticket case monitoring");
/// Words before a number that is measured.
const MEASURED: WordList = WordList::new(
    "is are was at to of has have than over above below under for with now value current count total attempt try \
     retry level load temp temperature usage latency cpu memory length depth lag age rate score after in =",
);

/// Words after a number that is measured.
const UNITS: WordList = WordList::new(
    "second seconds minute minutes hour hours day days week weeks kb mb gb tb kib mib gib bytes percent sekunde sekunden \
     minuten stunde stunden tag tage prozent segundos minutos horas días secondes heures jours",
);

/// The words of a text without states, severities, times and numbers with a unit, for texts and their comparison.
pub(in crate::intake) fn stable_text(text: &str) -> Option<String> {
    if parse_time(text).is_some() {
        return None;
    }
    let words = text.split_whitespace().filter(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        !word.is_empty()
            && !is_number(word)
            && parse_time(word).is_none()
            // `test` is the word of a test, and a part of many names.
            && !is_state(word)
    });
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The words of a title that name the problem. A number stays if it names something: `port 8080`, and not `has 512`.
pub(in crate::intake) fn title(text: &str) -> Option<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut before = String::new();
    let text = text.replace(" %", "%");
    let mut following = text.split_whitespace().skip(1);
    for written in text.split_whitespace() {
        let after = following
            .next()
            .unwrap_or_default()
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        let word = written.trim_matches(|c: char| {
            !c.is_alphanumeric() && !matches!(c, '/' | '-' | '>' | '=' | '%')
        });
        let lower = word.to_lowercase();
        let is_integer = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
        let is_measured = is_number(word)
            && (!is_integer
                || before.is_empty()
                || MEASURED.contains(before.as_str())
                || UNITS.contains(after.as_str()));
        // A unit that stands alone: `94 %`.
        // `:fire:` of a chat.
        let is_short_code = written.len() > 2 && written.starts_with(':') && written.ends_with(':');
        let is_empty = is_short_code || !word.chars().any(|c| c.is_alphanumeric() || c == '/');
        before = if is_empty { before } else { lower.clone() };
        let is_event = pieces(word).len() > 1 && is_all_state(word);
        let says_state = is_state(word) || is_event || is_split_state(word);
        let says_nothing =
            is_empty || is_measured || says_state || FILLING.contains(lower.as_str());
        if !says_nothing && !is_time(word) {
            kept.push(lower);
        }
    }
    (!kept.is_empty()).then(|| kept.join(" "))
}

/// The name of a condition as it is written; one with its state in brackets without it.
pub(super) fn condition(text: &str) -> Option<String> {
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word);
    let is_marked = bracketed.is_some_and(|word| status_of(word).is_some() || is_split_state(word));
    if is_marked { title(text) } else { name(text) }
}

/// Whether a word is the word of a state or of a severity, and no name with one in it: `NodeDown`, `HighLatency`.
fn is_state(word: &str) -> bool {
    let is_one = pieces(word).len() == 1;
    is_one && status_of(word).is_some_and(|status| status != AlertStatus::Test)
        || is_severity_word(word)
}

/// Whether all pieces of a text are those of states: `ALERT_RECOVERY`.
pub(super) fn is_all_state(text: &str) -> bool {
    let pieces = pieces(text);
    let is_empty =
        |piece: &str| is_state(piece) || FILLING.contains(piece) || OF_ALERTS.contains(piece);
    !pieces.is_empty() && pieces.iter().all(|piece| is_empty(piece))
}

/// A date, a time of day, or both, in any of the usual orders: `27.11.2026 01:00`, `Fri Nov 27 01:00:00 UTC 2026`.
fn is_time(text: &str) -> bool {
    let is_clock = |word: &str| {
        word.contains(':')
            && word
                .chars()
                .all(|c| c.is_ascii_digit() || ":.,+Z".contains(c))
    };
    let is_date = |word: &str| {
        let is_numeric = word
            .chars()
            .all(|c| c.is_ascii_digit() || "-./".contains(c));
        let groups: Vec<usize> = word.split(['-', '.', '/']).map(str::len).collect();
        is_numeric && matches!(groups.as_slice(), [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4])
    };
    let words: Vec<&str> = text
        .split([' ', 'T'])
        .filter(|word| !word.is_empty())
        .collect();
    let has_time = words.iter().any(|word| is_clock(word) || is_date(word));
    parse_time(text).is_some()
        || has_time
            && words.iter().all(|word| {
                is_clock(word) || is_date(word) || is_short_word(word) || is_short_number(word)
            })
}

fn is_short_number(word: &str) -> bool {
    word.len() <= 4 && word.chars().all(|c| c.is_ascii_digit() || c == ',')
}

fn is_short_word(word: &str) -> bool {
    word.chars().count() <= 4 && word.chars().all(char::is_alphabetic)
}

/// A number with its unit: `97%`, `2 m`, `1.5 GB`.
fn is_measure(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '+', '>', '<', '=', ' ']);
    let number = text.trim_end_matches(|c: char| c.is_alphabetic() || "% /".contains(c));
    let unit = text.len() - number.len();
    unit > 0
        && unit <= 6
        && !number.is_empty()
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || ".,".contains(c))
}

/// A state with a number after it: `FIRING:1`.
fn is_split_state(word: &str) -> bool {
    word.split_once(':').is_some_and(|(state, count)| {
        status_of(state).is_some()
            && !count.is_empty()
            && count.chars().all(|c| c.is_ascii_digit() || c == ',')
    })
}

/// `94`, `94%`, `1.5GB`, `12ms`.
fn is_number(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    !digits.is_empty()
        && word.len() - digits.len() <= 3
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || ".,:".contains(c))
        && digits.matches('.').count() <= 1
}

/// The value of an id, a name or a label; `None` for one that changes by its form.
pub(super) fn name(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_macro = text.starts_with("{{") || text.starts_with("${") || text.starts_with('$');
    let is_json =
        text.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(&text).is_ok();
    let is_unset = text.is_empty() || UNSET.contains(&text.to_lowercase());
    let changes = is_state(&text) || is_time(&text) || is_measure(&text);
    (!is_unset && !is_macro && !is_json && !changes).then_some(text)
}

/// Whether a text is an address of a page.
pub(super) fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Whether a text looks like an id or a name of a machine: it has no space, and a digit or the separator of a path.
pub(super) fn is_exact(text: &str) -> bool {
    let has = text
        .chars()
        .any(|c| c.is_ascii_digit() || matches!(c, '/' | '@' | '\\' | '.' | '-'));
    has && !text.contains(char::is_whitespace)
        && !is_url(text)
        && !is_number(text)
        && !is_random(text)
}

/// Whether a text is the id of a message by its form: a UUID or a long hexadecimal number.
pub(super) fn is_random(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    digits.len() >= 24 && digits.chars().all(|c| c.is_ascii_hexdigit())
        || text.len() == 26 && is_ulid(text)
}

fn is_ulid(text: &str) -> bool {
    text.starts_with("01")
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
}

/// Whether a text is a sentence.
pub(super) fn is_sentence(text: &str) -> bool {
    text.split_whitespace().count() > MAX_NAME_WORDS
        || text.chars().count() > MAX_NAME_CHARS
        || text.contains('\n')
}
