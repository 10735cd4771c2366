//! `chat.update`: the message about a call that waited for a person gets its outcome in the place of its buttons.
//!
//! A repeated update changes nothing, so an attempt whose answer was lost is simply made again.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use super::answer;
use super::slack::{Api, Posted, posted};
use tarsy_core::alert::refs::SlackThread;
use tarsy_core::notification::{Notification, slack};
use tarsy_engine::ports::{Arrival, ProviderAnswer};

impl Api<'_> {
    /// Replaces the message that asked.
    ///
    /// # Errors
    /// A text with the reason, when the address of the API is no URL.
    pub(super) async fn update(&self, message: &Notification) -> Result<ProviderAnswer, String> {
        let request = message.summary.request.as_ref();
        let receipt = request.and_then(|request| request.receipt.as_deref());
        let Some(sent) = receipt.and_then(SlackThread::parse) else {
            return Ok(nothing("no message of this route has asked"));
        };
        let Some(mut body) = slack::outcome(message) else {
            return Ok(answer::unavailable(
                "the request has no outcome yet",
                Arrival::Refused,
            ));
        };
        if let Some(body) = body.as_object_mut() {
            body.insert("channel".to_owned(), json!(sent.channel));
            body.insert("ts".to_owned(), json!(sent.ts));
        }
        let request = self
            .client
            .post(self.method("chat.update")?)
            .header(AUTHORIZATION, self.token.clone())
            .header(CONTENT_TYPE, "application/json; charset=utf-8")
            .body(body.to_string());
        Ok(match request.send().await {
            Ok(response) => match posted(response).await {
                Posted::Answered(ProviderAnswer::Accepted { .. }) => {
                    ProviderAnswer::Accepted { receipt: None }
                }
                Posted::Answered(answer) => answer,
                // Deleted, or the bot has left the channel.
                Posted::NotThere(_) => nothing("the message that asked is not there any more"),
            },
            Err(error) => answer::failed(error),
        })
    }
}

fn nothing(reason: &str) -> ProviderAnswer {
    ProviderAnswer::NoPlace {
        reason: reason.to_owned(),
    }
}
