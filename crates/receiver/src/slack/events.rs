//! Reads an event of Slack: a mention of the bot in a thread, whose bytes were proven before.
//! Source: <https://docs.slack.dev/reference/events/app_mention>.

use serde::Deserialize;
use serde_json::Value;

use super::markup::plain;
use super::{SlackQuestion, SlackSettings};
use crate::response::Rejection;
use tarsy_core::alert::refs::SlackThread;
use tarsy_core::follow_up::MAX_CHAT_QUESTION_CHARS;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::question;

/// The longest id of Slack.
const MAX_ID_BYTES: usize = 40;
/// The longest challenge of Slack.
const MAX_CHALLENGE_BYTES: usize = 500;

/// The request of an event.
#[derive(Debug)]
pub(super) enum Event {
    /// Slack asks whether this address is one of the app.
    Challenge(String),
    /// A person asks.
    Question(SlackQuestion),
    /// Nothing that is answered here.
    Other,
}

/// The fields of the envelope that count. Slack sends many more.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    challenge: Option<String>,
    #[serde(default)]
    api_app_id: String,
    #[serde(default)]
    team_id: String,
    #[serde(default)]
    event_id: String,
    #[serde(default)]
    is_ext_shared_channel: Option<bool>,
    #[serde(default)]
    authorizations: Vec<Authorization>,
    #[serde(default)]
    event: Option<Mention>,
}

/// An installation of the app for which the event is sent.
#[derive(Deserialize)]
struct Authorization {
    #[serde(default)]
    user_id: String,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Deserialize)]
struct Mention {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    channel: String,
    #[serde(default)]
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
    /// The workspace of the author, under each of its names.
    #[serde(default)]
    team: Option<String>,
    #[serde(default)]
    user_team: Option<String>,
    #[serde(default)]
    source_team: Option<String>,
    /// Set for what no person has just written.
    #[serde(default)]
    bot_id: Value,
    #[serde(default)]
    subtype: Value,
    #[serde(default)]
    edited: Value,
}

/// The event of a body.
///
/// # Errors
/// When the body is no event, or one of another app or workspace.
pub(super) fn read(settings: &SlackSettings, body: &[u8]) -> Result<Event, Rejection> {
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|_| invalid("the body is no event of Slack"))?;
    if envelope.kind == "url_verification" {
        let challenge = envelope.challenge.unwrap_or_default();
        let is_plain = (1..=MAX_CHALLENGE_BYTES).contains(&challenge.len())
            && challenge.bytes().all(|byte| byte.is_ascii_graphic());
        return if is_plain {
            Ok(Event::Challenge(challenge))
        } else {
            Err(invalid("the challenge is none of Slack"))
        };
    }
    if envelope.api_app_id != settings.app || envelope.team_id != settings.team {
        return Err(Rejection::Unproven(
            "the event is one of another app or workspace".to_owned(),
        ));
    }
    if envelope.kind != "event_callback" {
        return Ok(Event::Other);
    }
    Ok(asked(settings, &envelope).map_or(Event::Other, Event::Question))
}

/// The question of a mention by a person of the workspace in a thread; `None` for everything else.
fn asked(settings: &SlackSettings, envelope: &Envelope) -> Option<SlackQuestion> {
    let mention = envelope.event.as_ref()?;
    let is_of_person = [&mention.bot_id, &mention.subtype, &mention.edited]
        .iter()
        .all(|sign| sign.is_null());
    if mention.kind != "app_mention" || !is_of_person || !is_id(&mention.user) {
        return None;
    }
    let ts = mention.thread_ts.as_ref()?;
    if *ts == mention.ts || !is_of_workspace(settings, envelope, mention) {
        return None;
    }
    let thread = SlackThread::new(&mention.channel, ts)?;
    let sent = SlackThread::new(&mention.channel, &mention.ts)?;
    if envelope.event_id.is_empty() || envelope.event_id.len() > MAX_ID_BYTES {
        return None;
    }
    let bot = envelope.authorizations.iter().find(|each| each.is_bot);
    let text = plain(&mention.text, bot.map(|bot| bot.user_id.as_str()));
    // A worker says that it is too long.
    let text: String = text.chars().take(MAX_CHAT_QUESTION_CHARS + 1).collect();
    // A mention without words asks nothing.
    question(text.as_bytes(), "", None).ok()?;
    // Slack repeats an event with its id.
    let parts = [
        b"slack",
        settings.team.as_bytes(),
        envelope.event_id.as_bytes(),
    ];
    Some(SlackQuestion {
        id: SessionId::of_message(&parts, milliseconds(&sent.ts)?),
        thread,
        user: mention.user.clone(),
        text,
    })
}

/// Whether the author belongs to the workspace. Without any name of theirs, only if no other one shares the channel.
fn is_of_workspace(settings: &SlackSettings, envelope: &Envelope, mention: &Mention) -> bool {
    let names = [&mention.team, &mention.user_team, &mention.source_team];
    let mut named = names.into_iter().flatten().peekable();
    if named.peek().is_none() {
        return envelope.is_ext_shared_channel == Some(false);
    }
    named.all(|team| *team == settings.team)
}

/// The time of a message in Unix milliseconds.
fn milliseconds(ts: &str) -> Option<u64> {
    let (seconds, fraction) = ts.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let millis: u64 = fraction.get(..3)?.parse().ok()?;
    seconds.checked_mul(1_000)?.checked_add(millis)
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn invalid(reason: &str) -> Rejection {
    Rejection::Invalid(reason.to_owned())
}
