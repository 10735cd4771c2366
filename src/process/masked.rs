//! Masks alerts and dead letters before they are stored or shown.

use std::borrow::Cow;

use tarsy_bus::StoredDeadLetter;
use tarsy_core::alert::{Alert, MemberReport};
use tarsy_core::intake::decode::decode;
use tarsy_core::intake::{Hints, Intake, IntakeError, hashed};
use tarsy_core::routing::Facts;
use tarsy_core::sources::Note;
use tarsy_mask::{HIDDEN, Mask};

/// A masked alert, and the numbers of the other parts of its body, if no message names one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedAlert {
    pub alert: Alert,
    pub other_parts: Vec<u32>,
    /// The facts of the unmasked alert.
    pub facts: Facts,
}

/// Normalises a body and masks its secrets.
///
/// A large body is reduced first. JSON is masked before it is flattened, because a key tells whether its value is a
/// secret. Fingerprint and members come from the unmasked body; a fingerprint with a secret is replaced by its hash.
///
/// # Errors
/// When the body is not text, or is empty.
pub fn alert(
    mask: &Mask,
    intake: &Intake,
    body: &[u8],
    hints: &Hints,
) -> Result<MaskedAlert, IntakeError> {
    match intake.reduced(body, hints, intake.max_alert_bytes())? {
        Some(reduced) => {
            let hints = reduced.hints(hints.clone());
            read(mask, intake, reduced.body.as_bytes(), &hints)
        }
        None => read(mask, intake, body, hints),
    }
}

fn read(
    mask: &Mask,
    intake: &Intake,
    body: &[u8],
    hints: &Hints,
) -> Result<MaskedAlert, IntakeError> {
    let (part, other_parts) = match hints.part {
        Some(_) => (intake.part(body, hints)?, Vec::new()),
        None => {
            let mut parts = intake.read(body, hints)?.into_iter();
            let first = parts.next().ok_or(IntakeError::Empty)?;
            (first, parts.map(|part| part.index).collect())
        }
    };
    // The masked body is repaired already, so its reading has no such notes.
    let repairs: Vec<String> = part
        .notes
        .iter()
        .filter(|note| matches!(note, Note::Repaired(_)))
        .map(ToString::to_string)
        .collect();
    let facts = Facts::new(&part, &hints.suffix);
    let written = part.alert;
    // Masked values may change the form of a body and make two of its alerts equal, so the same source reads the same
    // place.
    let masked = self::body(mask, body, hints);
    let hints = Hints {
        source: Some(written.source.clone()),
        part: Some(part.index),
        content_type: None,
        content_encoding: None,
        ..hints.clone()
    };
    let mut shown = intake.normalise(&masked, &hints).unwrap_or_else(|_| Alert {
        text: HIDDEN.to_owned(),
        ..written.clone()
    });
    for repair in repairs {
        shown.text.push_str(&format!("\n[tarsy: {repair}]"));
    }
    let reports = masked_reports(written.reports, &shown.reports);
    let refs = shown.refs.clone().with_group_of(&written.refs);
    let alert = Alert {
        fingerprint: written.fingerprint,
        members: written.members,
        status: written.status,
        at: written.at,
        reports,
        refs,
        ..shown
    };
    Ok(MaskedAlert {
        alert: texts(mask, alert),
        other_parts,
        facts,
    })
}

/// The reports of the body as it was written, with the texts of the masked body.
fn masked_reports(written: Vec<MemberReport>, shown: &[MemberReport]) -> Vec<MemberReport> {
    // Reports of another number cannot be matched, so none of their texts is shown.
    let shown = if shown.len() == written.len() {
        shown
    } else {
        &[]
    };
    let texts = shown.iter().map(|report| report.text.clone());
    let texts = texts.chain(std::iter::repeat(HIDDEN.to_owned()));
    written
        .into_iter()
        .zip(texts)
        .map(|(report, text)| MemberReport { text, ..report })
        .collect()
}

/// Masks each text of an alert.
pub fn texts(mask: &Mask, alert: Alert) -> Alert {
    let text = |text: String| mask.apply(&text).into_owned();
    let fingerprint = match mask.apply(&alert.fingerprint) {
        Cow::Borrowed(_) => alert.fingerprint,
        Cow::Owned(masked) if masked == alert.fingerprint => masked,
        Cow::Owned(_) => hashed(&alert.fingerprint),
    };
    let reports = alert
        .reports
        .into_iter()
        .map(|report| MemberReport {
            text: text(report.text),
            ..report
        })
        .collect();
    Alert {
        title: text(alert.title),
        text: text(alert.text),
        alert_type: text(alert.alert_type),
        runbook_url: alert.runbook_url.map(text),
        refs: alert.refs.map(text),
        ignored_because: alert.ignored_because.map(text),
        severity_word: alert
            .severity_word
            .filter(|word| mask.apply(word) == word.as_str()),
        reports,
        fingerprint,
        ..alert
    }
}

