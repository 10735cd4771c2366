//! The Prometheus recorder of the macros of `metrics`, rendered in the text format.
//!
//! [`super::http`] serves the text next to the probes.

use std::time::Duration;

use metrics::{Label, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio_util::sync::CancellationToken;

use super::names::{AGENTS, Kind, Metric, POLICIES, PROVIDERS, ROUTES, Role, SERVERS, all};
use super::process;

/// The interval at which the samples of histograms are aggregated. Otherwise they pile up between two scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The recorder cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A histogram has no buckets.
    #[error("metrics cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The process has a recorder already.
    #[error("metrics are set up already")]
    Installed,
}

/// The names in the configuration that are values of labels.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    /// LLM providers.
    pub providers: Vec<String>,
    /// MCP servers.
    pub servers: Vec<String>,
    /// Routes of alerts.
    pub routes: Vec<String>,
    /// Agents that others may dispatch.
    pub agents: Vec<String>,
    /// Policies of approvals.
    pub policies: Vec<String>,
}

/// The recorder of this process.
#[derive(Clone, Debug)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Installs the recorder of the process and exports every counter and histogram of `role` as 0, with the labels
    /// that `configured` names.
    ///
    /// # Errors
    ///
    /// When the process has a recorder already.
    pub fn install(role: Role, configured: &Configured) -> Result<Self, Error> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|_| Error::Installed)?;
        register(role, configured);
        Ok(Self { handle })
    }

    /// The current values in the text format of Prometheus. A gauge that is not a number has no value at present, so
    /// its line is left out.
    pub fn render(&self) -> String {
        without_values_unknown(&self.handle.render()) + &process::render()
    }

    /// Aggregates samples until `stop` is cancelled, which keeps memory bounded. One task has to run this.
    pub async fn keep_up(&self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(UPKEEP_INTERVAL);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            self.handle.run_upkeep();
        }
    }
}

fn without_values_unknown(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| !line.trim_end().ends_with(" NaN"))
        .collect()
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in all() {
        if let Some(buckets) = metric.kind.buckets() {
            builder =
                builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
        }
    }
    Ok(builder.build_recorder())
}

/// Describes every metric of a role and exports its counters and histograms as 0. A gauge is exported when it is first
/// set, because its value is unknown before.
fn register(role: Role, configured: &Configured) {
    for metric in role.metrics() {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            Kind::Seconds(_) => {
                metrics::describe_histogram!(metric.name, Unit::Seconds, metric.help)
            }
            Kind::Tokens(_) | Kind::Count(_) => {
                metrics::describe_histogram!(metric.name, metric.help)
            }
        }
        if !metric.name.starts_with("tarsy_") {
            // The metrics `process_*` come from the operating system.
            continue;
        }
        for labels in series(metric, configured) {
            match metric.kind {
                Kind::Counter => metrics::counter!(metric.name, labels).absolute(0),
                Kind::Seconds(_) | Kind::Tokens(_) | Kind::Count(_) => {
                    drop(metrics::histogram!(metric.name, labels))
                }
                Kind::Gauge => {}
            }
        }
    }
    metrics::gauge!(
        "tarsy_build_info",
        "version" => env!("CARGO_PKG_VERSION"),
        "commit" => tarsy_build_info::COMMIT,
        "rustc" => tarsy_build_info::RUSTC,
    )
    .set(1.0);
}

