//! A row of the tables of metrics: name, kind and labels.

#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: [Option<Label>; 3],
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Debug)]
pub enum Kind {
    /// Exported as 0 from the start, so that a rate sees the first increment.
    Counter,
    Gauge,
    /// A histogram of seconds with the upper bounds of its buckets.
    Seconds(&'static [f64]),
    /// A histogram of tokens with the upper bounds of its buckets.
    Tokens(&'static [f64]),
    /// A histogram of numbers with the upper bounds of its buckets.
    Count(&'static [f64]),
}

impl Kind {
    /// The upper bounds of the buckets; `None` for a metric that is no histogram.
    pub fn buckets(&self) -> Option<&'static [f64]> {
        match self {
            Self::Seconds(buckets) | Self::Tokens(buckets) | Self::Count(buckets) => Some(buckets),
            Self::Counter | Self::Gauge => None,
        }
    }
}

/// A label of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub key: &'static str,
    /// All values; [`PROVIDERS`], [`SERVERS`], [`ROUTES`], [`AGENTS`] and [`POLICIES`] stand for names of the
    /// configuration.
    pub values: &'static [&'static str],
}

/// The values are the names of the LLM providers in the configuration.
pub const PROVIDERS: &[&str] = &["configured providers"];

/// The values are the names of the MCP servers in the configuration, `tarsy` for the built-in tools, and `other`. A
/// plan that is older than the configuration may name one more.
pub const SERVERS: &[&str] = &["configured servers"];

/// The values are the names of the routes in the configuration, and `none`.
pub const ROUTES: &[&str] = &["configured routes"];

/// The values are the names of the sub-agents in the configuration. A plan that is older than the configuration may
/// name others.
pub const AGENTS: &[&str] = &["configured sub-agents"];

/// The values are the names of the policies of approvals in the configuration. A plan that is older than the
/// configuration may name others.
pub const POLICIES: &[&str] = &["configured policies"];

impl Metric {
    /// The keys of the labels, in order.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.labels.iter().flatten().map(|label| label.key)
    }

    pub(super) const fn by(mut self, key: &'static str, values: &'static [&'static str]) -> Self {
        let label = Some(Label { key, values });
        self.labels = match self.labels {
            [None, _, _] => [label, None, None],
            [first, None, _] => [first, label, None],
            [first, second, _] => [first, second, label],
        };
        self
    }
}

const fn metric(name: &'static str, kind: Kind, help: &'static str) -> Metric {
    Metric {
        name,
        kind,
        labels: [None; 3],
        help,
    }
}

pub(super) const fn counter(name: &'static str, help: &'static str) -> Metric {
    metric(name, Kind::Counter, help)
}

pub(super) const fn gauge(name: &'static str, help: &'static str) -> Metric {
    metric(name, Kind::Gauge, help)
}

pub(super) const fn seconds(
    name: &'static str,
    buckets: &'static [f64],
    help: &'static str,
) -> Metric {
    metric(name, Kind::Seconds(buckets), help)
}

pub(super) const fn tokens(
    name: &'static str,
    buckets: &'static [f64],
    help: &'static str,
) -> Metric {
    metric(name, Kind::Tokens(buckets), help)
}

pub(super) const fn numbers(
    name: &'static str,
    buckets: &'static [f64],
    help: &'static str,
) -> Metric {
    metric(name, Kind::Count(buckets), help)
}
