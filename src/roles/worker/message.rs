//! Reads the facts about an alert from the headers and the subject of its message.

use serde_json::Value;

use tarsy_bus::Subject;
use tarsy_config::AlertRoute;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{Hints, LeftOut};
use tarsy_engine::ports::Received;

pub(super) fn retry_of(received: &Received) -> Option<SessionId> {
    header(received, tarsy_bus::RETRY_OF).and_then(|id| SessionId::parse(&id))
}

/// The chain that the header of a message names, otherwise the one of its route.
pub(crate) fn named_chain(received: &Received, route: Option<&AlertRoute>) -> Option<String> {
    let named = header(received, tarsy_bus::CHAIN).filter(|chain| !chain.trim().is_empty());
    named.or_else(|| route?.chain.clone())
}

/// The hints of the message's headers and subject.
pub(crate) fn hints(received: &Received) -> Hints {
    let subject = Subject::parse(&received.subject);
    let severity = subject.map(|subject| subject.priority.into());
    Hints {
        alert_type: header(received, tarsy_bus::ALERT_TYPE),
        fingerprint: header(received, tarsy_bus::FINGERPRINT),
        runbook_url: header(received, tarsy_bus::RUNBOOK_URL),
        title: header(received, tarsy_bus::TITLE),
        source: header(received, tarsy_bus::SOURCE),
        part: header(received, tarsy_bus::PART).and_then(|part| part.trim().parse().ok()),
        priority: severity,
        received_at: Some(received.queued_at),
        suffix: subject
            .map(|subject| subject.suffix.to_owned())
            .unwrap_or_default(),
        tenant: header(received, tarsy_bus::TENANT),
        content_type: header(received, tarsy_bus::CONTENT_TYPE),
        content_encoding: header(received, tarsy_bus::CONTENT_ENCODING),
        left_out: header(received, tarsy_bus::LEFT_OUT).and_then(|value| LeftOut::parse(&value)),
    }
}

pub(super) fn header(received: &Received, name: &str) -> Option<String> {
    received
        .headers
        .get(name)
        .and_then(Value::as_str)
        .map(ToOwned::to_owned)
}
