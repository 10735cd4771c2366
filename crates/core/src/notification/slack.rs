//! A message of Slack: one section of `mrkdwn`, and the metadata by which the message can be found again.
//!
//! In `mrkdwn` a mention or a link is written between `<` and `>`, so it is text in a value once these and `&` are
//! escaped. `verbatim` keeps Slack from turning addresses and names in the text into links. The marks `*`, `_`, `~`,
//! the back quote, and `>` at the beginning of a line format a text and cannot be escaped: a value gets a character
//! that looks like each. Source: <https://docs.slack.dev/messaging/formatting-message-text>.

use serde_json::{Value, json};

use super::readable::with_citations_in_words;
use super::template::Values;
use super::{MAY_REPEAT, Notification};
use crate::readable::bounded::cut;
use crate::summary::{Command, command};

/// The longest text of a section is 3,000 characters.
const MAX_TEXT: usize = 2_900;
/// The type of our metadata.
pub const METADATA_TYPE: &str = "tarsy_notification";

pub use super::slack_request::{offer, outcome};
pub use super::slack_verdict::to_judge;

/// The body for an incoming webhook, or for `chat.postMessage` once it has a channel.
pub fn message(notification: &Notification) -> Value {
    let text = text(notification);
    json!({
        "text": text,
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}}],
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// The [`message`] for `chat.postMessage`: in this channel, as a reply if there is a first message, and with metadata.
pub fn post(notification: &Notification, channel: &str, thread: Option<&str>) -> Value {
    addressed(message(notification), notification, channel, thread)
}

/// A body of this module for `chat.postMessage`.
pub fn addressed(
    mut body: Value,
    notification: &Notification,
    channel: &str,
    thread: Option<&str>,
) -> Value {
    let metadata =
        json!({"event_type": METADATA_TYPE, "event_payload": {"id": notification.key.id()}});
    let parts = [
        ("channel", Some(channel.into())),
        ("metadata", Some(metadata)),
        ("thread_ts", thread.map(Value::from)),
    ];
    if let Some(body) = body.as_object_mut() {
        body.extend(
            parts
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?))),
        );
    }
    body
}

fn text(notification: &Notification) -> String {
    let values = Values::of_notification(notification);
    let filled = match &notification.template {
        Some(template) => template.filled(&values, |value| match value {
            // The link stands between `<` and `>`, where no mark formats.
            link if link == values.link => with_entities(link),
            next if next == values.next => next_step(next),
            value => escaped(value),
        }),
        None => usual(&values),
    };
    let remark = if notification.may_repeat {
        format!("\n_{MAY_REPEAT}_")
    } else {
        String::new()
    };
    format!("{}{remark}", cut(filled, MAX_TEXT))
}

/// The message without a template. The link stands above the long fields, so that a cut at the end leaves it.
fn usual(values: &Values) -> String {
    let mut lines = vec![
        format!("{} *{}*", values.sign(), bold(&values.title)),
        escaped(&values.facts()),
    ];
    if !values.mark.is_empty() {
        lines.push(format!("*{}*", values.mark));
    }
    if !values.review.is_empty() {
        lines.push(escaped(&values.review));
    }
    lines.extend(Some(escaped(&values.cause)).filter(|cause| !cause.is_empty()));
    lines.extend(
        Some(next_step(&values.next))
            .filter(|next| !next.is_empty())
            .map(|next| format!("*Do next:* {next}")),
    );
    if !values.link.is_empty() {
        let link = with_entities(&values.link);
        lines.push(format!("<{link}|Open the investigation>"));
    }
    if !values.evidence.is_empty() {
        lines.push("*Evidence:*".to_owned());
    }
    lines.extend(
        values
            .evidence
            .iter()
            .map(|fact| format!("• {}", escaped(fact))),
    );
    lines.extend(
        values
            .labelled()
            .map(|(label, text)| format!("*{label}:* {}", escaped(text))),
    );
    lines.join("\n")
}

/// A next step. A command at its beginning is code, whose characters are the model's own so that it can be copied.
fn next_step(next: &str) -> String {
    let Some(Command { text, rest }) = command(next) else {
        return escaped(&with_citations_in_words(next));
    };
    let rest = escaped(&with_citations_in_words(rest));
    let gap = if rest.is_empty() { "" } else { " " };
    format!("`{}`{gap}{rest}", with_entities(text))
}

/// A value within asterisks: one of its own would end the bold text, even within a word.
pub(super) fn bold(value: &str) -> String {
    escaped(&value.replace('*', "∗"))
}

/// A value without a meaning in `mrkdwn`.
pub(super) fn escaped(value: &str) -> String {
    with_entities(&without_marks(value))
}

