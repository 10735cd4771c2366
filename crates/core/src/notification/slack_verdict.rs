//! The message of Slack about an ended investigation, with buttons by which a person judges its analysis.
//! Source: <https://docs.slack.dev/reference/block-kit>.

use serde_json::{Value, json};

use super::summary::Outcome;
use super::{Moment, Notification, slack};
use crate::verdicts::slack::{CAUSE_ACTION, action_id, block_id, cause_block_id};
use crate::verdicts::{MAX_TEXT_CHARS, Rating};

/// The message with its buttons; `None` for one about something else than an analysis.
pub fn to_judge(notification: &Notification) -> Option<Value> {
    let summary = &notification.summary;
    let has_analysis = summary.outcome == Some(Outcome::Completed) && summary.analysis.is_some();
    if notification.key.moment != Moment::Ended || !has_analysis {
        return None;
    }
    let session = notification.about;
    let mut body = slack::message(notification);
    let blocks = body.get_mut("blocks")?.as_array_mut()?;
    blocks.push(json!({
        "type": "input",
        "block_id": cause_block_id(session),
        "optional": true,
        "label": {"type": "plain_text", "text": "What was the cause?"},
        "element": {
            "type": "plain_text_input",
            "action_id": CAUSE_ACTION,
            "multiline": true,
            "max_length": MAX_TEXT_CHARS,
        },
    }));
    let buttons = Rating::ALL.map(|rating| {
        json!({
            "type": "button",
            "action_id": action_id(rating),
            "text": {"type": "plain_text", "text": label(rating)},
        })
    });
    blocks.push(json!({"type": "actions", "block_id": block_id(session), "elements": buttons}));
    Some(body)
}

fn label(rating: Rating) -> &'static str {
    match rating {
        Rating::Right => "The analysis is right",
        Rating::Partly => "Partly right",
        Rating::Wrong => "Wrong",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::summary::Summary;
    use crate::notification::tests::notification;
    use crate::verdicts::slack::{rating, session};

    fn about(outcome: Outcome, analysis: Option<&str>) -> Notification {
        Notification {
            summary: Summary {
                outcome: Some(outcome),
                analysis: analysis.map(str::to_owned),
                ..notification().summary
            },
            ..notification()
        }
    }

    #[test]
    fn a_message_about_an_analysis_has_a_button_for_each_rating() {
        let ended = about(Outcome::Completed, Some("Cause: x"));
        let body = to_judge(&ended).unwrap();
        assert_eq!(body["text"], slack::message(&ended)["text"]);
        let blocks = body["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), 3);
        let actions = &blocks[2];
        assert_eq!(
            session(actions["block_id"].as_str().unwrap()),
            Some(ended.about)
        );
        let elements = actions["elements"].as_array().unwrap();
        let ratings: Vec<_> = elements
            .iter()
            .filter_map(|each| rating(each["action_id"].as_str()?))
            .collect();
        assert_eq!(ratings, Rating::ALL);
    }

    #[test]
    fn without_an_analysis_there_is_nothing_to_judge() {
        assert_eq!(to_judge(&about(Outcome::Completed, None)), None);
        for outcome in Outcome::ALL {
            let body = to_judge(&about(outcome, Some("Cause: x")));
            assert_eq!(body.is_some(), outcome == Outcome::Completed, "{outcome:?}");
        }
        let mut begun = about(Outcome::Completed, Some("Cause: x"));
        begun.key.moment = Moment::Started;
        assert_eq!(to_judge(&begun), None);
    }
}
