//! Instructions to the fake provider. They are in the prompt, so that they pass through every service.

use std::time::Duration;

const MARK: &str = "bench-script";

/// An answer of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) chunks: u32,
    /// The time from the request to the first byte of the answer.
    pub(crate) delay: Duration,
    /// The time between two chunks. With a pause of zero several chunks are written at once.
    pub(crate) pause: Duration,
}

impl Script {
    pub(crate) fn prompt(self) -> String {
        format!(
            "{MARK} {} {} {} end",
            self.chunks,
            self.delay.as_micros(),
            self.pause.as_micros()
        )
    }

    /// Finds the prompt in the body of a request.
    pub(crate) fn find(body: &str) -> Option<Self> {
        let mut words = body.split_once(MARK)?.1.split_whitespace();
        let mut number = || words.next()?.parse::<u32>().ok();
        let (chunks, delay, pause) = (number()?, number()?, number()?);
        Some(Self {
            chunks,
            delay: Duration::from_micros(delay.into()),
            pause: Duration::from_micros(pause.into()),
        })
    }
}
