//! The API of Slack: `chat.postMessage`, and the search for a message whose answer got lost.
//!
//! Slack has no idempotency key: it ignores the `client_msg_id` of a program. But a message keeps its metadata, so an
//! attempt after one in doubt first reads the channel since the investigation began, or the thread, and looks for our
//! id. That needs the scope `channels:history` (`groups:history` for a private channel); without it the message is sent
//! with the remark that it may be a repetition.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{self, retry_after, unavailable};
use super::secret;
use tarsy_core::alert::refs::{self, SlackThread};
use tarsy_core::notification::{Moment, Notification, slack};
use tarsy_engine::ports::{Arrival, ProviderAnswer};

/// A longer time stamp is none, and names no message.
const MAX_TS_BYTES: usize = 40;
/// Pages of the channel in which a message is searched.
const MAX_PAGES: usize = 5;
/// Messages of a page; the most that Slack recommends.
const PAGE: u32 = 200;
/// The longest time by which Slack's clock may lag.
const CLOCK_MARGIN: TimeDelta = TimeDelta::minutes(5);
/// Errors that no later attempt with the same message can change.
const REJECTED: [&str; 8] = [
    "msg_too_long",
    "msg_blocks_too_long",
    "no_text",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_arguments",
    "metadata_too_large",
    "invalid_metadata_format",
];
/// Errors after which Slack may have the message.
const UNKNOWN: [&str; 4] = [
    "fatal_error",
    "internal_error",
    "request_timeout",
    "service_unavailable",
];

/// Errors about the channel or the message that is replied to.
const NOT_THERE: [&str; 9] = [
    "channel_not_found",
    "not_in_channel",
    "is_archived",
    "thread_not_found",
    "message_not_found",
    "invalid_thread_ts",
    "cannot_reply_to_message",
    "restricted_action",
    "restricted_action_thread_locked",
];

/// The way in which a person decides about a call that a message shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buttons {
    /// In the message: a process of this installation receives the clicks.
    Offered,
    /// On the page that the message links to.
    #[default]
    LinksOnly,
}

/// The API with a bot's token and a channel.
pub(super) struct Api<'a> {
    pub(super) client: &'a Client,
    pub(super) url: &'a str,
    pub(super) token: HeaderValue,
    pub(super) channel: &'a str,
    /// Other channels, in whose threads it may reply.
    pub(super) thread_channels: &'a [String],
    pub(super) buttons: Buttons,
}

/// The destination of a message: a channel, and the message in it that it replies to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// The thread of the alert's own message, or that of the session's first one.
    InThread(SlackThread),
    /// The route's channel, and there the first message of the session, as a worker of an earlier version stored it.
    OfRoute { thread: Option<String> },
}

/// The common fields of all responses.
#[derive(Deserialize)]
struct Reply {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    ts: Option<String>,
    #[serde(default)]
    messages: Vec<SlackMessage>,
    #[serde(default)]
    response_metadata: Option<Cursor>,
}

#[derive(Deserialize)]
struct SlackMessage {
    ts: String,
    #[serde(default)]
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Cursor {
    #[serde(default)]
    next_cursor: String,
}

impl Api<'_> {
    /// Posts a message, or finds that an earlier attempt has posted it. `first` is the receipt of the session's first
    /// message. Where the alert's own message cannot be replied to, the message goes to the channel of the route.
    ///
    /// # Errors
    /// A text with the reason, when the address of the API is no URL.
    pub(super) async fn deliver(
        &self,
        message: &Notification,
        first: Option<&str>,
    ) -> Result<ProviderAnswer, String> {
        let mut message = message.clone();
        let places = self.places(&message, first);
        if message.may_repeat {
            let mut is_absent = true;
            for place in &places {
                match self.find(&message, place).await? {
                    Lookup::Found(ts) => {
                        let receipt = place.receipt(&message, place.channel(self.channel), ts);
                        return Ok(ProviderAnswer::Found { receipt });
                    }
                    Lookup::Absent => {}
                    Lookup::Failed => is_absent = false,
                }
            }
            // Every message since then was read.
            message.may_repeat = !is_absent;
        }
        let mut answer = unavailable("the route has no channel", Arrival::Refused);
        for place in &places {
            match self.post(&message, place).await? {
                Posted::Answered(answer) => return Ok(answer),
                Posted::NotThere(refusal) => answer = refusal,
            }
        }
        Ok(answer)
    }

    /// Finds a message that has asked and that an earlier attempt may have posted. People have decided since, so it is
    /// not posted any more.
    ///
    /// # Errors
    /// A text with the reason, when the address of the API is no URL.
    pub(super) async fn search(
        &self,
        message: &Notification,
        first: Option<&str>,
    ) -> Result<ProviderAnswer, String> {
        let mut answer = ProviderAnswer::NoPlace {
            reason: "the request has an outcome".to_owned(),
        };
        for place in self.places(message, first) {
            match self.find(message, &place).await? {
                Lookup::Found(ts) => {
                    let receipt = place.receipt(message, place.channel(self.channel), ts);
                    return Ok(ProviderAnswer::Found { receipt });
                }
                Lookup::Absent => {}
                Lookup::Failed => {
                    answer = unavailable("the channel cannot be read", Arrival::Unknown);
                }
            }
        }
        Ok(answer)
    }

