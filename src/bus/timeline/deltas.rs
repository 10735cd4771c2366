//! Live deltas: collected for 30 ms, shown on core NATS, never kept. A lost one costs a watcher a moment.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bus::connection::Nats;
use crate::bus::names::live_subject;
use crate::investigation::timeline::Delta;

/// How long pieces are collected.
const WINDOW: Duration = Duration::from_millis(30);
/// Longer pieces are shown at once.
const MAX_DELTA_BYTES: usize = 64 * 1024;
/// How many streams are collected at a time.
const MAX_STREAMS: usize = 1024;

/// Shows what comes on `deltas` until `stop`.
pub(super) async fn show(nats: Nats, mut deltas: mpsc::Receiver<Delta>, stop: CancellationToken) {
    let mut collected = Collected::default();
    loop {
        let first = tokio::select! {
            () = stop.cancelled() => return,
            delta = deltas.recv() => match delta {
                Some(delta) => delta,
                None => return,
            },
        };
        let mut ready: Vec<Delta> = collected.push(first).into_iter().collect();
        let window = tokio::time::sleep(WINDOW);
        tokio::pin!(window);
        loop {
            send(&nats, ready.drain(..)).await;
            tokio::select! {
                biased;
                () = &mut window => break,
                () = stop.cancelled() => break,
                Some(delta) = deltas.recv() => ready.extend(collected.push(delta)),
            }
        }
        send(&nats, collected.take().into_iter()).await;
    }
}

async fn send(nats: &Nats, deltas: impl Iterator<Item = Delta> + Send) {
    for delta in deltas {
        let Ok(payload) = serde_json::to_vec(&delta) else { continue };
        if let Err(error) = nats.show(live_subject(delta.session_id), payload).await {
            tracing::debug!(%error, "a delta was dropped");
        }
    }
}

/// Deltas of several answers, each stream joined to one piece. Pure.
#[derive(Debug, Default)]
struct Collected(Vec<Delta>);

impl Collected {
    /// Adds a piece; returns one that has to be shown now because `delta` does not continue it.
    fn push(&mut self, delta: Delta) -> Option<Delta> {
        let has_room = self.0.len() < MAX_STREAMS;
        let same_stream = |held: &&mut Delta| held.execution_id == delta.execution_id && held.kind == delta.kind;
        let Some(held) = self.0.iter_mut().find(same_stream) else {
            if !has_room {
                return Some(delta);
            }
            self.0.push(delta);
            return None;
        };
        if continues(held, &delta) {
            held.delta.push_str(&delta.delta);
            return None;
        }
        Some(std::mem::replace(held, delta))
    }

    fn take(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.0)
    }
}

fn continues(held: &Delta, next: &Delta) -> bool {
    let end = u64::try_from(held.delta.len()).map(|length| held.offset + length);
    (held.epoch, held.iteration, held.attempt) == (next.epoch, next.iteration, next.attempt)
        && end == Ok(next.offset)
        && held.delta.len() + next.delta.len() <= MAX_DELTA_BYTES
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::investigation::ids::{ExecutionId, SessionId};
    use crate::investigation::timeline::DeltaKind;

    fn delta(kind: DeltaKind, attempt: u32, offset: u64, text: &str) -> Delta {
        Delta {
            session_id: SessionId(Uuid::nil()),
            execution_id: ExecutionId(Uuid::nil()),
            epoch: 1,
            iteration: 1,
            attempt,
            kind,
            offset,
            delta: text.into(),
        }
    }

    #[test]
    fn consecutive_pieces_of_one_stream_become_one() {
        use DeltaKind::{Text, Thinking};
        let mut collected = Collected::default();
        for piece in
            [delta(Text, 1, 0, "é"), delta(Thinking, 1, 0, "hm"), delta(Text, 1, 2, "b"), delta(Text, 1, 3, "c")]
        {
            assert_eq!(collected.push(piece), None);
        }
        assert_eq!(collected.take(), [delta(Text, 1, 0, "ébc"), delta(Thinking, 1, 0, "hm")]);
        assert_eq!(collected.take(), []);
    }

    #[test]
    fn a_piece_that_does_not_continue_pushes_the_held_one_out() {
        use DeltaKind::Text;
        let mut collected = Collected::default();
        assert_eq!(collected.push(delta(Text, 1, 0, "abc")), None);
        assert_eq!(collected.push(delta(Text, 1, 1, "x")), Some(delta(Text, 1, 0, "abc")));
        assert_eq!(collected.push(delta(Text, 2, 2, "y")), Some(delta(Text, 1, 1, "x")));
        assert_eq!(collected.take(), [delta(Text, 2, 2, "y")]);
    }
}
