//! Statistics of durations, and parameters from the environment.

use std::fmt;
use std::time::Duration;

/// Measured durations.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Duration>);

impl Figures {
    pub(crate) fn add(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn worst(&self) -> Duration {
        self.0.iter().max().copied().expect("nothing was measured")
    }

    /// The quantile of the durations: 0.5 for the median.
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1).expect("nothing was measured");
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index below the length"
        )]
        let index = (last as f64 * part).round() as usize;
        sorted[index]
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }
}

impl FromIterator<Duration> for Figures {
    fn from_iter<I: IntoIterator<Item = Duration>>(durations: I) -> Self {
        Self(durations.into_iter().collect())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, most, worst] =
            [self.median(), self.quantile(0.99), self.worst()].map(|figure| figure.as_millis());
        write!(
            f,
            "median {median} ms, 99 % {most} ms, worst {worst} ms of {}",
            self.count()
        )
    }
}

/// Whether `./dev prove` runs this test, with the quantities that prove a guarantee instead of the short ones of the
/// suite.
pub(crate) fn is_proof() -> bool {
    std::env::var("TARSY_TEST_DEPTH").is_ok_and(|depth| depth == "prove")
}

/// The number of repetitions in a test: `suite` in `./dev test`, `proof` in `./dev prove`, any other number by the
/// variable.
pub(crate) fn by_depth<N: std::str::FromStr>(variable: &str, suite: N, proof: N) -> N {
    from_env(variable, if is_proof() { proof } else { suite })
}

/// A number from the environment, or the default.
pub(crate) fn from_env<N: std::str::FromStr>(variable: &str, default: N) -> N {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
        Err(_) => default,
    }
}

/// The time from the first to the second; zero when the second is earlier.
pub(crate) fn between(
    from: chrono::DateTime<chrono::Utc>,
    to: chrono::DateTime<chrono::Utc>,
) -> Duration {
    (to - from).to_std().unwrap_or_default()
}
