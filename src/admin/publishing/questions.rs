//! Publishes questions about investigations, for `tarsy ask` and `tarsy web`: checks the question and builds its
//! message.

use tarsy_bus::Priority;
use tarsy_core::alert::Severity;
use tarsy_core::follow_up::MAX_QUESTION_BYTES;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{self, IntakeError};
use tarsy_reports::words::why_ended;
use tarsy_reports::{AlertReport, DispositionKind};

/// The last token of the subject; operators see it in the queue.
pub const SUFFIX: &str = "question";

/// Checks the text of a question.
///
/// # Errors
/// A sentence for the person who asks, when no worker would take it.
pub fn check_text(body: &[u8]) -> Result<(), String> {
    let bytes = body.len();
    if bytes > MAX_QUESTION_BYTES {
        return Err(format!(
            "a question has at most {MAX_QUESTION_BYTES} bytes, this one {bytes}: nothing was published"
        ));
    }
    match intake::question(body, "", None) {
        Ok(_) => Ok(()),
        Err(IntakeError::Empty) => Err("the question is empty: nothing was published".to_owned()),
        Err(IntakeError::Undecodable) => {
            Err("the question is not UTF-8 text: nothing was published".to_owned())
        }
    }
}

/// The investigation that a question about `report` belongs to: for a question, the one that it asks about.
///
/// # Errors
/// A sentence for the person who asks, when there is nothing to ask about yet.
pub fn may_ask(report: &AlertReport) -> Result<SessionId, String> {
    let short = report.alert_id.short();
    if let Some(route) = &report.limited_by {
        return Err(format!(
            "alert {short} was not investigated: it was above the limit of route {route}: tarsy sessions rerun {short} investigates it"
        ));
    }
    if let Some(joined) = report.joined_session_id {
        let joined = joined.short();
        return Err(format!(
            "alert {short} joined session {joined}: tarsy ask {joined} asks about that one"
        ));
    }
    if let Some(why) = why_ended(report) {
        return Err(format!("alert {short} was not investigated: {why}"));
    }
    if report.disposition == DispositionKind::Dead {
        return Err(format!(
            "alert {short} was given up and not investigated: tarsy dead-letters show {short} says why"
        ));
    }
    if let Some(root) = report.parent_id {
        return Ok(root);
    }
    match &report.session {
        Some(session) if session.finished_at.is_some() => Ok(report.alert_id),
        Some(_) | None => Err(format!(
            "session {short} is not over yet: tarsy watch {short} follows it, tarsy sessions cancel {short} ends it"
        )),
    }
}

/// A person waits, so a question precedes ordinary alerts; it precedes critical ones only if it is about one.
pub fn urgency(report: &AlertReport) -> Priority {
    if report.severity == Some(Severity::Critical) {
        Priority::Critical
    } else {
        Priority::High
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_web::testing::data::report;

    #[test]
    fn the_reason_why_an_alert_was_not_investigated_is_the_stored_one() {
        let ended = |dead_detail: Option<&str>| {
            let dead_detail = dead_detail.map(str::to_owned);
            let disposition = DispositionKind::Ended;
            let session = None;

            let report = AlertReport {
                disposition,
                session,
                dead_detail,
                ..report()
            };
            (report.alert_id.short(), may_ask(&report).unwrap_err())
        };
        let (short, cancelled) = ended(Some("cancelled before it was investigated"));
        assert_eq!(
            cancelled,
            format!("alert {short} was not investigated: cancelled before it was investigated")
        );
        let (_, resolved) = ended(None);
        assert_eq!(
            resolved,
            format!("alert {short} was not investigated: it was resolved before one began")
        );
    }

    #[test]
    fn an_invalid_question_is_refused_before_anything_is_published() {
        assert_eq!(check_text(b"why?"), Ok(()));
        for (wrong, why) in [
            ("  \n", "is empty"),
            ("\u{7}", "is empty"),
            (&"a".repeat(20_000), "at most 16384"),
        ] {
            let error = check_text(wrong.as_bytes()).unwrap_err();
            assert!(
                error.contains(why) && error.contains("nothing was published"),
                "{error}"
            );
        }
    }
}
