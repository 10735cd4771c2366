//! Reads a click on a button: a form with one JSON document, whose bytes were proven before.

use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;
use uuid::Uuid;

use super::{SlackClick, SlackMessage, SlackSettings};
use crate::response::Rejection;
use tarsy_core::approvals::slack::{COMMENT_ACTION, SlackButton};
use tarsy_core::approvals::{self, Choice, DecisionMessage, MESSAGE_FORM, Topic, Voter};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::slack::CAUSE_ACTION;
use tarsy_core::verdicts::{self, MAX_TEXT_CHARS, Rating, VerdictMessage};

/// The longest id of Slack.
const MAX_ID_BYTES: usize = 40;
/// The longest address for an answer.
const MAX_URL_BYTES: usize = 500;

/// The fields of an interaction that count. Slack sends many more.
#[derive(Deserialize)]
struct Interaction {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    api_app_id: String,
    #[serde(default)]
    team: Option<Id>,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    response_url: Option<String>,
    #[serde(default)]
    actions: Vec<Action>,
    #[serde(default)]
    state: Value,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
struct User {
    id: String,
    #[serde(default)]
    team_id: String,
}

#[derive(Deserialize)]
struct Action {
    action_id: String,
    #[serde(default)]
    block_id: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    action_ts: String,
}

/// The meaning of one of our buttons.
#[derive(Clone, Copy, Debug)]
enum Button {
    Decision(Choice),
    Verdict(Rating),
}

impl Button {
    fn parse(action_id: &str) -> Option<Self> {
        let decision = approvals::slack::choice(action_id).map(Self::Decision);
        decision.or_else(|| verdicts::slack::rating(action_id).map(Self::Verdict))
    }
}

/// The meaning of a click; `None` for an interaction that has none, such as a click on a link.
///
/// # Errors
/// When the body is no interaction, or one of another app, workspace or person.
pub(super) fn read(settings: &SlackSettings, body: &[u8]) -> Result<Option<SlackClick>, Rejection> {
    let interaction: Interaction = serde_json::from_str(&payload(body)?)
        .map_err(|_| invalid("the payload is no interaction of Slack"))?;
    let team = interaction.team.as_ref().map(|team| team.id.as_str());
    if interaction.api_app_id != settings.app || team != Some(settings.team.as_str()) {
        return Err(Rejection::Unproven(
            "the interaction is one of another app or workspace".to_owned(),
        ));
    }
    if interaction.kind != "block_actions" {
        return Ok(None);
    }
    let mut ours = interaction
        .actions
        .iter()
        .filter_map(|action| Some((action, Button::parse(&action.action_id)?)));
    let Some((action, button)) = ours.next() else {
        return Ok(None);
    };
    if ours.next().is_some() {
        return Err(invalid("the interaction has several decisions"));
    }
    if action.action_ts.is_empty() || action.action_ts.len() > MAX_ID_BYTES {
        return Err(invalid("the click has no time"));
    }
    let pressed = Pressed {
        settings,
        interaction: &interaction,
        action,
        user: person(settings, interaction.user.as_ref())?,
    };
    match button {
        Button::Decision(choice) => pressed.decision(choice),
        Button::Verdict(rating) => pressed.verdict(rating),
    }
    .map(Some)
}

/// A click on one of our buttons by a person of the workspace.
struct Pressed<'a> {
    settings: &'a SlackSettings,
    interaction: &'a Interaction,
    action: &'a Action,
    user: &'a str,
}

impl Pressed<'_> {
    fn decision(&self, verdict: Choice) -> Result<SlackClick, Rejection> {
        let value = self.action.value.as_deref().unwrap_or_default();
        let button = SlackButton::parse(&self.action.block_id, value)
            .ok_or_else(|| invalid("the button is none of a call that waits"))?;
        let session = button.request.session;
        let message = DecisionMessage {
            v: MESSAGE_FORM,
            request: button.request.to_string(),
            call: button.call,
            seen_updates: button.updates,
            verdict,
            comment: self.text(&button.comment_block_id(), COMMENT_ACTION),
            by: Some(self.voter()),
            from: None,
            response_url: self.answer_url(),
        };
        Ok(SlackClick {
            id: self.id(session),
            topic: Topic::Decision(session),
            message: SlackMessage::Decision(message),
        })
    }

    fn verdict(&self, verdict: Rating) -> Result<SlackClick, Rejection> {
        let session = verdicts::slack::session(&self.action.block_id)
            .ok_or_else(|| invalid("the button is none of an investigation"))?;
        let message = VerdictMessage {
            v: MESSAGE_FORM,
            verdict,
            cause: self.text(&verdicts::slack::cause_block_id(session), CAUSE_ACTION),
            action: None,
            by: Some(self.voter()),
            from: None,
            response_url: self.answer_url(),
        };
        Ok(SlackClick {
            id: self.id(session),
            topic: Topic::Verdict(session),
            message: SlackMessage::Verdict(message),
        })
    }

    /// The same for a repetition of this click.
    fn id(&self, session: SessionId) -> Uuid {
        let name = format!(
            "slack/{}/{}/{}/{}/{}",
            self.settings.team,
            self.user,
            self.action.action_ts,
            self.action.block_id,
            self.action.action_id
        );
        Uuid::new_v5(&session.0, name.as_bytes())
    }

    fn voter(&self) -> Voter {
        Voter {
            name: self.user.to_owned(),
            groups: Vec::new(),
        }
    }

    /// The text that stands in an input of the message.
    fn text(&self, block_id: &str, action_id: &str) -> Option<String> {
        let values = self.interaction.state.get("values")?.get(block_id)?;
        let text = values.get(action_id)?.get("value")?.as_str()?.trim();
        let cut: String = text.chars().take(MAX_TEXT_CHARS).collect();
        (!cut.is_empty()).then_some(cut)
    }

    /// The address for an answer, if it is one of Slack's. Without it the person gets no answer, and the click counts.
    fn answer_url(&self) -> Option<String> {
        let url = self.interaction.response_url.as_deref();
        let url = url.filter(|url| url.len() <= MAX_URL_BYTES)?;
        let mut allowed = self.settings.answers.iter();
        let is_allowed = allowed.any(|beginning| url.starts_with(beginning));
        is_allowed.then(|| url.to_owned())
    }
}

/// The document of the form, which has to be its only one.
fn payload(body: &[u8]) -> Result<String, Rejection> {
    let mut payloads = form_urlencoded::parse(body).filter(|(key, _)| key == "payload");
    let payload = payloads.next().map(|(_, payload)| payload.into_owned());
    match (payload, payloads.next()) {
        (Some(payload), None) => Ok(payload),
        (Some(_) | None, _) => Err(invalid("the form has not exactly one payload")),
    }
}

/// The person of the workspace. A guest of a shared channel has another one and does not decide.
fn person<'i>(settings: &SlackSettings, user: Option<&'i User>) -> Result<&'i str, Rejection> {
    let user = user.ok_or_else(|| invalid("the interaction has no person"))?;
    if user.team_id != settings.team {
        return Err(Rejection::Unproven(
            "the person is one of another workspace".to_owned(),
        ));
    }
    let is_id = (1..=MAX_ID_BYTES).contains(&user.id.len())
        && user.id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_id {
        Ok(&user.id)
    } else {
        Err(invalid("the person has no id"))
    }
}

fn invalid(reason: &str) -> Rejection {
    Rejection::Invalid(reason.to_owned())
}
