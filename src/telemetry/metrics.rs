//! The recorder behind the macros of `metrics`, and its text form.
//!
//! There is no listener in here: `/metrics` is served beside the probes by [`super::http`].

use std::time::Duration;

use metrics::Unit;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio_util::sync::CancellationToken;

use super::names::{Kind, METRICS};

/// Without it the samples of histograms pile up between two scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

/// The metrics cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A table of buckets is empty.
    #[error("metrics cannot be built: {0}")]
    Build(#[from] BuildError),
    /// Another recorder is there already.
    #[error("metrics are set up already")]
    Installed,
}

/// What has been counted.
#[derive(Clone, Debug)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Makes this the recorder of the process and exports every counter as 0.
    ///
    /// # Errors
    ///
    /// When there is a recorder already.
    pub fn install() -> Result<Self, Error> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|_| Error::Installed)?;
        begin();
        Ok(Self { handle })
    }

    /// A recorder that belongs to nobody, with every counter at 0.
    #[cfg(test)]
    pub(super) fn for_tests() -> Self {
        let recorder = recorder().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, begin);
        Self { handle }
    }

    /// The text form of Prometheus.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Keeps memory bounded until `stop` is cancelled. One task has to run this.
    pub async fn keep_up(&self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(UPKEEP);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            self.handle.run_upkeep();
        }
    }
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if let Kind::Seconds(buckets) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
        }
    }
    Ok(builder.build_recorder())
}

/// Describes everything and begins every counter at 0.
fn begin() {
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            Kind::Seconds(_) => metrics::describe_histogram!(metric.name, Unit::Seconds, metric.help),
        }
        match (&metric.kind, &metric.label) {
            (Kind::Counter, None) => metrics::counter!(metric.name).absolute(0),
            (Kind::Counter, Some(label)) => {
                for value in label.values {
                    metrics::counter!(metric.name, label.key => *value).absolute(0);
                }
            }
            (Kind::Gauge | Kind::Seconds(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(work: impl FnOnce()) -> String {
        let recorder = recorder().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            begin();
            work();
        });
        handle.render()
    }

    #[test]
    fn every_counter_is_exported_before_anything_is_counted() {
        let text = rendered(|| {});
        for metric in METRICS.iter().filter(|metric| matches!(metric.kind, Kind::Counter)) {
            match &metric.label {
                None => assert!(text.contains(&format!("\n{} 0\n", metric.name)), "{}: {text}", metric.name),
                Some(label) => {
                    for value in label.values {
                        let line = format!("\n{}{{{}=\"{value}\"}} 0\n", metric.name, label.key);
                        assert!(text.contains(&line), "{line}: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn durations_are_histograms_with_their_own_buckets() {
        let text = rendered(|| {
            for metric in METRICS.iter().filter(|metric| matches!(metric.kind, Kind::Seconds(_))) {
                metrics::histogram!(metric.name).record(0.003);
            }
        });
        assert!(!text.contains(" summary"), "{text}");
        assert!(text.contains("tarsy_checkpoint_duration_seconds_bucket{le=\"0.005\"} 1\n"), "{text}");
        assert!(text.contains("tarsy_model_call_duration_seconds_bucket{le=\"0.25\"} 1\n"), "{text}");
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for metric in METRICS {
            let good = match metric.kind {
                Kind::Counter => metric.name.ends_with("_total"),
                Kind::Gauge => !metric.name.ends_with("_total"),
                Kind::Seconds(_) => metric.name.ends_with("_seconds"),
            };
            assert!(good && metric.name.starts_with("tarsy_"), "{}", metric.name);
        }
    }

    #[test]
    fn buckets_rise() {
        for metric in METRICS {
            if let Kind::Seconds(buckets) = metric.kind {
                assert!(buckets.is_sorted() && !buckets.is_empty(), "{}", metric.name);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_upkeep_ends_on_its_token() {
        let metrics = Metrics::for_tests();
        let stop = CancellationToken::new();
        let upkeep = tokio::spawn({
            let stop = stop.clone();
            async move { metrics.keep_up(stop).await }
        });
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(1), upkeep).await.expect("it has to end").unwrap();
    }
}