/// The body as decoded text without its secrets; one that is not text stays as it is.
pub fn body<'a>(mask: &Mask, body: &'a [u8], hints: &Hints) -> Cow<'a, [u8]> {
    let Ok(decoded) = decode(body, hints.content()) else {
        return Cow::Borrowed(body);
    };
    let masked = match decoded.value {
        Some(value) => mask.json(&value).to_string(),
        None => mask.apply(&decoded.text).into_owned(),
    };
    Cow::Owned(masked.into_bytes())
}

/// Masks a dead letter for display. The stream keeps it unmasked, because a retry needs the original.
pub fn dead_letter(mask: &Mask, letter: StoredDeadLetter) -> StoredDeadLetter {
    StoredDeadLetter {
        detail: mask.apply(&letter.detail).into_owned(),
        subject: letter
            .subject
            .split('.')
            .map(|word| mask.apply(word))
            .collect::<Vec<_>>()
            .join("."),
        headers: mask.each_text(letter.headers),
        ..letter
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use tarsy_core::alert::refs::{Refs, am_group};

    fn masked(body: &Value) -> Alert {
        let mask = Mask::new(["known-val5e".to_owned()]);
        let body = body.to_string();

        alert(
            &mask,
            &Intake::default(),
            body.as_bytes(),
            &Hints::default(),
        )
        .unwrap()
        .alert
    }

    #[test]
    fn json_is_masked_before_it_is_flattened() {
        let body = json!({
            "alertname": "A", "summary": "the known-val5e is out",
            "db": {"password": 12_345_678, "user": "bob"},
            "env": [{"name": "DB_PASSWORD", "value": "hunter2-hunter2"}],
        });
        let text = masked(&body).text;
        for (shown, is_there) in [
            ("12345678", false),
            ("hunter2", false),
            ("known-val5e", false),
            ("bob", true),
            ("DB_PASSWORD", true),
        ] {
            assert_eq!(text.contains(shown), is_there, "{shown} {text}");
        }
    }

    #[test]
    fn a_body_is_decoded_before_it_is_masked_and_its_repairs_are_told() {
        let mask = Mask::new(["known-val5e".to_owned()]);
        let of = |body: &[u8], content_type: Option<&str>| {
            let hints = Hints {
                content_type: content_type.map(str::to_owned),
                ..Hints::default()
            };
            alert(&mask, &Intake::default(), body, &hints).unwrap()
        };
        let broken = "{\"title\":\"C:\\Temp full\",\"password\":\"hunter2-hunter2\",\"note\":\"known-val5e\",}";
        let wide: Vec<u8> = broken.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let form = "title=Disk+full&password=hunter2-hunter2&note=known-val5e";
        for found in [
            of(broken.as_bytes(), None),
            of(&wide, Some("text/plain; charset=utf-16")),
            of(form.as_bytes(), None),
        ] {
            let text = &found.alert.text;
            assert!(
                !text.contains("hunter2")
                    && !text.contains("known-val5e")
                    && text.contains("[tarsy: the "),
                "{text}"
            );
        }
        let list = json!([{"title": "A", "secret": "hunter2-hunter2", "status": "up"}, null, {"title": "B", "status": "down"}]);
        let found = of(list.to_string().as_bytes(), None);
        assert_eq!(
            (found.alert.title.as_str(), found.other_parts),
            ("A", vec![2])
        );
        assert_eq!(
            found.alert.text.matches("no alerts: 1").count(),
            1,
            "{}",
            found.alert.text
        );
    }

    #[test]
    fn references_are_masked_and_the_hash_of_a_group_is_that_of_the_written_key() {
        let key = "{}:{url=\"postgres://a:w0rd-one@h/d\"}";
        let refs = |thread: &str| {
            let alert =
                json!({"labels": {"alertname": "A"}, "annotations": {"slack_thread": thread}});
            masked(&json!({"groupKey": key, "alerts": [alert]})).refs
        };
        let found = refs("C0123456789/1700000000.000100");
        assert_eq!(found.get("slack"), Some("C0123456789/1700000000.000100"));
        assert_eq!(found.get("am_group"), Some(am_group(key).as_str()));
        let secret = Refs::new([("ticket".to_owned(), "known-val5e".to_owned())]);
        let mask = Mask::new(["known-val5e".to_owned()]);
        let alert = texts(
            &mask,
            Alert {
                refs: secret,
                ..masked(&json!({"alertname": "A"}))
            },
        );
        assert!(
            !alert
                .refs
                .get("ticket")
                .is_some_and(|ticket| ticket.contains("known-val5e"))
        );
    }

    #[test]
    fn a_fingerprint_with_a_secret_is_hashed_and_still_distinguishes_alerts() {
        let of = |key: &str| {
            masked(&json!({"alertname": "A", "groupKey": key, "message": "m"})).fingerprint
        };
        let one = of("url=postgres://a:w0rd-one@h/d");
        let other = of("url=postgres://a:w0rd-two@h/d");

        assert!(
            one != other
                && [&one, &other]
                    .iter()
                    .all(|print| print.contains("sha256:") && !print.contains("w0rd"))
        );
        assert_eq!(of("url=postgres://a:w0rd-one@h/d"), one);
        assert!(of("{}:{alertname=\"A\"}").contains("{alertname=\"A\"}"));
    }
}
