//! The frames of server-sent events (HTML Standard, section 9.2).

use std::sync::OnceLock;

use bytes::Bytes;

use super::ports::Update;
use tarsy_core::timeline::TimelineEvent;

/// The time that a browser waits before it connects again, in milliseconds.
pub(super) const RETRY: &str = "retry: 1000\n\n";
/// Keeps proxies from closing a silent connection.
pub(super) const COMMENT: &str = ": live\n\n";

/// An update with its frame, which is rendered once for all readers.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) update: Update,
    frame: OnceLock<Bytes>,
    without_id: OnceLock<Bytes>,
}

impl Item {
    pub(super) fn new(update: Update) -> Self {
        Self {
            update,
            frame: OnceLock::new(),
            without_id: OnceLock::new(),
        }
    }

    /// The event, unless the update is a delta.
    pub(super) fn event(&self) -> Option<&TimelineEvent> {
        match &self.update {
            Update::Event(event) => Some(event),
            Update::Delta(_) => None,
        }
    }

    /// The frame with the update's JSON.
    pub(super) fn frame(&self) -> Bytes {
        let frame = self.frame.get_or_init(|| match &self.update {
            Update::Event(event) => event_frame(event),
            Update::Delta(delta) => frame("delta", None, &json(delta)),
        });
        frame.clone()
    }

    /// The same frame for a reader of several sessions, whose numbers say nothing about each other.
    pub(super) fn without_id(&self) -> Bytes {
        let frame = self.without_id.get_or_init(|| match &self.update {
            Update::Event(event) => frame("timeline", None, &json(event)),
            Update::Delta(delta) => frame("delta", None, &json(delta)),
        });
        frame.clone()
    }
}

/// The frame of an event, with its number as id: a reconnect asks for what follows it.
pub(super) fn event_frame(event: &TimelineEvent) -> Bytes {
    frame("timeline", Some(event.session_seq), &json(event))
}

/// One frame. A frame without an id leaves the reader's number as it is. `data` has one line or several.
pub(super) fn frame(event: &str, id: Option<u32>, data: &str) -> Bytes {
    let mut text = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    text.push_str(&format!("event: {event}\n"));
    for line in data.lines() {
        text.push_str(&format!("data: {line}\n"));
    }
    text.push('\n');
    Bytes::from(text)
}

fn json(value: &impl serde::Serialize) -> String {
    // Serialisation fails only for a map whose keys are not strings; an update has none.
    tarsy_reports::json::line(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_id_name_and_data_and_ends_with_an_empty_line() {
        assert_eq!(
            frame("timeline", Some(17), "{}"),
            "id: 17\nevent: timeline\ndata: {}\n\n"
        );
        assert_eq!(
            frame("delta", None, "<p>\n</p>"),
            "event: delta\ndata: <p>\ndata: </p>\n\n"
        );
    }
}
