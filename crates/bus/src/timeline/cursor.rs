//! Merges the events and deltas of one session for a watcher: each event once, in order. Pure.

use std::collections::{BTreeMap, HashMap};

use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::{Delta, EventType, TimelineEvent};

/// Events that wait for an earlier one. Further ones are dropped: the history or the stream emits them again.
const MAX_WAITING: usize = 1024;

/// The position of a watcher in a session's timeline.
#[derive(Debug)]
pub(super) struct Cursor {
    next: u32,
    waiting: BTreeMap<u32, TimelineEvent>,
    epoch: u32,
    /// The last iteration and attempt with an event, by execution.
    durable: HashMap<ExecutionId, (u32, u32)>,
}

impl Cursor {
    /// Starts after event number `after`.
    pub(super) fn new(after: u32) -> Self {
        Self {
            next: after.saturating_add(1),
            waiting: BTreeMap::new(),
            epoch: 0,
            durable: HashMap::new(),
        }
    }

    /// The number of the last event that was emitted.
    pub(super) fn last(&self) -> u32 {
        self.next.saturating_sub(1)
    }

    /// Adds an event from any source; returns the events that can be emitted now.
    pub(super) fn event(&mut self, event: TimelineEvent) -> Vec<TimelineEvent> {
        let has_room = event.session_seq == self.next || self.waiting.len() < MAX_WAITING;
        if event.session_seq >= self.next && has_room {
            self.waiting.entry(event.session_seq).or_insert(event);
        }
        self.take_ready()
    }

    /// Whether an event is missing before one that has arrived.
    pub(super) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Skips missing events that no source has any more.
    pub(super) fn skip_gap(&mut self) -> Vec<TimelineEvent> {
        if let Some(first) = self.waiting.keys().next() {
            self.next = *first;
        }
        self.take_ready()
    }

    /// Returns the delta, or `None` if it is outdated.
    pub(super) fn delta(&mut self, delta: Delta) -> Option<Delta> {
        if delta.epoch < self.epoch {
            return None;
        }
        self.epoch = delta.epoch;
        let durable = self
            .durable
            .get(&delta.execution_id)
            .copied()
            .unwrap_or_default();
        ((delta.iteration, delta.attempt) > durable).then_some(delta)
    }

    fn take_ready(&mut self) -> Vec<TimelineEvent> {
        let mut ready = Vec::new();
        while let Some(event) = self.waiting.remove(&self.next) {
            self.next = self.next.saturating_add(1);
            self.record(&event);
            ready.push(event);
        }
        ready
    }

