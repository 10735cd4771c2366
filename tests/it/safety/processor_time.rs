//! The processor time of a thread: the share of other processes does not count.

use std::time::{Duration, Instant};

/// Processor time of this thread if the kernel reports it, else wall-clock time.
#[derive(Debug)]
pub(crate) struct Clock {
    on_processor: Option<Duration>,
    begun: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            on_processor: on_processor(),
            begun: Instant::now(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let on_processor = on_processor()
            .zip(self.on_processor)
            .map(|(now, begun)| now.saturating_sub(begun));
        on_processor.unwrap_or_else(|| self.begun.elapsed())
    }
}

fn on_processor() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(stat.split(' ').next()?.parse().ok()?))
}
