//! Reads the facts about an alert from the headers and the subject of its message.

use tarsy_bus::Subject;
use tarsy_core::intake::{Hints, LeftOut};
use tarsy_engine::ports::Received;

/// The hints of the message's headers and subject.
pub(crate) fn hints(received: &Received) -> Hints {
    let subject = Subject::parse(&received.subject);
    let severity = subject.map(|subject| subject.priority.into());
    Hints {
        alert_type: received.header(tarsy_bus::ALERT_TYPE),
        fingerprint: received.header(tarsy_bus::FINGERPRINT),
        runbook_url: received.header(tarsy_bus::RUNBOOK_URL),
        title: received.header(tarsy_bus::TITLE),
        source: received.header(tarsy_bus::SOURCE),
        part: received
            .header(tarsy_bus::PART)
            .and_then(|part| part.trim().parse().ok()),
        priority: severity,
        received_at: Some(received.queued_at),
        suffix: subject
            .map(|subject| subject.suffix.to_owned())
            .unwrap_or_default(),
        tenant: received.header(tarsy_bus::TENANT),
        content_type: received.header(tarsy_bus::CONTENT_TYPE),
        content_encoding: received.header(tarsy_bus::CONTENT_ENCODING),
        left_out: received
            .header(tarsy_bus::LEFT_OUT)
            .and_then(|value| LeftOut::parse(&value)),
    }
}
