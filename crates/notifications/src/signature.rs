//! The headers of a webhook, by Standard Webhooks 1.0: `webhook-id`, `webhook-timestamp` and `webhook-signature`, an
//! HMAC-SHA-256 of `<id>.<timestamp>.<body>` in base64. `Idempotency-Key` repeats the id.
//! Source: <https://github.com/standard-webhooks/standard-webhooks>.

use data_encoding::BASE64;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac::{HMAC_SHA256, Key, sign};
use uuid::Uuid;

/// Begins a secret whose bytes are written in base64.
const ENCODED: &str = "whsec_";
/// A shorter key would be guessed.
const MIN_KEY_BYTES: usize = 16;

/// The key of a secret: its bytes, or those that it encodes.
///
/// # Errors
/// When the secret is too short, or no base64. The text does not show it.
pub(super) fn key(secret: &str) -> Result<Key, String> {
    let bytes = match secret.strip_prefix(ENCODED) {
        Some(encoded) => {
            let decoded = BASE64.decode(encoded.as_bytes());
            decoded.map_err(|_| "its secret begins with whsec_ and is no base64".to_owned())?
        }
        None => secret.as_bytes().to_vec(),
    };
    if bytes.len() < MIN_KEY_BYTES {
        return Err(format!(
            "its secret has {} bytes; accepted: at least {MIN_KEY_BYTES}",
            bytes.len()
        ));
    }
    Ok(Key::new(HMAC_SHA256, &bytes))
}

/// The headers of a body that is sent at this time, in Unix seconds.
pub(super) fn headers(id: Uuid, timestamp: i64, body: &str, key: Option<&Key>) -> HeaderMap {
    let signed = key.map(|key| sign(key, format!("{id}.{timestamp}.{body}").as_bytes()));
    let headers = [
        ("webhook-id", Some(id.to_string())),
        ("idempotency-key", Some(id.to_string())),
        ("webhook-timestamp", Some(timestamp.to_string())),
        (
            "webhook-signature",
            signed.map(|tag| format!("v1,{}", BASE64.encode(tag.as_ref()))),
        ),
    ];
    headers
        .into_iter()
        .filter_map(|(name, text): (&'static str, Option<String>)| {
            Some((
                HeaderName::from_static(name),
                HeaderValue::from_str(&text?).ok()?,
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let content = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        assert_eq!(
            BASE64.encode(sign(&key, content.as_bytes()).as_ref()),
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn the_headers_have_id_time_and_signature() {
        let id = Uuid::nil();
        let unsigned = headers(id, 7, "{}", None);
        assert_eq!(unsigned["webhook-id"], *id.to_string());
        assert_eq!(unsigned.get("webhook-signature"), None);
        let key = key("0123456789abcdef").unwrap();
        let signed = headers(id, 7, "{}", Some(&key));
        assert!(
            signed["webhook-signature"]
                .to_str()
                .unwrap()
                .starts_with("v1,")
        );
        assert_ne!(
            signed["webhook-signature"],
            headers(id, 8, "{}", Some(&key))["webhook-signature"]
        );
    }

    #[test]
    fn a_weak_secret_is_refused_without_being_shown() {
        for (secret, why) in [
            ("short", "at least 16"),
            ("whsec_%%", "no base64"),
            ("whsec_YQ==", "at least 16"),
        ] {
            let fault = key(secret).unwrap_err();
            assert!(fault.contains(why) && !fault.contains("short"), "{fault}");
        }
    }
}
