//! Limits the rate at which a connection opens event streams. The crate rmcp reopens a broken stream at once, and
//! after a stream that has ended it waits only as long as the server asks, so that a server could cause any number of
//! requests.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The time between two streams of a connection.
const MIN_STREAM_INTERVAL: Duration = Duration::from_millis(200);

/// The time from which the next stream may be opened.
#[derive(Debug, Default)]
pub(super) struct StreamPace(Mutex<Option<Instant>>);

impl StreamPace {
    /// Waits for its turn: the first stream at once, each further one after the interval. Cancel safe; a turn that is
    /// given up stays taken.
    pub(super) async fn turn(&self) {
        let now = Instant::now();
        let at = {
            let mut next = self.0.lock();
            let at = next.map_or(now, |next| next.max(now));
            *next = Some(at + MIN_STREAM_INTERVAL);
            at
        };
        sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_are_opened_one_after_another_with_an_interval_between_them() {
        let pace = StreamPace::default();
        let began = Instant::now();
        for number in 0..4 {
            pace.turn().await;
            assert_eq!(began.elapsed(), MIN_STREAM_INTERVAL * number);
        }
        tokio::time::sleep(MIN_STREAM_INTERVAL * 10).await; // paused time
        let began = Instant::now();
        pace.turn().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