    /// A durable event replaces the live text of its iteration; a resume outdates all text of earlier epochs.
    fn record(&mut self, event: &TimelineEvent) {
        if event.event_type == EventType::SessionResumed {
            let epoch = event
                .metadata
                .get("epoch")
                .and_then(|epoch| u32::try_from(epoch.as_u64()?).ok());
            self.epoch = self.epoch.max(epoch.unwrap_or(0));
        }
        if event.repeats_steps() {
            self.durable.clear();
        }
        if let (Some(execution), Some(iteration)) = (event.execution_id, event.iteration) {
            let reached = (iteration, event.attempt.unwrap_or(u32::MAX));
            let durable = self.durable.entry(execution).or_default();
            *durable = (*durable).max(reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use tarsy_core::ids::SessionId;
    use tarsy_core::timeline::{DeltaKind, EventStatus};

    const EXECUTION: ExecutionId = ExecutionId(Uuid::nil());

    fn event(session_seq: u32) -> TimelineEvent {
        TimelineEvent {
            session_id: SessionId(Uuid::nil()),
            session_seq,
            execution_id: Some(EXECUTION),
            sequence_number: Some(session_seq),
            stage: None,
            agent: None,
            iteration: None,
            attempt: None,
            event_type: EventType::LlmResponse,
            status: EventStatus::Completed,
            content: String::new(),
            metadata: Value::Null,
            created_at: chrono::DateTime::UNIX_EPOCH,
            truncated: false,
        }
    }

    fn delta(epoch: u32, iteration: u32, attempt: u32) -> Delta {
        Delta {
            session_id: SessionId(Uuid::nil()),
            execution_id: EXECUTION,
            agent: None,
            epoch,
            iteration,
            attempt,
            kind: DeltaKind::Text,
            offset: 0,
            delta: "x".into(),
        }
    }

    fn numbers(events: &[TimelineEvent]) -> Vec<u32> {
        events.iter().map(|event| event.session_seq).collect()
    }

    #[test]
    fn an_event_waits_for_the_one_before_it() {
        let mut cursor = Cursor::new(3);
        assert_eq!(numbers(&cursor.event(event(6))), [0_u32; 0]);
        assert_eq!(numbers(&cursor.event(event(5))), [0_u32; 0]);
        assert!(cursor.has_gap());
        assert_eq!(numbers(&cursor.event(event(4))), [4, 5, 6]);
        assert!(!cursor.has_gap());
        assert_eq!(cursor.last(), 6);
    }

    #[test]
    fn a_gap_that_cannot_be_filled_is_skipped_on_request() {
        let mut cursor = Cursor::new(0);
        assert_eq!(numbers(&cursor.event(event(40))), [0_u32; 0]);
        assert_eq!(numbers(&cursor.skip_gap()), [40]);
        assert_eq!(numbers(&cursor.skip_gap()), [0_u32; 0]);
        assert_eq!(numbers(&cursor.event(event(41))), [41]);
    }

    #[test]
    fn a_delta_of_an_epoch_below_that_of_a_resume_or_a_delta_is_dropped() {
        let mut cursor = Cursor::new(0);
        assert_eq!(cursor.delta(delta(1, 1, 1)), Some(delta(1, 1, 1)));
        let resumed = TimelineEvent {
            event_type: EventType::SessionResumed,
            metadata: json!({"epoch": 3}),
            ..event(1)
        };
        cursor.event(resumed);
        assert_eq!(cursor.delta(delta(2, 1, 1)), None);
        assert_eq!(cursor.delta(delta(5, 1, 1)), Some(delta(5, 1, 1)));
        assert_eq!(cursor.delta(delta(4, 1, 1)), None);
    }

    #[test]
    fn a_durable_event_ends_the_live_text_of_its_iteration_and_attempt() {
        let mut cursor = Cursor::new(0);
        cursor.event(TimelineEvent {
            iteration: Some(2),
            attempt: Some(1),
            ..event(1)
        });
        assert_eq!(cursor.delta(delta(1, 1, 9)), None);
        assert_eq!(cursor.delta(delta(1, 2, 1)), None);
        assert_eq!(cursor.delta(delta(1, 2, 2)), Some(delta(1, 2, 2)));
        assert_eq!(cursor.delta(delta(1, 3, 1)), Some(delta(1, 3, 1)));
    }

    #[test]
    fn live_text_of_steps_that_are_taken_again_after_a_loss_is_shown() {
        let mut cursor = Cursor::new(0);
        cursor.event(TimelineEvent {
            iteration: Some(5),
            attempt: Some(1),
            ..event(1)
        });
        assert_eq!(cursor.delta(delta(2, 3, 2)), None);
        let loss = TimelineEvent {
            event_type: EventType::Error,
            metadata: json!({"kind": "lost_commits", "kept": 0}),
            execution_id: None,
            ..event(2)
        };
        cursor.event(loss);
        assert_eq!(cursor.delta(delta(2, 3, 2)), Some(delta(2, 3, 2)));
        cursor.event(TimelineEvent {
            iteration: Some(3),
            attempt: Some(2),
            ..event(3)
        });
        assert_eq!(cursor.delta(delta(2, 3, 2)), None);
    }

    #[test]
    fn a_durable_event_that_is_not_emitted_yet_does_not_end_live_text() {
        let mut cursor = Cursor::new(0);
        cursor.event(TimelineEvent {
            iteration: Some(2),
            attempt: Some(1),
            ..event(2)
        });
        assert_eq!(cursor.delta(delta(1, 2, 1)), Some(delta(1, 2, 1)));
    }

    proptest! {
        #[test]
        fn any_order_with_repetitions_emits_every_event_once_in_order(
            mut order in Just((1..=40_u32).chain(1..=40).collect::<Vec<_>>()).prop_shuffle(),
            after in 0_u32..10,
        ) {
            order.push(40);
            let mut cursor = Cursor::new(after);
            let shown: Vec<u32> = order.into_iter().flat_map(|seq| numbers(&cursor.event(event(seq)))).collect();
            prop_assert_eq!(shown, (after + 1..=40).collect::<Vec<_>>());
        }
    }
}
