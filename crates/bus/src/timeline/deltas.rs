//! Live deltas: collected for 30 ms, then published on core NATS and never stored. A watcher that loses one gets the
//! text with the next event.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::connection::Nats;
use crate::names::live_subject;
use tarsy_core::timeline::Delta;

const COLLECT_INTERVAL: Duration = Duration::from_millis(30);
/// A longer piece is published at once.
const MAX_DELTA_BYTES: usize = 64 * 1024;
/// The number of streams of text that are collected at the same time.
const MAX_STREAMS: usize = 1024;

/// Publishes the deltas that arrive until `stop` is cancelled.
pub(super) async fn publish_deltas(
    nats: Nats,
    mut deltas: mpsc::Receiver<Delta>,
    stop: CancellationToken,
) {
    let mut collected = Collected::default();
    loop {
        let Some(Some(first)) = stop.run_until_cancelled(deltas.recv()).await else {
            return;
        };
        let mut ready: Vec<Delta> = collected.push(first).into_iter().collect();
        let window = tokio::time::sleep(COLLECT_INTERVAL);
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
        let Ok(payload) = serde_json::to_vec(&delta) else {
            continue;
        };
        if let Err(error) = nats
            .publish_ephemeral(live_subject(delta.session_id), payload)
            .await
        {
            tracing::debug!(%error, "delta dropped: not published");
        }
    }
}

/// Deltas of several answers; those of one stream of text are joined to one piece. Pure.
#[derive(Debug, Default)]
struct Collected(Vec<Delta>);

impl Collected {
    /// Adds a piece; returns one that has to be published now, because `delta` does not continue it or all streams are
    /// taken.
    fn push(&mut self, delta: Delta) -> Option<Delta> {
        let has_room = self.0.len() < MAX_STREAMS;
        let held = self
            .0
            .iter_mut()
            .find(|held| held.execution_id == delta.execution_id && held.kind == delta.kind);
        let Some(held) = held else {
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
    use tarsy_core::ids::{ExecutionId, SessionId};
    use tarsy_core::timeline::DeltaKind;

    fn delta(kind: DeltaKind, attempt: u32, offset: u64, text: &str) -> Delta {
        Delta {
            session_id: SessionId(Uuid::nil()),
            execution_id: ExecutionId(Uuid::nil()),
            agent: None,
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
        for piece in [
            delta(Text, 1, 0, "é"),
            delta(Thinking, 1, 0, "hm"),
            delta(Text, 1, 2, "b"),
            delta(Text, 1, 3, "c"),
        ] {
            assert_eq!(collected.push(piece), None);
        }
        assert_eq!(
            collected.take(),
            [delta(Text, 1, 0, "ébc"), delta(Thinking, 1, 0, "hm")]
        );
        assert_eq!(collected.take(), []);
    }

    #[test]
    fn a_piece_that_does_not_continue_the_collected_one_replaces_it() {
        use DeltaKind::Text;
        let mut collected = Collected::default();
        assert_eq!(collected.push(delta(Text, 1, 0, "abc")), None);
        assert_eq!(
            collected.push(delta(Text, 1, 1, "x")),
            Some(delta(Text, 1, 0, "abc"))
        );
        assert_eq!(
            collected.push(delta(Text, 2, 2, "y")),
            Some(delta(Text, 1, 1, "x"))
        );
        assert_eq!(collected.take(), [delta(Text, 2, 2, "y")]);
    }
}