/// The labels of every series of a metric.
fn series(metric: &Metric, configured: &Configured) -> Vec<Vec<Label>> {
    let mut series = vec![Vec::new()];
    for label in metric.labels.iter().flatten() {
        let (names, words): (&[String], &[&str]) = match label.values {
            PROVIDERS => (&configured.providers, &[]),
            SERVERS => (&configured.servers, &["tarsy", "other"]),
            ROUTES => (&configured.routes, &["none"]),
            AGENTS => (&configured.agents, &[]),
            POLICIES => (&configured.policies, &[]),
            words => (&[], words),
        };
        let mut longer = Vec::new();
        for labels in series {
            for value in names
                .iter()
                .map(String::as_str)
                .chain(words.iter().copied())
            {
                let mut labels: Vec<Label> = labels.clone();
                labels.push(Label::new(label.key, value.to_owned()));
                longer.push(labels);
            }
        }
        series = longer;
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Metrics {
        /// A recorder that is not installed, with every counter of a worker at 0.
        pub(crate) fn for_tests() -> Self {
            let recorder = recorder().unwrap();
            let handle = recorder.handle();
            metrics::with_local_recorder(&recorder, || {
                register(Role::Worker, &Configured::default())
            });
            Self { handle }
        }
    }

    fn configured() -> Configured {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let routes = vec!["payments".to_owned()];
        Configured {
            providers: names(["fast", "thorough"]),
            servers: names(["cluster", "prometheus"]),
            routes,
            agents: names(["logs", "db"]),
            policies: names(["default", "drain"]),
        }
    }

    fn rendered(role: Role, work: impl FnOnce()) -> String {
        let recorder = recorder().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            register(role, &configured());
            work();
        });
        handle.render()
    }

    #[test]
    fn a_role_exports_its_own_counters_and_histograms_from_the_start_and_no_others() {
        for role in Role::ALL {
            let text = rendered(role, || {});
            for metric in all().filter(|metric| metric.name.starts_with("tarsy_")) {
                let exported = text.contains(&format!("# HELP {} ", metric.name));
                let at_start = matches!(
                    metric.kind,
                    Kind::Counter | Kind::Seconds(_) | Kind::Count(_)
                ) || metric.name.ends_with("_info");
                let own = role.metrics().any(|own| own.name == metric.name);
                assert_eq!(
                    exported,
                    own && at_start,
                    "{role:?} {}: {text}",
                    metric.name
                );
            }
        }
    }

    #[test]
    fn every_pair_of_label_values_starts_at_zero_with_the_configured_providers() {
        let text = rendered(Role::Worker, || {});
        for provider in ["fast", "thorough"] {
            for outcome in ["answered", "failed", "unavailable"] {
                let line = format!(
                    "tarsy_model_calls_total{{provider=\"{provider}\",outcome=\"{outcome}\"}} 0\n"
                );
                assert!(text.contains(&line), "{line}: {text}");
            }
        }
        assert!(text.contains("\ntarsy_sessions_opened_total 0\n"), "{text}");
        assert!(
            text.contains("\ntarsy_dead_letters_total{reason=\"used_id\"} 0\n"),
            "{text}"
        );
    }

    #[test]
    fn durations_are_histograms_with_their_own_buckets() {
        let text = rendered(Role::Worker, || {
            metrics::histogram!("tarsy_checkpoint_duration_seconds").record(0.003);
            metrics::histogram!("tarsy_tool_call_duration_seconds", "server" => "cluster")
                .record(0.003);
        });
        assert!(!text.contains(" summary"), "{text}");
        assert!(
            text.contains("tarsy_checkpoint_duration_seconds_bucket{le=\"0.005\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "tarsy_tool_call_duration_seconds_bucket{server=\"cluster\",le=\"0.01\"} 1\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_gauge_without_a_value_at_present_is_left_out() {
        let text = rendered(Role::Worker, || {
            metrics::gauge!("tarsy_queue_pending", "priority" => "low").set(f64::NAN);
            metrics::gauge!("tarsy_queue_pending", "priority" => "high").set(3.0);
        });
        assert!(
            text.contains("tarsy_queue_pending{priority=\"low\"} NaN\n"),
            "{text}"
        );
        let text = without_values_unknown(&text);
        assert!(
            !text.contains("NaN") && !text.contains("tarsy_queue_pending{priority=\"low\"}"),
            "{text}"
        );
        assert!(
            text.contains("\ntarsy_queue_pending{priority=\"high\"} 3\n"),
            "{text}"
        );
    }

    /// The budget of `docs/operations.md`: four providers and eight MCP servers, each label with every value.
    #[test]
    fn a_pod_exports_at_most_fifteen_hundred_series() {
        let numbered =
            |name: &str, count: u8| (0..count).map(|number| format!("{name}{number}")).collect();
        let configured = Configured {
            providers: numbered("provider", 4),
            servers: numbered("server", 8),
            routes: numbered("route", 64),
            agents: numbered("agent", 4),
            policies: numbered("policy", 4),
        };
        for role in Role::ALL {
            let mut total = 0;
            for metric in role.metrics() {
                let providers = metric
                    .labels
                    .iter()
                    .flatten()
                    .find(|label| label.key == "gen_ai_provider_name");
                let all = series(metric, &configured).len();
                // The service exports a provider of the conventions after its first call.
                let series = providers.map_or(all, |label| {
                    all / label.values.len() * configured.providers.len()
                });
                // A histogram has one more bucket, a sum and a count.
                total += series * metric.kind.buckets().map_or(1, |buckets| buckets.len() + 3);
            }
            println!("{role:?}: {total} series");
            assert!((20..=1500).contains(&total), "{role:?}: {total} series");
        }
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for metric in all() {
            let good = match metric.kind {
                Kind::Counter => metric.name.ends_with("_total"),
                Kind::Gauge => !metric.name.ends_with("_total"),
                Kind::Seconds(_) => metric.name.ends_with("_seconds"),
                Kind::Tokens(_) => metric.name.ends_with("_token_usage"),
                Kind::Count(_) => metric.name.ends_with("_iterations"),
            };
            assert!(
                good && ["tarsy_", "process_", "gen_ai_"]
                    .iter()
                    .any(|start| metric.name.starts_with(start)),
                "{}",
                metric.name
            );
        }
    }

    #[test]
    fn the_bounds_of_buckets_increase() {
        for metric in all() {
            if let Some(buckets) = metric.kind.buckets() {
                assert!(
                    buckets.is_sorted() && !buckets.is_empty(),
                    "{}",
                    metric.name
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_upkeep_ends_when_its_token_is_cancelled() {
        let metrics = Metrics::for_tests();
        let stop = CancellationToken::new();
        let upkeep = tokio::spawn({
            let stop = stop.clone();
            async move { metrics.keep_up(stop).await }
        });
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(1), upkeep)
            .await
            .expect("the upkeep does not end")
            .unwrap();
    }
}
