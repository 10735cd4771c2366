//! The stream of one reader: the stored events after its number, then live ones, each once and in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use crate::frames::Item;
use crate::hub::Items;
use crate::ports::{Backend, Timelines, Unavailable, Update, Updates as _};
use crate::state::Shared;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;

/// Events that are read from the store at once: a reader has at most so many in memory.
const PAGE: u32 = 32;

/// The interval of reads from the store while there is no connection to the broker.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The next item for a reader.
#[derive(Debug)]
pub(super) enum Next {
    Item(Arc<Item>),
    /// The session is over: nothing follows.
    End {
        last_seq: u32,
    },
    /// The stream breaks off: the reader connects again with its number.
    Cut,
}

/// A reader of one session.
pub(super) struct SessionStream<B: Backend> {
    web: Shared<B>,
    id: SessionId,
    /// The number of the last event that the reader has.
    last: u32,
    /// Stored events that the reader gets next.
    stored: VecDeque<TimelineEvent>,
    source: Source<B>,
}

/// The source of the next update.
enum Source<B: Backend> {
    /// The store, without a follower yet.
    Store,
    /// The store once more: events that were committed before the follower was joined.
    Joined(Items),
    /// The follower that all readers share.
    Shared(Items),
    /// The store, for the events up to this number, which the shared follower has emitted already.
    Gap { items: Items, number: u32 },
    /// A separate follower, because the store is unavailable.
    Alone(<B as Timelines>::Session),
    /// Neither the store nor the broker answers.
    Lost,
    /// The reader has the end event.
    Ended,
}

impl<B: Backend> SessionStream<B> {
    /// Begins after event number `after`.
    pub(super) fn new(web: Shared<B>, id: SessionId, after: u32) -> Self {
        Self {
            web,
            id,
            last: after,
            stored: VecDeque::new(),
            source: Source::Store,
        }
    }

    /// The next update. Waits without a limit. Cancel safe: no step is lost when the caller drops the future.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(event) = self.stored.pop_front() {
                return self.emit(Arc::new(Item::new(Update::Event(event))));
            }
            match &mut self.source {
                Source::Store => match self.read_stored().await {
                    Ok(()) if self.stored.is_empty() => {
                        match self.web.hub.session(self.id, self.last) {
                            Ok(items) => self.source = Source::Joined(items),
                            // There is no connection to the broker yet: the store alone has to do.
                            Err(_) => tokio::time::sleep(RETRY_DELAY).await,
                        }
                    }
                    Ok(()) => {}
                    Err(_) => self.go_alone(),
                },
                Source::Joined(_) => match self.read_stored().await {
                    Ok(()) if self.stored.is_empty() => self.share(),
                    Ok(()) => {}
                    Err(_) => self.go_alone(),
                },
                Source::Shared(items) => match items.recv().await {
                    Ok(item) => match self.position(&item) {
                        Position::Next => return self.emit(item),
                        Position::Known => {}
                        Position::Later(number) => self.leave_gap(number),
                    },
                    Err(RecvError::Lagged(_)) => {
                        metrics::counter!("tarsy_web_streams_cut_total", "reason" => "behind")
                            .increment(1);
                        return Next::Cut;
                    }
                    Err(RecvError::Closed) => return Next::Cut,
                },
                Source::Gap { number, .. } => {
                    let number = *number;
                    self.fill(number).await;
                }
                Source::Alone(follower) => match follower.next().await {
                    Some(update) => return self.emit(Arc::new(Item::new(update))),
                    None => return Next::Cut,
                },
                Source::Lost => return Next::Cut,
                Source::Ended => {
                    return Next::End {
                        last_seq: self.last,
                    };
                }
            }
        }
    }

    async fn read_stored(&mut self) -> Result<(), Unavailable> {
        self.stored = self
            .web
            .backend
            .events(self.id, self.last, PAGE)
            .await?
            .into();
        Ok(())
    }

    /// The reader has all that the follower emitted before the next item.
    fn share(&mut self) {
        if let Some(items) = self.take_items() {
            self.source = Source::Shared(items);
        }
    }

    fn leave_gap(&mut self, number: u32) {
        if let Some(items) = self.take_items() {
            self.source = Source::Gap { items, number };
        }
    }

    fn take_items(&mut self) -> Option<Items> {
        match std::mem::replace(&mut self.source, Source::Lost) {
            Source::Joined(items) | Source::Shared(items) | Source::Gap { items, .. } => {
                Some(items)
            }
            Source::Store | Source::Alone(_) | Source::Lost | Source::Ended => None,
        }
    }

    /// Continues with a separate follower, without the store.
    fn go_alone(&mut self) {
        self.source = self
            .web
            .hub
            .alone(self.id, self.last)
            .map_or(Source::Lost, Source::Alone);
    }

    fn position(&self, item: &Item) -> Position {
        match item.event() {
            None => Position::Next,
            Some(event) if event.session_seq <= self.last => Position::Known,
            Some(event) if event.session_seq == self.last + 1 => Position::Next,
            Some(event) => Position::Later(event.session_seq),
        }
    }

    /// Reads the events up to this number, which the shared follower has emitted before this reader joined. A separate
    /// follower finds the events that the store does not have.
    async fn fill(&mut self, number: u32) {
        let last = match self.read_stored().await {
            Ok(()) => self.stored.back(),
            Err(_) => None,
        };
        match last {
            Some(last) if last.session_seq >= number => self.share(),
            Some(_) => self.source = Source::Store,
            None => self.go_alone(),
        }
    }

    fn emit(&mut self, item: Arc<Item>) -> Next {
        if let Some(event) = item.event() {
            self.last = event.session_seq;
            if event.event_type.is_end() {
                self.source = Source::Ended;
                self.stored.clear();
            }
        }
        Next::Item(item)
    }
}

/// The position of an item relative to the items that the reader has.
enum Position {
    Next,
    Known,
    /// The event with this number; events between are missing.
    Later(u32),
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use crate::testing::backend::FakeBackend;
    use crate::testing::data::story;

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_events_for_a_while_has_comments_and_goes_on() {
        let backend = FakeBackend::with_events(1);
        let events = story();
        let path = format!("/api/v1/sessions/{}/events", events[0].session_id);
        let response = backend
            .answer(&path, &[("accept", "text/event-stream")])
            .await;
        let mut body = response.into_body();
        let mut next = async || {
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
        };
        assert_eq!(next().await, "retry: 1000\n\n");
        assert!(next().await.starts_with("id: 1\n"));
        for event in &events[1..3] {
            assert_eq!(next().await, ": live\n\n");
            assert_eq!(next().await, ": live\n\n");
            backend.emit(event);
            assert!(
                next()
                    .await
                    .starts_with(&format!("id: {}\n", event.session_seq))
            );
        }
    }
}