    /// The alert's own message, if it names one where the route may reply, and the session's first message; then the
    /// route's channel.
    fn places(&self, message: &Notification, first: Option<&str>) -> Vec<Destination> {
        let of_alert = message
            .summary
            .refs
            .get(refs::SLACK)
            .and_then(SlackThread::parse)
            .filter(|thread| {
                thread.channel == self.channel || self.thread_channels.contains(&thread.channel)
            });
        let of_first = first
            .and_then(SlackThread::parse)
            .filter(|thread| Some(thread) != of_alert.as_ref());
        let thread = first
            .filter(|first| !first.contains('/'))
            .map(str::to_owned);
        // A question that was asked in a thread is answered for the people of that thread.
        let of_route = (!message.stays_in_thread).then_some(Destination::OfRoute { thread });
        of_alert
            .into_iter()
            .chain(of_first)
            .map(Destination::InThread)
            .chain(of_route)
            .collect()
    }

    async fn post(&self, message: &Notification, place: &Destination) -> Result<Posted, String> {
        let channel = place.channel(self.channel);
        let offered = match (self.buttons, message.key.moment) {
            (Buttons::Offered, Moment::Approval) => slack::offer(message),
            (Buttons::Offered, Moment::Ended) => slack::to_judge(message),
            (Buttons::Offered | Buttons::LinksOnly, _) => None,
        };
        let body = offered.unwrap_or_else(|| slack::message(message));
        let body = slack::addressed(body, message, channel, place.thread()).to_string();
        let request = self.client.post(self.method("chat.postMessage")?);
        let request = request.header(AUTHORIZATION, self.token.clone());
        let response = request
            .header(CONTENT_TYPE, "application/json; charset=utf-8")
            .body(body)
            .send()
            .await;
        Ok(match response {
            Ok(response) => match posted(response).await {
                Posted::Answered(ProviderAnswer::Accepted { receipt }) => {
                    Posted::Answered(ProviderAnswer::Accepted {
                        receipt: receipt.and_then(|ts| place.receipt(message, channel, ts)),
                    })
                }
                Posted::Answered(answer) => Posted::Answered(answer),
                Posted::NotThere(refusal) => Posted::NotThere(refusal),
            },
            Err(error) => Posted::Answered(answer::failed(error)),
        })
    }

    /// Asks whether the token is accepted.
    ///
    /// # Errors
    /// A text with the reason, when it is not.
    pub(super) async fn check(&self) -> Result<(), String> {
        let reply = self
            .read("auth.test", &[])
            .await?
            .ok_or("the API gave no answer that can be read")?;
        if reply.ok {
            Ok(())
        } else {
            Err(format!("the API refuses the token: {}", reply.error))
        }
    }

    async fn find(&self, message: &Notification, place: &Destination) -> Result<Lookup, String> {
        let thread = place.thread();
        let id = message.key.id().to_string();
        let since = message
            .summary
            .ended_at
            .or(message.summary.began_at)
            .map(|at| at - CLOCK_MARGIN);
        let oldest = since.map_or_else(|| "0".to_owned(), |at| at.timestamp().to_string());
        let method = if thread.is_some() {
            "conversations.replies"
        } else {
            "conversations.history"
        };
        let limit = PAGE.to_string();

        let mut cursor = String::new();
        for _ in 0..MAX_PAGES {
            let mut query = vec![
                ("channel", place.channel(self.channel)),
                ("include_all_metadata", "true"),
                ("oldest", &oldest),
                ("limit", &limit),
                ("cursor", &cursor),
            ];
            query.extend(thread.map(|ts| ("ts", ts)));
            let Some(reply) = self.read(method, &query).await? else {
                return Ok(Lookup::Failed);
            };
            if !reply.ok {
                // Where nothing can be posted, nothing was.
                let is_absent = matches!(place, Destination::InThread(_))
                    && NOT_THERE.contains(&reply.error.as_str());
                return Ok(if is_absent {
                    Lookup::Absent
                } else {
                    Lookup::Failed
                });
            }
            let sent = reply.messages.iter().find(|message: &&SlackMessage| {
                message
                    .metadata
                    .as_ref()
                    .is_some_and(|metadata| is_ours(metadata, &id))
            });
            if let Some(message) = sent {
                return Ok(Lookup::Found(message.ts.clone()));
            }
            cursor = reply
                .response_metadata
                .map(|next| next.next_cursor)
                .unwrap_or_default();
            if cursor.is_empty() {
                return Ok(Lookup::Absent);
            }
        }
        Ok(Lookup::Failed)
    }

