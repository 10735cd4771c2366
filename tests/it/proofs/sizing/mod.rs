//! The figures of `docs/operations/sizing.md`: memory of a worker, and what an investigation costs in the database, in
//! the broker, on the network and in time of the processors.
//!
//! The suite measures least, the proof a little. `TARSY_SIZING=1 ./dev test --test it proofs::sizing -- --nocapture`
//! measures all of it. Times of the processors need an optimised program, which `TARSY_TEST_PROGRAM` names.

mod investigations;
mod memory;
mod meter;

use std::time::Duration;

use crate::support::figures::{from_env, is_proof};

/// The extent of the measurement.
struct Extent {
    /// Slots of the workers whose memory is measured.
    slots: &'static [u32],
    /// The time of a model call while memory is measured.
    call: Duration,
    /// Investigations of each kind.
    investigations: usize,
    /// Iterations of the long kind.
    iterations: usize,
    /// For how long an idle worker is watched.
    idle: Duration,
}

impl Extent {
    fn chosen() -> Self {
        if from_env("TARSY_SIZING", 0_u8) != 0 {
            let (call, idle) = (Duration::from_secs(3), Duration::from_secs(60));
            Self {
                slots: &[1, 20, 100],
                call,
                investigations: 100,
                iterations: 30,
                idle,
            }
        } else if is_proof() {
            let (call, idle) = (Duration::from_millis(500), Duration::from_secs(3));
            Self {
                slots: &[1, 4],
                call,
                investigations: 3,
                iterations: 30,
                idle,
            }
        } else {
            let (call, idle) = (Duration::from_millis(50), Duration::from_secs(1));
            Self {
                slots: &[2],
                call,
                investigations: 1,
                iterations: 6,
                idle,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_figures_for_sizing_are_measured() {
    let extent = Extent::chosen();
    println!("program: {}", crate::support::process::program());
    memory::measure(&extent).await;
    for kind in [
        investigations::Kind::typical(),
        investigations::Kind::long(extent.iterations),
    ] {
        investigations::measure(kind, &extent).await;
    }
}
