//! Bounds of a thread in a prompt, with a note where a part is left out.

use super::{Exchange, PastCall, Thread};
use crate::plan::Strategy;
use crate::readable::text::beginning;
use crate::tool_names::shown;

/// The limit of the alert, in bytes.
pub(super) const MAX_ALERT_BYTES: usize = 16 * 1024;
/// The limit of the report, in bytes.
pub(super) const MAX_REPORT_BYTES: usize = 32 * 1024;
/// The limit of all earlier questions and answers, in bytes.
const MAX_ASKED_BYTES: usize = 24 * 1024;
/// The limit of an earlier question whose answer is left out, in bytes.
const MAX_BARE_QUESTION_BYTES: usize = 400;
/// The separator between two exchanges.
const GAP: &str = "\n\n";
/// Tool calls that are listed: of more, the first and the last ones.
const MAX_CALLS: usize = 60;
/// The limit of a call's arguments, in bytes.
const MAX_ARGUMENT_BYTES: usize = 200;

/// The beginning of `text` in at most `bytes`, with a note about the rest.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    let text = text.trim();
    if text.len() <= bytes {
        return text.to_owned();
    }
    let kept = beginning(text, bytes);
    format!(
        "{kept}\n[cut here: {} of {} bytes are not shown]",
        text.len() - kept.len(),
        text.len()
    )
}

/// The calls as text, one line each, with names for a model of this strategy.
pub(super) fn calls(calls: &[PastCall], strategy: Strategy) -> String {
    let skipped = calls.len().saturating_sub(MAX_CALLS);
    let mut lines: Vec<String> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        if skipped > 0 && index == MAX_CALLS / 2 {
            lines.push(format!("[{skipped} more calls are not shown]"));
        }
        if index < MAX_CALLS / 2 || index >= MAX_CALLS / 2 + skipped {
            lines.push(line(call, strategy));
        }
    }
    lines.join("\n")
}

fn line(call: &PastCall, strategy: Strategy) -> String {
    let arguments = call
        .arguments
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let kept = beginning(&arguments, MAX_ARGUMENT_BYTES);
    let more = if kept.len() < arguments.len() {
        "…"
    } else {
        ""
    };
    let failed = if call.is_error { " (failed)" } else { "" };
    let tool = shown(&call.tool, strategy);
    format!("[{}] {tool} {kept}{more}{failed}", call.session_seq)
}

/// Questions and answers, the oldest first. If they exceed the bound, first the oldest answers are left out, then the
/// oldest questions.
pub(super) fn asked(thread: &Thread) -> String {
    let older = usize::try_from(thread.older).unwrap_or(usize::MAX);
    let mut remaining = MAX_ASKED_BYTES;
    let mut parts = Vec::new();
    let mut with_answers = true;

    let mut left_out = thread.asked.len();
    for (index, exchange) in thread.asked.iter().enumerate().rev() {
        let number = older.saturating_add(index).saturating_add(1);
        let whole = part(number, &exchange.question, &exchange.answer);
        let text = if with_answers && whole.len() + GAP.len() <= remaining {
            whole
        } else if parts.is_empty() {
            with_answers = false;
            part(
                number,
                &cut(&exchange.question, remaining / 4),
                &cut(&exchange.answer, remaining / 2),
            )
        } else {
            with_answers = false;
            bare(number, exchange)
        };
        let Some(left) = remaining.checked_sub(text.len() + GAP.len()) else {
            break;
        };
        remaining = left;
        parts.push(text);
        left_out = index;
    }
    if left_out + older > 0 {
        parts.push(format!(
            "[{} earlier questions are not shown]",
            left_out.saturating_add(older)
        ));
    }
    parts.reverse();
    parts.join(GAP)
}

fn part(number: usize, question: &str, answer: &str) -> String {
    format!(
        "Question {number}: {}\n\nAnswer {number}: {}",
        question.trim(),
        answer.trim()
    )
}

fn bare(number: usize, exchange: &Exchange) -> String {
    part(
        number,
        &cut(&exchange.question, MAX_BARE_QUESTION_BYTES),
        "[this answer is left out to save space]",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::thread;

    fn exchange(number: usize, bytes: usize) -> Exchange {
        Exchange {
            question: format!("why {number}?"),
            answer: format!("because {number}. {}", "é".repeat(bytes / 2)),
        }
    }

    #[test]
    fn the_oldest_answers_are_left_out_first_and_visibly() {
        let asked_of = |exchanges: Vec<Exchange>, older| {
            asked(&Thread {
                asked: exchanges,
                older,
                ..thread()
            })
        };
        let short = asked_of(vec![exchange(1, 2), exchange(2, 2)], 0);
        assert_eq!(
            short,
            "Question 1: why 1?\n\nAnswer 1: because 1. é\n\nQuestion 2: why 2?\n\nAnswer 2: because 2. é"
        );

        let long = asked_of((1..=5).map(|number| exchange(number, 7_000)).collect(), 3);
        assert!(long.len() < MAX_ASKED_BYTES + 100, "{}", long.len());
        assert!(long.starts_with(
            "[3 earlier questions are not shown]\n\nQuestion 4: why 1?\n\nAnswer 4: [this answer is"
        ));
        assert!(
            long.contains(
                "Question 5: why 2?\n\nAnswer 5: [this answer is left out to save space]"
            )
        );
        for kept in [
            "Answer 6: because 3.",
            "Answer 7: because 4.",
            "Answer 8: because 5.",
        ] {
            assert!(long.contains(kept), "{kept}");
        }

        let huge = asked_of(vec![exchange(1, 10), exchange(2, 90_000)], 0);
        assert!(huge.contains("Answer 1: [this answer") && huge.contains("Answer 2: because 2. é"));
        assert!(
            huge.len() < MAX_ASKED_BYTES && huge.contains("of 90011 bytes are not shown]"),
            "{}",
            huge.len()
        );

        let many = asked_of((1..=900).map(|number| exchange(number, 40)).collect(), 0);
        assert!(
            many.len() < MAX_ASKED_BYTES + 100 && many.contains("Answer 900: because 900"),
            "{}",
            many.len()
        );
        assert!(
            many.starts_with('[')
                && many
                    .lines()
                    .next()
                    .unwrap()
                    .ends_with("earlier questions are not shown]")
        );
        assert_eq!(asked_of(vec![], 0), "");
    }

    #[test]
    fn a_long_investigation_shows_its_first_and_its_last_calls() {
        let text = calls(
            &(1..=100)
                .map(|session_seq| PastCall {
                    session_seq,
                    tool: "k8s.get".to_owned(),
                    arguments: "{\n  \"a\": \"é\"}".replace('é', &"é".repeat(200)),
                    is_error: session_seq == 1,
                })
                .collect::<Vec<_>>(),
            Strategy::NativeThinking,
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), MAX_CALLS + 1);
        assert!(
            lines[0].starts_with("[1] k8s__get { \"a\": \"éé") && lines[0].ends_with("é… (failed)"),
            "{}",
            lines[0]
        );
        assert_eq!(lines[30], "[40 more calls are not shown]");
        assert!(
            lines[29].starts_with("[30] ")
                && lines[31].starts_with("[71] ")
                && lines[60].starts_with("[100] ")
        );
    }
}
