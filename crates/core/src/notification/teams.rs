//! A message for a workflow of Microsoft Teams: one Adaptive Card.
//!
//! Each value is a run of a `RichTextBlock`, where Markdown has no meaning and `<at>` mentions no person: a card
//! mentions only what it lists as entities. A message has at most about 28 KB.

use serde_json::{Value, json};

use super::readable::with_citations_in_words;
use super::template::Values;
use super::{MAY_REPEAT, Notification};
use crate::readable::bounded::cut;
use crate::summary::{Command, command};

/// A text of the operator's template, in characters.
const MAX_TEXT: usize = 3_000;

/// The body of the request.
pub fn message(notification: &Notification) -> Value {
    let values = Values::of_notification(notification);
    let mut body = match &notification.template {
        Some(template) => {
            let filled = cut(template.filled(&values, str::to_owned), MAX_TEXT);
            filled
                .lines()
                .map(|line| paragraph(line, json!({})))
                .collect()
        }
        None => usual(&values),
    };
    body.extend(
        notification
            .may_repeat
            .then(|| paragraph(MAY_REPEAT, json!({"isSubtle": true, "italic": true}))),
    );
    let mut actions = Vec::new();
    if !values.link.is_empty() {
        actions.push(
            json!({"type": "Action.OpenUrl", "title": "Open the investigation", "url": values.link}),
        );
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "fallbackText": values.title,
                "body": body,
                "actions": actions,
            },
        }],
    })
}

fn usual(values: &Values) -> Vec<Value> {
    let title = format!("{} {}", values.sign(), values.title);
    let mut body = vec![
        paragraph(&title, json!({"weight": "Bolder", "size": "Medium"})),
        paragraph(&values.facts(), json!({"isSubtle": true})),
    ];
    let texts = [
        (
            values.mark,
            json!({"weight": "Bolder", "color": "Attention"}),
        ),
        (values.review.as_str(), json!({"isSubtle": true})),
        (values.cause.as_str(), json!({})),
    ];
    body.extend(
        texts
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .map(|(text, style)| paragraph(text, style)),
    );
    body.extend(next_step(&values.next));
    let facts = values.facts_in_lines();
    body.extend(facts.lines().map(|fact| paragraph(fact, json!({}))));
    body.extend(
        values
            .labelled()
            .map(|(label, text)| paragraph(&format!("{label}: {text}"), json!({}))),
    );
    body
}

/// A next step. A command at its beginning has a separate paragraph, so that it can be copied.
fn next_step(next: &str) -> Vec<Value> {
    let (code, rest) = match command(next) {
        Some(Command { text, rest }) => (text, rest),
        None => ("", next),
    };
    let label = (!code.is_empty()).then_some("Do next:");
    let rest = with_citations_in_words(rest);
    let rest = if code.is_empty() && !rest.is_empty() {
        format!("Do next: {rest}")
    } else {
        rest
    };
    let mut paragraphs: Vec<Value> = label
        .map(|label| paragraph(label, json!({})))
        .into_iter()
        .collect();
    paragraphs
        .extend((!code.is_empty()).then(|| paragraph(code, json!({"fontType": "Monospace"}))));
    paragraphs.extend((!rest.is_empty()).then(|| paragraph(&rest, json!({}))));
    paragraphs
}

/// A text without Markdown; `style` has the properties of its run.
fn paragraph(text: &str, style: Value) -> Value {
    let mut run = json!({"type": "TextRun", "text": text});
    if let (Some(run), Value::Object(style)) = (run.as_object_mut(), style) {
        run.extend(style);
    }
    json!({"type": "RichTextBlock", "inlines": [run]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::tests::{hostile, notification};

    /// The largest message that Teams takes.
    const MAX_BYTES: usize = 28 * 1024;

    #[test]
    fn a_card_has_the_facts_and_one_button() {
        let message = message(&notification());
        let card = &message["attachments"][0]["content"];
        let texts: Vec<_> = card["body"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["inlines"][0]["text"].as_str().unwrap())
            .collect();
        assert_eq!(
            texts,
            [
                "✅ KubePodOOMKilled checkout",
                "critical, completed after 6.1 s, 2 cited events",
                "the heap limit leaves no room (event 5)",
                "Do next:",
                "kubectl set resources deploy/a_b --limits=memory=1Gi",
                "then wait",
                "• exit 137 (event 5)",
                "• limit 512Mi (event 7)",
                "Sure: likely, the exit code fits",
                "Not seen: the heap dump",
            ]
        );
        assert_eq!(card["actions"][0]["url"], json!(notification().url));
    }

    #[test]
    fn hostile_texts_stay_texts_within_the_size_of_a_message() {
        let message = message(&Notification {
            may_repeat: true,
            ..hostile()
        });
        let written = message.to_string();
        assert!(written.len() <= MAX_BYTES, "{}", written.len());
        let card = &message["attachments"][0]["content"];
        let blocks = card["body"].as_array().unwrap();
        assert!(
            blocks.iter().all(|block| block["type"] == "RichTextBlock"),
            "no block reads Markdown: {card}"
        );
        assert_eq!(card.get("msteams"), None, "it mentions no person");
        assert!(
            card["body"][0]["inlines"][0]["text"]
                .as_str()
                .unwrap()
                .contains("<at>all</at>")
        );
    }
}
