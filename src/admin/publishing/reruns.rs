//! Publishes reruns of alerts, for `tarsy sessions rerun` and `tarsy web`.

use serde_json::{Map, Value};

use tarsy_bus::{NewAlert, Priority, Subject, SubjectSuffix};
use tarsy_core::ids::SessionId;
use tarsy_reports::{AlertReport, DispositionKind};

/// Whether the alert can be investigated again.
///
/// # Errors
/// A sentence with the reason, and what to do instead.
pub fn may_rerun(report: &AlertReport) -> Result<(), String> {
    let short = report.alert_id.short();
    // A listed alert was not investigated, so it can be.
    if let (Some(joined), None) = (report.joined_session_id, &report.limited_by) {
        let joined = joined.short();
        return Err(format!(
            "alert {short} joined session {joined}: to rerun it: tarsy sessions rerun {joined}"
        ));
    }
    if report.disposition == DispositionKind::Dead {
        return Err(format!(
            "alert {short} was given up: to queue it again: tarsy dead-letters retry {short}"
        ));
    }
    let is_open = report
        .session
        .as_ref()
        .is_some_and(|session| session.finished_at.is_none());
    if is_open || report.disposition == DispositionKind::Undecided {
        return Err(format!(
            "session {short} is not over yet: tarsy watch {short} follows it, tarsy sessions cancel {short} ends it"
        ));
    }
    stored_text(report).map(|_| ())
}

/// The alert, cleaned and masked.
fn stored_text(report: &AlertReport) -> Result<&str, String> {
    match report.body.as_deref() {
        Some(body) if !body.trim().is_empty() => Ok(body),
        Some(_) | None => Err(format!(
            "the text of alert {} is no longer stored",
            report.alert_id.short()
        )),
    }
}

/// The alert as a new message: its stored text (cleaned and masked), with headers for what the intake read from its
/// first form. It goes back to the queue that it came from. A report about a question gives the message of a question.
///
/// # Errors
/// When the text is no longer stored.
pub fn message(
    session: SessionId,
    old: &AlertReport,
    chain: Option<&str>,
) -> Result<NewAlert, String> {
    let body = stored_text(old)?;
    let stored = |name: &str| old.headers.get(name).and_then(Value::as_str);
    let parent = old.parent_id.map(|parent| parent.to_string());
    let own_id = session.to_string();
    let retried_id = old.alert_id.to_string();

    let headers = [
        (tarsy_bus::ALERT_TYPE, old.alert_type.as_deref()),
        (tarsy_bus::TITLE, old.title.as_deref()),
        (tarsy_bus::FINGERPRINT, old.fingerprint.as_deref()),
        (tarsy_bus::RUNBOOK_URL, stored(tarsy_bus::RUNBOOK_URL)),
        (tarsy_bus::CHAIN, chain.or_else(|| stored(tarsy_bus::CHAIN))),
        (tarsy_bus::PARENT_ID, parent.as_deref()),
        (tarsy_bus::SESSION_ID, Some(&own_id)),
        (tarsy_bus::RETRY_OF, Some(&retried_id)),
        (tarsy_bus::FORCE, Some("true")),
    ];
    // A value from a body may have line breaks, which a header may not.
    let mut in_one_line = Map::new();
    for (name, value) in headers {
        let words: Vec<&str> = value.unwrap_or_default().split_whitespace().collect();
        if !words.is_empty() {
            in_one_line.insert(name.to_owned(), words.join(" ").into());
        }
    }
    let (queue, suffix) = queue_of(&old.subject);
    // The stored text may no longer contain the severity, so the priority carries it.
    let priority = old.severity.map_or(queue, Priority::from);
    Ok(NewAlert {
        priority,
        suffix,
        body: body.as_bytes().to_vec(),
        headers: Value::Object(in_one_line),
    })
}

/// Priority and suffix of the subject of an alert or a question. A suffix that cannot be published is left out, and so
/// is that of a question from a thread of Slack: the copy names its investigation itself.
pub fn queue_of(subject: &str) -> (Priority, Option<SubjectSuffix>) {
    Subject::parse(subject).map_or((Priority::Normal, None), |subject| {
        let suffix = if subject.is_of_slack() {
            None
        } else {
            subject.suffix.parse().ok()
        };
        (subject.priority, suffix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_web::testing::data::{elsewhere, report, running};

    #[test]
    fn an_alert_goes_back_to_the_queue_that_it_came_from() {
        let of = |subject: &str| {
            let (priority, suffix) = queue_of(subject);
            (priority.as_str(), suffix.map(|suffix| suffix.to_string()))
        };
        assert_eq!(of("tarsy.alerts.critical"), ("critical", None));
        assert_eq!(
            of("tarsy.alerts.low.disk-full.eu"),
            ("low", Some("disk-full.eu".to_owned()))
        );
        assert_eq!(of("tarsy.alerts.high.a:b"), ("high", None));
        assert_eq!(
            of("tarsy.questions.high.question"),
            ("high", Some("question".to_owned()))
        );
        assert_eq!(of("tarsy.questions.high.slack"), ("high", None));
        assert_eq!(of("anything"), ("normal", None));
    }

    #[test]
    fn only_an_investigation_that_is_over_and_has_its_text_runs_again() {
        assert_eq!(may_rerun(&report()), Ok(()));
        let without_text = AlertReport {
            body: Some(" ".to_owned()),
            ..report()
        };
        let joined = AlertReport {
            joined_session_id: Some(report().alert_id),
            ..elsewhere(DispositionKind::Joined)
        };
        for (report, why) in [
            (running(), "is not over yet"),
            (elsewhere(DispositionKind::Undecided), "is not over yet"),
            (elsewhere(DispositionKind::Dead), "was given up"),
            (joined, "joined session"),
            (without_text, "is no longer stored"),
        ] {
            let refused = may_rerun(&report).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
