//! Answers that are being written: deltas in, one status line out.
//!
//! Deltas are hints: they may be lost, come twice or come from a worker that lost its lease. What is durable wins.

use std::collections::HashMap;

use crate::investigation::ids::ExecutionId;
use crate::investigation::timeline::{Delta, DeltaKind, TimelineEvent};

use super::meta::Meta;
use crate::cli::render::{format, text};

/// Bytes of a stream that are kept: more than any terminal is wide.
const KEPT_BYTES: usize = 2048;
/// What a token is taken for while nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// All answers of a session that are being written.
#[derive(Debug, Default)]
pub(super) struct Live {
    epoch: u32,
    /// The last iteration and attempt of each execution that is durable.
    durable: HashMap<ExecutionId, (u32, u32)>,
    /// In order of their last delta.
    answers: Vec<Answer>,
}

#[derive(Debug)]
struct Answer {
    execution: ExecutionId,
    place: (u32, u32),
    kind: DeltaKind,
    streams: [Stream; 3],
}

/// The end of one stream: `text` begins at byte `base`.
#[derive(Debug, Default)]
struct Stream {
    base: u64,
    text: String,
}

impl Live {
    /// Takes a delta in; `false` when it is old.
    pub(super) fn delta(&mut self, delta: &Delta) -> bool {
        let place = (delta.iteration, delta.attempt);
        let is_durable = self.durable.get(&delta.execution_id).is_some_and(|durable| place <= *durable);
        if delta.epoch < self.epoch || is_durable {
            return false;
        }
        self.enter(delta.epoch);
        let found = self.answers.iter().position(|answer| answer.execution == delta.execution_id);
        let mut answer = match found.map(|at| self.answers.remove(at)) {
            Some(answer) if place < answer.place => {
                self.answers.push(answer);
                return false;
            }
            Some(answer) if place == answer.place => answer,
            Some(_) | None => {
                Answer { execution: delta.execution_id, place, kind: delta.kind, streams: <[Stream; 3]>::default() }
            }
        };
        answer.kind = delta.kind;
        answer.stream_mut().write(delta.offset, &delta.delta);
        self.answers.push(answer);
        true
    }

    /// Whether nothing is being written.
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Forgets what an event makes durable.
    pub(super) fn event(&mut self, event: &TimelineEvent) {
        if event.event_type.is_end() {
            self.answers.clear();
        }
        if let Some(epoch) = Meta::new(&event.metadata, false).number("epoch") {
            self.enter(u32::try_from(epoch).unwrap_or(u32::MAX));
        }
        if let (Some(execution), Some(iteration)) = (event.execution_id, event.iteration) {
            let place = (iteration, event.attempt.unwrap_or(u32::MAX));
            let durable = self.durable.entry(execution).or_default();
            *durable = place.max(*durable);
            self.answers.retain(|answer| answer.execution != execution || answer.place > place);
        }
    }

    /// Whose answer was written to last, and what to say about it in at most `columns`.
    pub(super) fn status(&self, columns: usize, ascii: bool) -> Option<(ExecutionId, String)> {
        let answer = self.answers.last()?;
        let stream = answer.stream();
        let dots = if ascii { "..." } else { "…" };
        let status = match answer.kind {
            DeltaKind::Thinking => {
                let tokens = (stream.end() / BYTES_PER_TOKEN).max(1);
                format!("thinking{dots} {}", format::count(tokens, "token"))
            }
            DeltaKind::Text => {
                let head = format!("writing{dots} ");
                let room = columns.saturating_sub(text::width(&head));
                let tail = text::cut_front(&text::one_line(&stream.text, ascii), room, ascii);
                format!("{head}{tail}")
            }
            DeltaKind::Raw => format!("writing{dots}"),
        };
        Some((answer.execution, text::cut(status.trim_end(), columns, ascii)))
    }

    /// A higher epoch is another worker: whatever the last one was writing is being written again.
    fn enter(&mut self, epoch: u32) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.answers.clear();
        }
    }
}

impl Answer {
    fn stream(&self) -> &Stream {
        let [text, thinking, raw] = &self.streams;
        match self.kind {
            DeltaKind::Text => text,
            DeltaKind::Thinking => thinking,
            DeltaKind::Raw => raw,
        }
    }

    fn stream_mut(&mut self) -> &mut Stream {
        let [text, thinking, raw] = &mut self.streams;
        match self.kind {
            DeltaKind::Text => text,
            DeltaKind::Thinking => thinking,
            DeltaKind::Raw => raw,
        }
    }
}

impl Stream {
    fn end(&self) -> u64 {
        self.base + u64::try_from(self.text.len()).unwrap_or(u64::MAX)
    }

    fn write(&mut self, offset: u64, delta: &str) {
        let keep = offset.checked_sub(self.base).and_then(|keep| usize::try_from(keep).ok());
        match keep {
            Some(keep) if keep <= self.text.len() => self.text.truncate(self.text.floor_char_boundary(keep)),
            // A delta was lost, or the stream begins again before what is kept: go on with what there is.
            Some(_) | None => *self = Self { base: offset, text: String::new() },
        }
        self.text.push_str(delta);
        if self.text.len() > 2 * KEPT_BYTES {
            let gone = self.text.ceil_char_boundary(self.text.len() - KEPT_BYTES);
            self.text.drain(..gone);
            self.base += u64::try_from(gone).unwrap_or(u64::MAX);
        }
    }
}
