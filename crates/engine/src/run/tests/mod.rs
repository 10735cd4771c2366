//! Tests of runs over fakes of the ports, in paused time.

mod approvals;
mod attempts;
mod alert_updates;
mod chains;
mod citations;
mod endings;
mod fallback;
mod log_lines;
mod pauses;
mod rate_limits;
mod rebuilt;
mod results;
mod review;
mod skills;
mod strategies;
mod sub_agents;
mod survival;
mod time_budget;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::control::{Control, Interrupted};
use super::session::LeasedSession;
use crate::testing::Scene;

/// The control of a run whose lease never expires.
pub(super) fn control() -> Control {
    draining(CancellationToken::new())
}

fn draining(drain: CancellationToken) -> Control {
    Control::new(Instant::now(), Duration::from_hours(24), drain)
}

async fn run(scene: &Scene, control: Control) -> Result<(), Interrupted> {
    LeasedSession {
        ports: scene.ports.clone(),
        lease: scene.lease(),
        control,
        opened: None,
        max_open: 1_000,
    }
    .run()
    .await
    .map(drop)
}