pub(super) fn with_entities(value: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The value with look-alikes of the marks that would format it. A mark between two letters or digits formats nothing,
/// so `memory_bytes` can be copied as it is.
fn without_marks(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut before = None;
    let mut rest = value.chars().peekable();

    while let Some(character) = rest.next() {
        let is_in_word = before.is_some_and(char::is_alphanumeric)
            && rest.peek().is_some_and(|next| next.is_alphanumeric());
        plain.push(match character {
            '`' => 'ˋ',
            '>' if before.is_none() => '›',
            '*' if !is_in_word => '∗',
            '_' if !is_in_word => 'ˍ',
            '~' if !is_in_word => '∼',
            other => other,
        });
        before = Some(character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::summary::Summary;
    use crate::notification::template::Template;
    use crate::notification::tests::{hostile, notification};

    fn shown(body: &Value) -> &str {
        body["blocks"][0]["text"]["text"].as_str().unwrap()
    }

    #[test]
    fn a_message_has_cause_evidence_and_link() {
        let expected = "✅ *KubePodOOMKilled checkout*\ncritical, completed after 6.1 s, 2 cited events\nthe heap limit leaves \
                        no room (event 5)\n*Do next:* `kubectl set resources deploy/a_b --limits=memory=1Gi` then \
                        wait\n<https://tarsy.example.com/sessions/019a2b3c-0000-7000-8000-000000000001|Open the \
                        investigation>\n*Evidence:*\n• exit 137 (event 5)\n• limit 512Mi (event 7)\n*Sure:* likely, the \
                        exit code fits\n*Not seen:* the heap dump";
        let body = message(&notification());
        assert_eq!(shown(&body), expected);
        assert_eq!(body["blocks"][0]["text"]["verbatim"], true);
    }

    #[test]
    fn a_command_is_code_that_can_be_copied_and_cannot_leave_it() {
        assert_eq!(
            next_step("`a -b 'x_y*' > z & w`; then [5]"),
            "`a -b 'x_y*' &gt; z &amp; w` then (event 5)"
        );
        assert_eq!(
            next_step("look at `x` [5, 7]"),
            "look at ˋxˋ (events 5 and 7)"
        );
        let template = Some(Template::parse("{next}|{evidence}|{mark}{not_seen}").unwrap());
        let body = message(&Notification {
            template,
            ..notification()
        });
        let expected = "`kubectl set resources deploy/a_b --limits=memory=1Gi` then wait|• exit 137 (event 5)\n• limit 512Mi \
                        (event 7)|the heap dump";
        assert_eq!(shown(&body), expected);
    }

    #[test]
    fn a_hostile_text_mentions_no_channel_and_is_no_link() {
        let body = message(&hostile());
        let text = shown(&body);
        assert!(
            text.contains("&lt;!channel&gt;") && text.contains("&lt;https://evil.example|x&gt;"),
            "{text}"
        );
        assert_eq!(text.matches('<').count(), 1, "{text}");
        assert!(text.chars().count() <= 3_000, "{}", text.chars().count());
        let template = Some(Template::parse("<!here> {title}").unwrap());
        let body = message(&Notification {
            template,
            ..hostile()
        });
        assert_eq!(
            shown(&body).matches('<').count(),
            1,
            "only the template's own: {body}"
        );
    }

    #[test]
    fn a_value_has_no_mark_that_formats_it_and_names_stay_as_they_are() {
        for (value, expected) in [
            ("_x_ ~y~ `z` *w*", "ˍxˍ ∼y∼ ˋzˋ ∗w∗"),
            (
                "container_memory_bytes of a*b, ~/.profile",
                "container_memory_bytes of a*b, ∼/.profile",
            ),
            ("> quoted, 5 > 4", "› quoted, 5 &gt; 4"),
            ("```rm -rf``` (_all_)", "ˋˋˋrm -rfˋˋˋ (ˍallˍ)"),
            ("a__b _", "aˍˍb ˍ"),
        ] {
            assert_eq!(escaped(value), expected);
        }
        let cause = Some("Cause: `kubectl` shows _all_ of ~it~ and *more*".to_owned());
        let link = "https://tarsy.example.com/~ops/_x_/sessions/1";
        let title = "`down` a*b_c _d_".to_owned();
        let summary = Summary {
            title,
            analysis: cause,
            ..notification().summary
        };
        let marked = Notification {
            summary,
            url: Some(link.to_owned()),
            ..notification()
        };
        let expected = format!(
            "✅ *ˋdownˋ a∗b_c ˍdˍ*\ncritical, completed after 6.1 s\nˋkubectlˋ shows ˍallˍ of ∼it∼ and ∗more∗\n\
             <{link}|Open the investigation>"
        );
        assert_eq!(shown(&message(&marked)), expected);
        let template = Some(Template::parse("_{title}_ <{link}|open>").unwrap());
        let body = message(&Notification { template, ..marked });
        assert_eq!(
            shown(&body),
            format!("_ˋdownˋ a*b_c ˍdˍ_ <{link}|open>"),
            "the template keeps its own marks"
        );
    }

    #[test]
    fn a_reply_names_its_thread_and_a_repetition_says_so() {
        let repeated = Notification {
            may_repeat: true,
            ..notification()
        };
        let body = post(&repeated, "C0123", Some("1700.1"));
        assert_eq!(
            (&body["channel"], &body["thread_ts"]),
            (&json!("C0123"), &json!("1700.1"))
        );
        assert_eq!(
            body["metadata"]["event_payload"]["id"],
            json!(repeated.key.id())
        );
        assert!(shown(&body).ends_with(&format!("_{MAY_REPEAT}_")), "{body}");
        assert_eq!(post(&notification(), "C0123", None).get("thread_ts"), None);
    }
}
