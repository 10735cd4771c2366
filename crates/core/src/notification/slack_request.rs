//! The messages of Slack about a call that waits for a person: with buttons while it waits, without them afterwards.
//!
//! The arguments are preformatted rich text, which knows no markup, so a value in them is only itself. They are shown
//! whole or not at all: a message that cannot show all of them has no button.
//! Source: <https://docs.slack.dev/reference/block-kit>.

use serde_json::{Value, json};

use super::request::Request;
use super::slack::{bold, escaped, with_entities};
use super::template::Values;
use super::{MAY_REPEAT, Notification};
use crate::approvals::slack::{COMMENT_ACTION, SlackButton, action_id};
use crate::approvals::{Channel, Choice};
use crate::readable::bounded::line;
use crate::visible::has_invisible;

/// Longer arguments are shown on the page only.
pub(super) const MAX_ARGUMENTS: usize = 2_500;
/// The longest text of the model, in characters.
const MAX_WHY: usize = 500;
/// The longest comment; the record of a vote has as many.
const MAX_COMMENT: usize = 2_000;

/// The message that asks, with buttons; `None` if this message cannot show the call or Slack cannot decide about it.
pub fn offer(notification: &Notification) -> Option<Value> {
    let request = notification.summary.request.as_ref()?;
    if !shows_all(&request.arguments) || !request.is_open() || !request.accepts(Channel::Slack) {
        return None;
    }
    let button = request.button(notification.about);
    let mut blocks = call(notification, request);
    blocks.push(comment(&button));
    blocks.push(buttons(&button, request));
    Some(body(blocks, &request.in_words()))
}

/// Whether a person sees in Slack what the tool will get: a direction or a character without width could make the
/// arguments look like others.
fn shows_all(arguments: &str) -> bool {
    arguments.chars().count() <= MAX_ARGUMENTS && !has_invisible(arguments)
}

/// The message in the place of the one that asked, once the request has an outcome; `None` while it has none.
pub fn outcome(notification: &Notification) -> Option<Value> {
    let request = notification.summary.request.as_ref()?;
    if request.is_open() {
        return None;
    }
    let blocks = if request.arguments.chars().count() <= MAX_ARGUMENTS {
        call(notification, request)
    } else {
        vec![section(&head(notification, request))]
    };
    Some(body(blocks, &request.in_words()))
}

fn body(blocks: Vec<Value>, text: &str) -> Value {
    json!({
        "text": escaped(text),
        "blocks": blocks,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// The alert, the tool, all arguments and the words of the model.
fn call(notification: &Notification, request: &Request) -> Vec<Value> {
    let why = line(&request.why, MAX_WHY);
    let mut blocks = vec![
        section(&head(notification, request)),
        json!({
            "type": "rich_text",
            "elements": [{
                "type": "rich_text_preformatted",
                "elements": [{"type": "text", "text": arguments(request)}],
            }],
        }),
    ];
    if !why.is_empty() {
        blocks.push(section(&format!("*The model says:* {}", escaped(&why))));
    }
    blocks
}

/// Slack refuses an empty text.
fn arguments(request: &Request) -> String {
    if request.arguments.trim().is_empty() {
        "(no arguments)".to_owned()
    } else {
        request.arguments.clone()
    }
}

fn head(notification: &Notification, request: &Request) -> String {
    let values = Values::of_notification(notification);
    let mut lines = vec![
        format!("✋ *{}*", bold(&escaped(&values.title))),
        escaped(&request.in_words()),
    ];
    if !values.link.is_empty() {
        lines.push(format!(
            "<{}|Open the request with its evidence>",
            with_entities(&values.link)
        ));
    }
    if notification.may_repeat {
        lines.push(format!("_{MAY_REPEAT}_"));
    }
    lines.join("\n")
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}})
}

fn comment(button: &SlackButton) -> Value {
    json!({
        "type": "input",
        "block_id": button.comment_block_id(),
        "optional": true,
        "label": {"type": "plain_text", "text": "Comment for the model and the record"},
        "element": {
            "type": "plain_text_input",
            "action_id": COMMENT_ACTION,
            "multiline": true,
            "max_length": MAX_COMMENT,
        },
    })
}

fn buttons(button: &SlackButton, request: &Request) -> Value {
    let elements = Choice::ALL.map(|choice| {
        let mut element = json!({
            "type": "button",
            "action_id": action_id(choice),
            "value": button.value(),
            "text": {"type": "plain_text", "text": label(choice)},
        });
        let extra = match choice {
            Choice::Approve => vec![("style", json!("primary")), ("confirm", confirm(request))],
            Choice::Deny | Choice::DenySession => vec![("style", json!("danger"))],
        };
        if let Some(element) = element.as_object_mut() {
            element.extend(
                extra
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value)),
            );
        }
        element
    });
    json!({"type": "actions", "block_id": button.block_id(), "elements": elements})
}

fn label(choice: Choice) -> &'static str {
    match choice {
        Choice::Approve => "Approve",
        Choice::Deny => "Deny",
        Choice::DenySession => "Deny in this investigation",
    }
}

