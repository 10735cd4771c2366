//! The limit of a route, as the statement takes it.

use serde_json::{Value, json};

use crate::rows::{nul, number};
use tarsy_core::alert::Alert;
use tarsy_engine::ports::RouteLimit;

/// The sessions of a route with a limit open one after the other: each rival makes one try fail.
const MAX_TURNS: usize = 100;

/// The limit of the alert's route; without a route there is none.
#[derive(Clone, Default)]
pub(super) struct LimitColumns {
    pub(super) route: Option<String>,
    pub(super) max_per_hour: i32,
    pub(super) why: String,
    /// The metadata of the event about the limit.
    pub(super) metadata: Value,
}

impl LimitColumns {
    pub(super) fn new(limit: Option<RouteLimit>, alert: &Alert) -> Self {
        let Some(limit) = limit else {
            return Self {
                metadata: json!({}),
                ..Self::default()
            };
        };
        let metadata = json!({
            "route": limit.route, "max_per_hour": limit.max_per_hour, "title": alert.title,
            "severity": alert.severity.as_str(),
        });
        Self {
            why: limit.why(),
            route: Some(limit.route),
            max_per_hour: number::int(limit.max_per_hour),
            metadata: nul::replace_json(metadata),
        }
    }

    /// The number of attempts of the statement, if there is a limit.
    pub(super) fn tries(&self) -> Option<usize> {
        self.route.as_ref().map(|_| MAX_TURNS)
    }
}
