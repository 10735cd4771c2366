//! The pace of a destination: the notes of this process are sent at even intervals.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// The time before which no further note is sent.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// Waits for the turn of a note.
    pub(crate) async fn turn(&self, per_minute: u32) {
        let interval = Duration::from_secs(60) / per_minute.max(1);
        let mut next = self.0.lock().await;
        let now = Instant::now();
        let at = next.unwrap_or(now).max(now);
        *next = Some(at + interval);
        drop(next);
        sleep_until(at).await; // the pace itself
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn notes_are_sent_at_even_intervals() {
        let pace = Pace::default();
        let begin = Instant::now();
        let mut waited = Vec::new();
        for _ in 0..3 {
            pace.turn(60).await;
            waited.push(begin.elapsed());
        }
        assert_eq!(waited, [0, 1, 2].map(Duration::from_secs));
    }
}