/// Slack asks once more, so a click by mistake sends nothing.
fn confirm(request: &Request) -> Value {
    let text = format!(
        "{} is sent exactly as it is shown.",
        line(&request.tool, 150)
    );
    let plain = |text: &str| json!({"type": "plain_text", "text": text});
    json!({
        "title": plain("Send this call?"),
        "text": plain(&text),
        "confirm": plain("Send it"),
        "deny": plain("Back"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::request::tests::{approved, request};
    use crate::notification::summary::Summary;
    use crate::notification::tests::{hostile, notification};
    use crate::notification::{Moment, NotificationKey, slack, webhook};
    use crate::visible::visible;

    fn about(request: Request) -> Notification {
        let notification = notification();
        Notification {
            key: NotificationKey {
                moment: Moment::Approval,
                request: Some(42),
                ..notification.key
            },
            summary: Summary {
                request: Some(request),
                outcome: None,
                analysis: None,
                ..notification.summary
            },
            url: Some("https://tarsy.example.com/approvals/s/42".to_owned()),
            ..notification
        }
    }

    fn kinds(body: &Value) -> Vec<&str> {
        let blocks = body["blocks"].as_array().unwrap();
        blocks
            .iter()
            .filter_map(|block| block["type"].as_str())
            .collect()
    }

    #[test]
    fn a_message_shows_the_whole_call_and_every_button_names_its_hash() {
        let asks = about(request());
        let body = offer(&asks).unwrap();
        assert_eq!(
            kinds(&body),
            ["section", "rich_text", "section", "input", "actions"]
        );
        assert_eq!(
            body.pointer("/blocks/1/elements/0/elements/0/text"),
            Some(&json!(request().arguments))
        );
        let button = request().button(asks.about);
        let actions = &body["blocks"][4];
        assert_eq!(actions["block_id"], json!(button.block_id()));
        let elements = actions["elements"].as_array().unwrap();
        let shown: Vec<_> = elements
            .iter()
            .map(|each| {
                (
                    each["action_id"].as_str().unwrap(),
                    each["value"].as_str().unwrap(),
                )
            })
            .collect();
        let value = button.value();
        assert_eq!(
            shown,
            [
                ("tarsy_approve", value.as_str()),
                ("tarsy_deny", &value),
                ("tarsy_deny_session", &value)
            ]
        );
        assert!(elements[0].get("confirm").is_some() && elements[1].get("confirm").is_none());
        assert_eq!(
            body["blocks"][3]["block_id"],
            json!(button.comment_block_id())
        );
    }

    #[test]
    fn what_cannot_be_shown_or_decided_here_has_no_button() {
        let long = "x".repeat(MAX_ARGUMENTS + 1);
        let elsewhere = vec!["web".to_owned()];
        for request in [
            Request {
                arguments: long.clone(),
                ..request()
            },
            Request {
                arguments: "{\"pod\": \"a\u{202e}b\"}".to_owned(),
                ..request()
            },
            Request {
                channels: elsewhere,
                ..request()
            },
            approved(),
        ] {
            assert_eq!(offer(&about(request)), None);
        }
        let link = slack::message(&about(Request {
            arguments: long,
            ..request()
        }));
        let text = link["text"].as_str().unwrap();
        assert!(
            text.contains("waits for a person") && text.contains("/approvals/s/42"),
            "{text}"
        );
        assert_eq!(kinds(&link), ["section"]);
    }

    #[test]
    fn a_decided_request_has_its_outcome_and_no_button() {
        assert_eq!(outcome(&about(request())), None);
        let body = outcome(&about(approved())).unwrap();
        assert_eq!(kinds(&body), ["section", "rich_text", "section"]);
        assert!(
            body["text"]
                .as_str()
                .unwrap()
                .contains("approved by ana, bo (web)"),
            "{body}"
        );
        let long = Request {
            arguments: "x".repeat(9_000),
            ..approved()
        };
        assert_eq!(kinds(&outcome(&about(long)).unwrap()), ["section"]);
    }

    #[test]
    fn a_hostile_value_is_itself_and_every_text_is_within_the_limits() {
        let hostile = hostile().summary.title;
        let bad = Request {
            tool: hostile.clone(),
            policy: hostile.clone(),
            arguments: visible(&hostile).chars().take(MAX_ARGUMENTS).collect(),
            why: hostile.clone(),
            ..request()
        };
        let mut asks = about(bad.clone());
        asks.summary.title = hostile;
        let body = offer(&asks).unwrap();
        let blocks = body["blocks"].as_array().unwrap();
        for section in blocks.iter().filter(|block| block["type"] == "section") {
            let text = section["text"]["text"].as_str().unwrap();
            assert!(text.chars().count() <= 3_000, "{}", text.chars().count());
            assert!(!text.contains("<!") && !text.contains("<@"), "{text}");
        }
        assert_eq!(
            body.pointer("/blocks/1/elements/0/elements/0/text"),
            Some(&json!(bad.arguments))
        );
        let confirm = body
            .pointer("/blocks/4/elements/0/confirm/text/text")
            .unwrap();
        assert!(confirm.as_str().unwrap().chars().count() <= 300);
    }

    #[test]
    fn a_program_gets_the_request_and_the_address_of_its_page() {
        let body = webhook::message(&about(request()));
        assert_eq!(body["type"], json!("session.approval_requested"));
        assert_eq!(
            body["url"],
            json!("https://tarsy.example.com/approvals/s/42")
        );
        assert_eq!(body["request"]["call_sha256"], json!("ab".repeat(32)));
        assert_eq!(body["request"]["arguments"], json!(request().arguments));
    }
}
