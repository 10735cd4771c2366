//! Small components that several pages share: states, severities, times, cleaned texts.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::markdown;
use tarsy_core::alert::Severity;
use tarsy_core::chain::RunStatus;
use tarsy_core::readable::text::{Charset, clean, one_line};
use tarsy_core::timeline::rows::Footnotes;

/// Browsers and servers take no longer address.
const MAX_ADDRESS_BYTES: usize = 8 * 1024;

/// A text from outside in one line of at most `most` characters.
pub(crate) fn brief(text: &str, most: usize) -> String {
    // A line of megabytes is not read to its end.
    let begin = text
        .get(..text.floor_char_boundary(most.saturating_mul(8)))
        .unwrap_or_default();
    let line = one_line(begin, Charset::Unicode);
    if line.chars().count() <= most && begin.len() == text.len() {
        return line;
    }
    let mut cut: String = line.chars().take(most.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// A text from outside with its line breaks.
pub(crate) fn whole(text: &str) -> String {
    clean(text, Charset::Unicode)
}

/// `✓ completed`
pub(crate) fn status(status: RunStatus) -> Markup {
    let (class, sign, word) = match status {
        RunStatus::Unknown(word) => ("st queued", "?", word.0),
        RunStatus::Running => ("st running", "\u{a0}", "running"),
        RunStatus::Completed => ("st completed", "✓", "completed"),
        RunStatus::Failed => ("st failed", "✕", "failed"),
        RunStatus::Cancelled => ("st cancelled", "–", "cancelled"),
        RunStatus::TimedOut => ("st timed_out", "!", "timed out"),
        RunStatus::Limited => ("st limited", "!", "limited"),
    };
    html! { span class=(class) { i aria-hidden="true" { (sign) } (word) } }
}

/// The state of a question: one without an answer is no failed investigation.
pub(crate) fn question_status(status: RunStatus) -> Markup {
    let (class, sign, word) = match status {
        RunStatus::Unknown(word) => ("st queued", "?", word.0),
        RunStatus::Running => ("st running", "\u{a0}", "running"),
        RunStatus::Completed => ("st completed", "✓", "answered"),
        RunStatus::Failed | RunStatus::TimedOut => ("st other", "–", "no answer"),
        RunStatus::Cancelled => ("st other", "–", "cancelled"),
        RunStatus::Limited => ("st other", "–", "limited"),
    };
    html! { span class=(class) { i aria-hidden="true" { (sign) } (word) } }
}

/// A session that runs, and waits for a person without a worker.
pub(crate) fn waiting_for_approval() -> Markup {
    html! { span.st.waiting { i aria-hidden="true" { "?" } "waiting for approval" } }
}

/// An alert whose session may still begin.
pub(crate) fn queued() -> Markup {
    html! { span.st.queued { i aria-hidden="true" { "\u{a0}" } "in the queue" } }
}

/// A state that no session has, such as `joined`.
pub(crate) fn other_status(word: &str) -> Markup {
    html! { span.st.other { i aria-hidden="true" { "+" } (word) } }
}

pub(crate) fn severity(severity: Option<Severity>) -> Markup {
    let (class, word) = match severity {
        Some(Severity::Critical) => ("sev critical", "critical"),
        Some(Severity::High) => ("sev high", "high"),
        Some(Severity::Normal) => ("sev normal", "normal"),
        Some(Severity::Low) => ("sev low", "low"),
        None => return html! {},
    };
    html! { span class=(class) { (word) } }
}

/// The text that replaces an absent title.
pub(crate) const NO_TITLE: &str = "(no title)";

/// The title of an alert: its name, then what it is about. A free text is shown as one.
pub(crate) fn title(title: &str) -> Markup {
    let title = brief(title, 400);
    let split = title.split_once(' ').filter(|(first, _)| is_name(first));
    let (name, about) = split.unwrap_or((title.as_str(), ""));
    html! { b { (name) } @if !about.is_empty() { " " span { (about.trim_start()) } } }
}

/// Whether a word is the name of an alert, such as `KubePodCrashLooping` or `disk_full`, and no word of a sentence.
fn is_name(word: &str) -> bool {
    let is_camel = word
        .as_bytes()
        .array_windows()
        .any(|[first, second]| first.is_ascii_lowercase() && second.is_ascii_uppercase());
    let is_word = word
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
    is_word && (is_camel || word.contains('_'))
}

/// A time for people, with the whole time for programs.
pub(crate) fn time(at: DateTime<Utc>, shown: &str) -> Markup {
    html! { time datetime=(at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()) { (shown) } }
}

/// `22 Nov 07:53:11`
pub(crate) fn moment(at: DateTime<Utc>) -> Markup {
    time(at, &at.format("%-d %b %H:%M:%S").to_string())
}

/// A text that begins with a capital letter, unless its first word is a name such as `nginx-1` or `iPhone`.
pub(crate) fn sentence(text: &str) -> String {
    let word = text
        .split(|c: char| c.is_whitespace() || ",.;:".contains(c))
        .next()
        .unwrap_or_default();
    let is_word = word.len() > 1 && word.chars().all(char::is_lowercase) || word == "a";
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if is_word => first.to_uppercase().chain(letters).collect(),
        Some(_) | None => text.to_owned(),
    }
}

/// `timed out` for `timed_out`.
pub(crate) fn plain(word: &str) -> String {
    word.replace('_', " ")
}

/// A link to another site with its host, or the address as text.
pub(crate) fn address(address: &str, name: &str) -> Markup {
    let begin = address
        .get(..address.floor_char_boundary(MAX_ADDRESS_BYTES))
        .unwrap_or_default();
    let line = one_line(begin, Charset::Unicode);
    match markdown::target(&line) {
        Some(target) if begin.len() == address.len() => html! {
            a rel="noopener noreferrer nofollow ugc" href=(target.address) { (brief(name, 300)) }
            " " span.host { (target.host) }
        },
        Some(_) | None => html! { (brief(&line, 300)) },
    }
}

/// The sources of a text, each with its mark.
pub(crate) fn sources(notes: &Footnotes) -> Markup {
    html! {
        ul.sources {
            @for (mark, source) in notes.sources() {
                li { (mark) " " (address(&source.uri, if source.title.is_empty() { &source.uri } else { &source.title })) }
            }
        }
    }
}

/// A command for a terminal, as an element by itself, so that it can be copied.
pub(crate) fn command(command: &str) -> Markup {
    html! {
        div.cmd {
            code { (command) }
            button.copy type="button" data-copy-before="" aria-label="Copy the command" { "Copy" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_begins_as_a_sentence_and_a_name_stays_as_it_is() {
        for (text, expected) in [
            ("the pool is exhausted", "The pool is exhausted"),
            ("revision 43, then", "Revision 43, then"),
            ("a leak", "A leak"),
            ("nginx-1 died", "nginx-1 died"),
            ("`limit` is 2", "`limit` is 2"),
            ("iPhone", "iPhone"),
            ("", ""),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }
}
