//! The envelope that SNS puts around an alert, and the text that its signature covers.

use chrono::{DateTime, Utc};
use data_encoding::BASE64;
use serde::Deserialize;

/// A message with everything that its signature needs. Other fields are not covered by it.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: MessageType,
    pub(super) message_id: String,
    pub(super) topic_arn: String,
    pub(super) timestamp: DateTime<Utc>,
    pub(super) token: Option<String>,
    pub(super) certificate_url: String,
    pub(super) signature: Vec<u8>,
    /// The text that is signed.
    pub(super) canonical: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum MessageType {
    Notification,
    SubscriptionConfirmation,
    UnsubscribeConfirmation,
}

/// The fields as they are sent. A field that is sent twice is an error, because readers could disagree about its value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wire {
    #[serde(rename = "Type")]
    kind: MessageType,
    message: String,
    message_id: String,
    subject: Option<String>,
    #[serde(rename = "SubscribeURL")]
    subscribe_url: Option<String>,
    timestamp: String,
    token: Option<String>,
    topic_arn: String,
    signature_version: String,
    signature: String,
    #[serde(rename = "SigningCertURL")]
    signing_cert_url: String,
}

impl Message {
    /// Reads a body.
    ///
    /// # Errors
    /// A text for the sender, when the body is no signed message.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        let wire = serde_json::from_slice::<Wire>(body);
        let wire = wire.map_err(|_| {
            "body is not a signed message of SNS (raw message delivery has to be off)".to_owned()
        })?;
        if wire.signature_version != "2" {
            return Err(
                "the topic signs with SHA-1; set its attribute SignatureVersion to 2".to_owned(),
            );
        }
        let signature = BASE64
            .decode(wire.signature.as_bytes())
            .map_err(|_| "Signature is not Base64".to_owned())?;
        let timestamp = DateTime::parse_from_rfc3339(&wire.timestamp);
        let timestamp = timestamp
            .map_err(|_| "Timestamp is not a time".to_owned())?
            .with_timezone(&Utc);
        let canonical = wire.canonical();
        Ok(Self {
            kind: wire.kind,
            message_id: wire.message_id,
            topic_arn: wire.topic_arn,
            timestamp,
            token: wire.token,
            certificate_url: wire.signing_cert_url,
            signature,
            canonical,
        })
    }
}

impl Wire {
    /// Lines of names and values, sorted by name; a field that is absent has none.
    fn canonical(&self) -> String {
        let kind = match self.kind {
            MessageType::Notification => "Notification",
            MessageType::SubscriptionConfirmation => "SubscriptionConfirmation",
            MessageType::UnsubscribeConfirmation => "UnsubscribeConfirmation",
        };
        // A field that the other kind of message has is not signed.
        let (subject, subscribe_url, token) = match self.kind {
            MessageType::Notification => (self.subject.as_deref(), None, None),
            MessageType::SubscriptionConfirmation | MessageType::UnsubscribeConfirmation => {
                (None, self.subscribe_url.as_deref(), self.token.as_deref())
            }
        };
        let fields = [
            ("Message", Some(self.message.as_str())),
            ("MessageId", Some(&self.message_id)),
            ("Subject", subject),
            ("SubscribeURL", subscribe_url),
            ("Timestamp", Some(&self.timestamp)),
            ("Token", token),
            ("TopicArn", Some(&self.topic_arn)),
            ("Type", Some(kind)),
        ];
        fields
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}\n{}\n", value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message() -> Value {
        json!({
            "Type": "Notification", "MessageId": "m-1", "TopicArn": "arn", "Message": "{\"a\": 1}\nb", "Subject": "S",
            "Timestamp": "2026-11-25T10:00:00.123Z", "SignatureVersion": "2", "Signature": "AAEC",
            "SigningCertURL": "https://x", "UnsubscribeURL": "https://y",
        })
    }

    fn parse(value: &Value) -> Result<Message, String> {
        Message::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_signature_covers_names_and_values_in_their_order() {
        let mut value = message();
        let common = "Message\n{\"a\": 1}\nb\nMessageId\nm-1\n";
        let end = "TopicArn\narn\nType\nNotification\n";
        let read = parse(&value).unwrap();
        assert_eq!(
            read.canonical,
            format!("{common}Subject\nS\nTimestamp\n2026-11-25T10:00:00.123Z\n{end}")
        );
        assert_eq!(
            (read.kind, read.signature),
            (MessageType::Notification, vec![0, 1, 2])
        );
        value["Subject"] = Value::Null;
        assert_eq!(
            parse(&value).unwrap().canonical,
            format!("{common}Timestamp\n2026-11-25T10:00:00.123Z\n{end}")
        );

        value["Type"] = "SubscriptionConfirmation".into();
        value["Subject"] = "not signed".into();
        value["Token"] = "t".into();
        value["SubscribeURL"] = "https://s".into();
        let end = "Timestamp\n2026-11-25T10:00:00.123Z\nToken\nt\nTopicArn\narn\nType\nSubscriptionConfirmation\n";
        assert_eq!(
            parse(&value).unwrap().canonical,
            format!("{common}SubscribeURL\nhttps://s\n{end}")
        );
    }

    #[test]
    fn a_message_without_a_signature_of_version_two_is_refused() {
        let changed = |name: &str, new: Value| {
            let mut value = message();
            value[name] = new;
            parse(&value).unwrap_err()
        };
        assert!(changed("SignatureVersion", "1".into()).contains("SignatureVersion to 2"));
        assert!(changed("Signature", "%".into()).contains("Base64"));
        assert!(changed("Timestamp", "yesterday".into()).contains("not a time"));
        assert!(changed("Type", "Other".into()).contains("not a signed message"));
        for body in ["", "[]", "{}", "{\"AlarmName\": \"x\"}"] {
            assert!(
                Message::parse(body.as_bytes())
                    .unwrap_err()
                    .contains("raw message delivery"),
                "{body}"
            );
        }
        let twice = message()
            .to_string()
            .replacen('{', "{\"MessageId\": \"m-0\", ", 1);
        assert!(
            Message::parse(twice.as_bytes()).is_err(),
            "a field that is sent twice"
        );
    }
}