    async fn read(&self, method: &str, query: &[(&str, &str)]) -> Result<Option<Reply>, String> {
        let mut url = self.method(method)?;
        url.query_pairs_mut()
            .extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
        let response = self
            .client
            .get(url)
            .header(AUTHORIZATION, self.token.clone())
            .send()
            .await;
        let Ok(response) = response else {
            return Ok(None);
        };
        let body = answer::body(response).await.unwrap_or_default();
        Ok(serde_json::from_str(&body).ok())
    }

    pub(super) fn method(&self, name: &str) -> Result<Url, String> {
        secret::parsed(&format!("{}/{name}", self.url))
    }
}

impl Destination {
    fn channel<'p>(&'p self, of_route: &'p str) -> &'p str {
        match self {
            Self::InThread(thread) => &thread.channel,
            Self::OfRoute { .. } => of_route,
        }
    }

    fn thread(&self) -> Option<&str> {
        match self {
            Self::InThread(thread) => Some(&thread.ts),
            Self::OfRoute { thread } => thread.as_deref(),
        }
    }

    /// The stored receipt of a message, `<channel>/<ts>`: the first message of its thread, to which the next message of
    /// the session replies, because a reply starts no thread. That of a request is the message itself, which is changed
    /// later.
    fn receipt(&self, message: &Notification, channel: &str, ts: String) -> Option<String> {
        if ts.len() > MAX_TS_BYTES {
            return None;
        }
        if message.key.moment == Moment::Approval {
            return Some(format!("{channel}/{ts}"));
        }
        let first = match self {
            Self::InThread(thread) => thread.ts.clone(),
            Self::OfRoute { thread } => thread.clone().unwrap_or(ts),
        };
        // Another server that speaks this API may have other time stamps.
        let whole = SlackThread::new(channel, &first);
        let whole = whole.map(|SlackThread { channel, ts }| format!("{channel}/{ts}"));
        Some(whole.unwrap_or(first))
    }
}

/// The answer to a message.
pub(super) enum Posted {
    Answered(ProviderAnswer),
    /// The channel or message does not exist, or this bot may not write there.
    NotThere(ProviderAnswer),
}

fn is_ours(metadata: &Value, id: &str) -> bool {
    let text = |pointer: &str| metadata.pointer(pointer).and_then(Value::as_str);
    text("/event_type") == Some(slack::METADATA_TYPE) && text("/event_payload/id") == Some(id)
}

/// The result of the search for a message.
enum Lookup {
    /// The message, with its time stamp.
    Found(String),
    Absent,
    /// The channel cannot be read, or has too many messages.
    Failed,
}

/// Most errors have the status 200 and a word.
pub(super) async fn posted(response: Response) -> Posted {
    let pause = retry_after(response.headers());
    if !response.status().is_success() {
        return Posted::Answered(answer::of_status(response).await);
    }
    let Some(body) = answer::body(response).await else {
        return Posted::Answered(unavailable("the answer broke off", Arrival::Unknown));
    };
    match serde_json::from_str::<Reply>(&body) {
        Ok(Reply { ok: true, ts, .. }) => {
            Posted::Answered(ProviderAnswer::Accepted { receipt: ts })
        }
        Ok(Reply { error, .. }) if NOT_THERE.contains(&error.as_str()) => {
            Posted::NotThere(refused(&error, pause))
        }
        Ok(Reply { error, .. }) => Posted::Answered(refused(&error, pause)),
        Err(_) => Posted::Answered(unavailable(
            "the answer is not one of Slack's API",
            Arrival::Unknown,
        )),
    }
}

fn refused(error: &str, retry_after: Option<Duration>) -> ProviderAnswer {
    let reason = format!("the API answered {error}");
    if REJECTED.contains(&error) {
        return ProviderAnswer::Rejected { reason };
    }
    let arrival = if UNKNOWN.contains(&error) {
        Arrival::Unknown
    } else {
        Arrival::Refused
    };
    ProviderAnswer::Unavailable {
        reason,
        retry_after,
        arrival,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_of_the_api_is_final_only_if_the_message_is_wrong() {
        assert!(matches!(
            refused("invalid_blocks", None),
            ProviderAnswer::Rejected { .. }
        ));
        for (error, arrival) in [
            ("invalid_auth", Arrival::Refused),
            ("not_in_channel", Arrival::Refused),
            ("ratelimited", Arrival::Refused),
            ("internal_error", Arrival::Unknown),
        ] {
            assert_eq!(
                refused(error, None),
                unavailable(format!("the API answered {error}"), arrival)
            );
        }
    }

    #[test]
    fn a_message_is_ours_by_type_and_id() {
        let metadata =
            |kind: &str, id: &str| json!({"event_type": kind, "event_payload": {"id": id}});
        assert!(is_ours(&metadata("tarsy_notification", "7"), "7"));
        assert!(
            !is_ours(&metadata("tarsy_notification", "8"), "7")
                && !is_ours(&metadata("other", "7"), "7")
        );
        assert!(!is_ours(&json!({}), "7"));
    }
}
