//! What stands of an alert or a message outside of the journal of its investigation, without its secrets.

use std::borrow::Cow;

use serde_json::Value;

use crate::bus::StoredDeadLetter;
use crate::investigation::alert::Alert;
use crate::investigation::intake::{Hints, IntakeError, hashed, normalise};
use crate::investigation::mask::{HIDDEN, Mask};

/// Understands a body without its secrets.
///
/// JSON is masked before it is flattened: keys and values still stand together. What makes two alerts the same comes from
/// the body as it is; a fingerprint that holds a secret is its hash.
///
/// # Errors
/// When the body is not text, or nothing is in it.
pub fn alert(mask: &Mask, body: &[u8], hints: &Hints) -> Result<Alert, IntakeError> {
    let written = normalise(body, hints)?;
    let shown = normalise(&masked_body(mask, body), hints);
    let shown = shown.unwrap_or_else(|_| Alert { text: HIDDEN.to_owned(), ..written.clone() });
    Ok(texts(mask, Alert { fingerprint: written.fingerprint, members: written.members, ..shown }))
}

/// The alert with each of its texts masked.
pub fn texts(mask: &Mask, alert: Alert) -> Alert {
    let text = |text: String| mask.apply(&text).into_owned();
    let fingerprint = match mask.apply(&alert.fingerprint) {
        Cow::Borrowed(_) => alert.fingerprint,
        Cow::Owned(masked) if masked == alert.fingerprint => masked,
        Cow::Owned(_) => hashed(&alert.fingerprint),
    };
    Alert {
        title: text(alert.title),
        text: text(alert.text),
        alert_type: text(alert.alert_type),
        runbook_url: alert.runbook_url.map(text),
        fingerprint,
        ..alert
    }
}

fn masked_body<'a>(mask: &Mask, body: &'a [u8]) -> Cow<'a, [u8]> {
    let Ok(text) = std::str::from_utf8(body) else { return Cow::Borrowed(body) };
    let text = text.trim_start_matches('\u{feff}');
    let masked = match serde_json::from_str::<Value>(text) {
        Ok(value) => mask.json(&value).to_string(),
        Err(_) => mask.apply(text).into_owned(),
    };
    Cow::Owned(masked.into_bytes())
}

/// A dead letter for people. The stream keeps headers and body as they came: a retry needs them.
pub fn dead_letter(mask: &Mask, letter: StoredDeadLetter) -> StoredDeadLetter {
    StoredDeadLetter {
        detail: mask.apply(&letter.detail).into_owned(),
        subject: letter.subject.split('.').map(|word| mask.apply(word)).collect::<Vec<_>>().join("."),
        headers: mask.each_text(letter.headers),
        ..letter
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn understood(body: &Value) -> Alert {
        alert(&Mask::new(["known-val5e".to_owned()]), body.to_string().as_bytes(), &Hints::default()).unwrap()
    }

    #[test]
    fn json_is_masked_before_it_is_flattened() {
        let body = json!({
            "alertname": "A", "summary": "the known-val5e is out",
            "db": {"password": 12_345_678, "user": "bob"},
            "env": [{"name": "DB_PASSWORD", "value": "hunter2-hunter2"}],
        });
        let text = understood(&body).text;
        for (shown, is_there) in
            [("12345678", false), ("hunter2", false), ("known-val5e", false), ("bob", true), ("DB_PASSWORD", true)]
        {
            assert_eq!(text.contains(shown), is_there, "{shown} {text}");
        }
    }

    #[test]
    fn a_fingerprint_that_holds_a_secret_is_its_hash_and_still_tells_alerts_apart() {
        let of = |key: &str| understood(&json!({"alertname": "A", "groupKey": key, "message": "m"})).fingerprint;
        let (one, other) = (of("url=postgres://a:w0rd-one@h/d"), of("url=postgres://a:w0rd-two@h/d"));
        assert!(
            one != other && [&one, &other].iter().all(|print| print.contains("sha256:") && !print.contains("w0rd"))
        );
        assert_eq!(of("url=postgres://a:w0rd-one@h/d"), one);
        assert!(of("{}:{alertname=\"A\"}").contains("{alertname=\"A\"}"));
    }
}
