//! The body of a generic webhook: JSON with every fact, and the same words as in a chat.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::summary::Outcome;
use super::template::Values;
use super::{Moment, Notification};
use crate::alert::Severity;
use crate::execution::entry::Mark;
use crate::readable::bounded::{cut, line};
use crate::summary::Sure;

/// The longest analysis, in characters. The link leads to all of it.
const MAX_ANALYSIS: usize = 16_000;
/// The longest field of an analysis, in characters.
const MAX_FIELD: usize = 600;
/// The longest text of the operator's template, in characters.
const MAX_TEXT: usize = 4_000;

/// The body of the request. Fields may be added; none is renamed or removed.
pub fn message(notification: &Notification) -> Value {
    let Notification {
        key,
        about,
        summary,
        url,
        may_repeat,
        stays_in_thread: _,
        template,
    } = notification;
    let values = Values::of_notification(notification);
    let fields = summary.fields();
    let text = match template {
        Some(template) => cut(template.filled(&values, str::to_owned), MAX_TEXT),
        None => format!("{}: {}", values.title, values.facts()),
    };
    json!({
        "id": key.id(),
        "type": format!("session.{}", event(key.moment)),
        "session_id": about,
        "route": key.route,
        "title": values.title,
        "severity": summary.severity.map(Severity::as_str),
        "chain": summary.chain,
        "outcome": summary.outcome.map(Outcome::as_str),
        "mark": summary.mark.map(Mark::as_str),
        "mark_text": summary.mark.map(Mark::sentence),
        "review": summary.review,
        "cause": summary.cause().map(|cause| line(&cause, MAX_FIELD)),
        "sure": fields.sure.map(Sure::as_str),
        "sure_why": line(&fields.sure_why, MAX_FIELD),
        "now": fields.now.map(|text| line(&text, MAX_FIELD)),
        "evidence": fields.evidence.iter().map(|fact| line(fact, MAX_FIELD)).collect::<Vec<_>>(),
        "next": fields.next.map(|text| line(&text, MAX_FIELD)),
        "not_seen": fields.not_seen.map(|text| line(&text, MAX_FIELD)),
        "cited_events": values.cited_events,
        "refs": summary.refs,
        "analysis": summary.analysis.clone().map(|analysis| cut(analysis, MAX_ANALYSIS)),
        "started_at": summary.began_at.map(moment),
        "ended_at": summary.ended_at.map(moment),
        "duration_ms": summary.took().map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        "seen_before": summary.seen_before.map(|seen| json!({"times": seen.times, "days": seen.days})),
        "request": summary.request.as_ref().map(|request| request.json(*about)),
        "url": url,
        "text": text,
        "may_be_repeated": may_repeat,
    })
}

/// The word of a moment in the type of an event.
fn event(moment: Moment) -> &'static str {
    match moment {
        Moment::Approval => "approval_requested",
        Moment::Decided => "approval_decided",
        Moment::Started | Moment::Ended | Moment::Covered => moment.as_str(),
    }
}

fn moment(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::tests::{ANALYSIS, notification};

    #[test]
    fn the_body_has_every_fact() {
        let body = message(&notification());
        let expected = json!({
            "id": notification().key.id(), "type": "session.ended",
            "session_id": "019a2b3c-0000-7000-8000-000000000001", "route": "on-call",
            "title": "KubePodOOMKilled checkout", "severity": "critical", "chain": "kubernetes", "outcome": "completed",
            "mark": null, "mark_text": null, "review": null,
            "cause": "the heap limit leaves no room [5]", "cited_events": 2, "refs": {},
            "sure": "likely", "sure_why": "the exit code fits", "now": null,
            "evidence": ["exit 137 [5]", "limit 512Mi [7]"], "not_seen": "the heap dump",
            "next": "`kubectl set resources deploy/a_b --limits=memory=1Gi` then wait",
            "analysis": ANALYSIS,
            "started_at": "2026-11-23T12:00:00.000Z", "ended_at": "2026-11-23T12:00:06.100Z", "duration_ms": 6_100,
            "seen_before": null, "request": null,
            "url": "https://tarsy.example.com/sessions/019a2b3c-0000-7000-8000-000000000001",
            "text": "KubePodOOMKilled checkout: critical, completed after 6.1 s, 2 cited events", "may_be_repeated": false,
        });
        assert_eq!(body, expected);
    }
}
