//! Confirms a subscription, or logs the command with which a person does.

use reqwest::Client;
use serde::Deserialize;

use super::message::Message;
use super::topic::Topic;
use crate::response::Rejection;
use tarsy_http::outgoing;

const MAX_TOKEN_BYTES: usize = 512;
/// A larger body is no message about a subscription.
const MAX_CONTROL_BYTES: usize = 64 * 1024;

/// The token of a confirmation.
///
/// # Errors
/// When it is absent or no token of SNS.
pub(super) fn token(message: &Message) -> Result<&str, String> {
    let token = message.token.as_deref().filter(|token| is_token(token));
    token.ok_or_else(|| "the confirmation has no token of letters and digits".to_owned())
}

fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Logs the command that confirms a subscription. Topic and token have only characters that no shell interprets. The
/// mask of the log hides what follows `--token`, so the command gets the token from a variable with another name.
pub(super) fn log_command(topic: &Topic, token: &str) -> String {
    tracing::warn!(
        "sns subscription not confirmed: run CODE={token}; aws sns confirm-subscription --token ${{CODE}} --topic-arn {} \
         --region {}",
        topic.arn(),
        topic.region()
    );
    "the subscription is not confirmed: the log of the receiver has the command for it".to_owned()
}

/// Confirms the subscription at SNS, at an address that only the configured topic and the token determine.
pub(super) async fn confirm(
    client: &Client,
    topic: &Topic,
    token: &str,
) -> Result<String, Rejection> {
    let Some(url) = topic.confirmation_url(token) else {
        return Err(Rejection::Unproven("the topic has no address".to_owned()));
    };
    let failed = |reason: String| {
        tracing::warn!(
            topic = topic.arn(),
            "sns subscription not confirmed: {reason}"
        );
        Rejection::unavailable(
            "the subscription could not be confirmed: send the confirmation again",
        )
    };
    let answer = client
        .get(url)
        .send()
        .await
        .map_err(|error| failed(outgoing::cause(error)))?;
    if !answer.status().is_success() {
        return Err(failed(format!(
            "SNS answered with HTTP {}",
            answer.status().as_u16()
        )));
    }
    tracing::info!(topic = topic.arn(), "sns subscription confirmed");
    Ok("the subscription is confirmed".to_owned())
}

/// A message about a subscription that comes without a checked signature.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Unsigned {
    #[serde(rename = "Type")]
    kind: UnsignedKind,
    topic_arn: String,
    token: String,
}

#[derive(Debug, Deserialize)]
enum UnsignedKind {
    SubscriptionConfirmation,
    UnsubscribeConfirmation,
}

/// Reads a message about a subscription to a source whose senders prove themselves by a token. It is logged, and never
/// leads to a request. `None` for every other body.
pub(crate) fn unsigned_control(body: &[u8]) -> Option<String> {
    if body.len() > MAX_CONTROL_BYTES {
        return None;
    }
    let Unsigned {
        kind,
        topic_arn,
        token,
    } = serde_json::from_slice(body).ok()?;
    if !is_token(&token) {
        return None;
    }
    let topic = Topic::parse(&topic_arn)?;
    Some(match kind {
        UnsignedKind::SubscriptionConfirmation => log_command(&topic, &token),
        UnsignedKind::UnsubscribeConfirmation => {
            tracing::warn!(
                topic = topic.arn(),
                "sns subscription ended: SNS sends no further message of this topic"
            );
            "SNS has ended the subscription".to_owned()
        }
    })
}
