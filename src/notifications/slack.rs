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
use crate::engine::ports::{Arrival, ProviderAnswer};
use crate::investigation::notification::{Notification, slack};

/// Pages of the channel in which a message is searched.
const MAX_PAGES: usize = 5;
/// Messages of a page; the most that Slack recommends.
const PAGE: u32 = 200;
/// How far Slack's clock may be behind ours.
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
const UNKNOWN: [&str; 4] = ["fatal_error", "internal_error", "request_timeout", "service_unavailable"];

/// The API with a bot's token and a channel.
pub(super) struct Api<'a> {
    pub(super) client: &'a Client,
    pub(super) url: &'a str,
    pub(super) token: HeaderValue,
    pub(super) channel: &'a str,
}

/// What every method answers.
#[derive(Deserialize)]
struct Reply {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    ts: Option<String>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    response_metadata: Option<Cursor>,
}

#[derive(Deserialize)]
struct Message {
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
    /// Posts a message, or finds that an earlier attempt has posted it. `thread` is the first message of the session.
    ///
    /// # Errors
    /// A text with the reason, when the address of the API is no URL.
    pub(super) async fn deliver(&self, message: &Notification, thread: Option<&str>) -> Result<ProviderAnswer, String> {
        let mut message = message.clone();
        if message.may_repeat {
            match self.find(&message, thread).await? {
                Search::Found(ts) => return Ok(ProviderAnswer::Found { receipt: Some(ts) }),
                // Every message since then was read.
                Search::Absent => message.may_repeat = false,
                Search::Failed => {}
            }
        }
        let body = slack::post(&message, self.channel, thread).to_string();
        let request = self.client.post(self.method("chat.postMessage")?);
        let request = request.header(AUTHORIZATION, self.token.clone());
        let response = request.header(CONTENT_TYPE, "application/json; charset=utf-8").body(body).send().await;
        Ok(match response {
            Ok(response) => posted(response).await,
            Err(error) => answer::failed(error),
        })
    }

    /// Asks whether the token is accepted.
    ///
    /// # Errors
    /// A text with the reason, when it is not.
    pub(super) async fn check(&self) -> Result<(), String> {
        let reply = self.read("auth.test", &[]).await?.ok_or("the API gave no answer that can be read")?;
        if reply.ok { Ok(()) } else { Err(format!("the API refuses the token: {}", reply.error)) }
    }

    async fn find(&self, message: &Notification, thread: Option<&str>) -> Result<Search, String> {
        let id = message.key.id().to_string();
        let since = message.summary.ended_at.or(message.summary.began_at).map(|at| at - CLOCK_MARGIN);
        let oldest = since.map_or_else(|| "0".to_owned(), |at| at.timestamp().to_string());
        let (method, limit) =
            (if thread.is_some() { "conversations.replies" } else { "conversations.history" }, PAGE.to_string());
        let mut cursor = String::new();
        for _ in 0..MAX_PAGES {
            let mut query = vec![
                ("channel", self.channel),
                ("include_all_metadata", "true"),
                ("oldest", &oldest),
                ("limit", &limit),
                ("cursor", &cursor),
            ];
            query.extend(thread.map(|ts| ("ts", ts)));
            let Some(reply) = self.read(method, &query).await?.filter(|reply| reply.ok) else {
                return Ok(Search::Failed);
            };
            let ours = |message: &&Message| message.metadata.as_ref().is_some_and(|metadata| is_ours(metadata, &id));
            if let Some(message) = reply.messages.iter().find(ours) {
                return Ok(Search::Found(message.ts.clone()));
            }
            cursor = reply.response_metadata.map(|next| next.next_cursor).unwrap_or_default();
            if cursor.is_empty() {
                return Ok(Search::Absent);
            }
        }
        Ok(Search::Failed)
    }

    async fn read(&self, method: &str, query: &[(&str, &str)]) -> Result<Option<Reply>, String> {
        let mut url = self.method(method)?;
        url.query_pairs_mut().extend_pairs(query.iter().filter(|(_, value)| !value.is_empty()));
        let response = self.client.get(url).header(AUTHORIZATION, self.token.clone()).send().await;
        let Ok(response) = response else { return Ok(None) };
        let body = answer::body(response).await.unwrap_or_default();
        Ok(serde_json::from_str(&body).ok())
    }

    fn method(&self, name: &str) -> Result<Url, String> {
        secret::parsed(&format!("{}/{name}", self.url))
    }
}

fn is_ours(metadata: &Value, id: &str) -> bool {
    let text = |pointer: &str| metadata.pointer(pointer).and_then(Value::as_str);
    text("/event_type") == Some(slack::METADATA_TYPE) && text("/event_payload/id") == Some(id)
}

/// What the search for a message has found.
enum Search {
    /// The message, with its time stamp.
    Found(String),
    Absent,
    /// The channel cannot be read, or has too many messages.
    Failed,
}

/// Most errors have the status 200 and a word.
async fn posted(response: Response) -> ProviderAnswer {
    let pause = retry_after(response.headers());
    if !response.status().is_success() {
        return answer::of_status(response).await;
    }
    let Some(body) = answer::body(response).await else {
        return unavailable("the answer broke off", Arrival::Unknown);
    };
    match serde_json::from_str::<Reply>(&body) {
        Ok(Reply { ok: true, ts, .. }) => ProviderAnswer::Accepted { receipt: ts },
        Ok(Reply { error, .. }) => refused(&error, pause),
        Err(_) => unavailable("the answer is not one of Slack's API", Arrival::Unknown),
    }
}

fn refused(error: &str, retry_after: Option<Duration>) -> ProviderAnswer {
    let reason = format!("the API answered {error}");
    if REJECTED.contains(&error) {
        return ProviderAnswer::Rejected { reason };
    }
    let arrival = if UNKNOWN.contains(&error) { Arrival::Unknown } else { Arrival::Refused };
    ProviderAnswer::Unavailable { reason, retry_after, arrival }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_of_the_api_is_final_only_if_the_message_is_wrong() {
        assert!(matches!(refused("invalid_blocks", None), ProviderAnswer::Rejected { .. }));
        for (error, arrival) in [
            ("invalid_auth", Arrival::Refused),
            ("not_in_channel", Arrival::Refused),
            ("ratelimited", Arrival::Refused),
            ("internal_error", Arrival::Unknown),
        ] {
            assert_eq!(refused(error, None), unavailable(format!("the API answered {error}"), arrival));
        }
    }

    #[test]
    fn a_message_is_ours_by_type_and_id() {
        let metadata = |kind: &str, id: &str| json!({"event_type": kind, "event_payload": {"id": id}});
        assert!(is_ours(&metadata("tarsy_notification", "7"), "7"));
        assert!(!is_ours(&metadata("tarsy_notification", "8"), "7") && !is_ours(&metadata("other", "7"), "7"));
        assert!(!is_ours(&json!({}), "7"));
    }
}
