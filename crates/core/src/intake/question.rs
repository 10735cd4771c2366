//! Normalises a follow-up question: text that a person typed and that is never parsed.

use super::reading::MAX_TITLE_CHARS;
use super::{IntakeError, clean};
use crate::alert::refs::Refs;
use crate::alert::{Alert, AlertStatus, Severity};

/// Normalises a question. `alert_type` is that of the alert it is about. A question has no fingerprint.
///
/// # Errors
/// When the body is not text, or is empty.
pub fn question(
    body: &[u8],
    alert_type: &str,
    severity: Option<Severity>,
) -> Result<Alert, IntakeError> {
    let text = std::str::from_utf8(body).map_err(|_| IntakeError::Undecodable)?;
    let text = clean::text(text);
    let text = text.trim();
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .ok_or(IntakeError::Empty)?;
    Ok(Alert {
        source: "question".to_owned(),
        alert_type: alert_type.to_owned(),
        title: clean::line(first, MAX_TITLE_CHARS),
        severity: severity.unwrap_or_default(),
        severity_word: None,
        status: AlertStatus::Firing,
        ignored_because: None,
        at: None,
        fingerprint: String::new(),
        members: Vec::new(),
        reports: Vec::new(),
        runbook_url: None,
        refs: Refs::default(),
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_its_text_and_its_first_line_the_title() {
        let asked = question(
            b"\n  why\x1b[31m now?\r\n{\"status\": \"resolved\"}\n",
            "DiskFull",
            Some(Severity::High),
        );
        let expected = Alert {
            source: "question".to_owned(),
            alert_type: "DiskFull".to_owned(),
            title: "why now?".to_owned(),
            severity: Severity::High,
            severity_word: None,
            status: AlertStatus::Firing,
            ignored_because: None,
            at: None,
            fingerprint: String::new(),
            members: Vec::new(),
            reports: Vec::new(),
            runbook_url: None,
            refs: Refs::default(),
            text: "why now?\n{\"status\": \"resolved\"}".to_owned(),
        };
        assert_eq!(asked, Ok(expected));
    }

    #[test]
    fn json_is_a_question_like_any_text_and_an_empty_body_is_none() {
        assert_eq!(question(b"{}", "", None).unwrap().text, "{}");
        assert_eq!(question(b" \n\x07\t ", "", None), Err(IntakeError::Empty));
        assert_eq!(question(b"\xff", "", None), Err(IntakeError::Undecodable));
    }
}
