//! The frames of server-sent events (HTML Standard, section 9.2).

use std::sync::OnceLock;

use axum::response::sse::Event;

use crate::ports::Update;
use tarsy_core::timeline::TimelineEvent;

/// An update with its frame, which is rendered once for all readers.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) update: Update,
    frame: OnceLock<Event>,
    without_id: OnceLock<Event>,
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
    pub(super) fn frame(&self) -> Event {
        let id = self.event().map(|event| event.session_seq);
        self.frame.get_or_init(|| self.render(id)).clone()
    }

    /// The same frame for a reader of several sessions, whose numbers say nothing about each other.
    pub(super) fn without_id(&self) -> Event {
        self.without_id.get_or_init(|| self.render(None)).clone()
    }

    fn render(&self, id: Option<u32>) -> Event {
        match &self.update {
            Update::Event(event) => frame("timeline", id, &json(event)),
            Update::Delta(delta) => frame("delta", id, &json(delta)),
        }
    }
}

/// A frame. Its id is the number of an event: a reconnect asks for what follows it. A frame without one leaves the
/// reader's number as it is.
pub(super) fn frame(name: &str, id: Option<u32>, data: &str) -> Event {
    let event = match id {
        Some(id) => Event::default().id(id.to_string()),
        None => Event::default(),
    };
    event.event(name).data(data)
}

fn json(value: &impl serde::Serialize) -> String {
    // Serialisation fails only for a map whose keys are not strings; an update has none.
    tarsy_reports::json::line(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::response::IntoResponse as _;
    use axum::response::sse::Sse;
    use futures_util::stream;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn sent(frame: Event) -> String {
        let response = Sse::new(stream::iter([Ok::<_, Infallible>(frame)])).into_response();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_frame_has_its_id_name_and_data_and_ends_with_an_empty_line() {
        assert_eq!(
            sent(frame("timeline", Some(17), "{}")).await,
            "id: 17\nevent: timeline\ndata: {}\n\n"
        );
        assert_eq!(
            sent(frame("delta", None, "<p>\n</p>")).await,
            "event: delta\ndata: <p>\ndata: </p>\n\n"
        );
    }
}
