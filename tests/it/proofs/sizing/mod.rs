//! The figures of `docs/operations/sizing.md`: memory of a worker, and what an investigation costs in the database, in
//! the broker, on the network and in time of the processors.
//!
//! The suite measures little. `TARSY_SIZING=1 ./dev test --test it proofs::sizing -- --nocapture` measures all of it.
//! Times of the processors need an optimised program, which `TARSY_TEST_PROGRAM` names.

mod investigations;
mod memory;
mod meter;

use std::time::Duration;

use crate::support::figures::from_env;

/// How much is measured.
struct Extent {
    /// Slots of the workers whose memory is measured.
    slots: &'static [u32],
    /// The time of a model call while memory is measured.
    call: Duration,
    /// Investigations of each kind.
    investigations: usize,
    /// For how long an idle worker is watched.
    idle: Duration,
}

impl Extent {
    fn chosen() -> Self {
        if from_env("TARSY_SIZING", 0_u8) == 0 {
            let call = Duration::from_millis(500);
            Self { slots: &[1, 4], call, investigations: 3, idle: Duration::from_secs(3) }
        } else {
            let call = Duration::from_secs(3);
            Self { slots: &[1, 20, 100], call, investigations: 100, idle: Duration::from_secs(60) }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_figures_for_sizing_are_measured() {
    let extent = Extent::chosen();
    println!("program: {}", crate::support::process::program());
    memory::measure(&extent).await;
    for kind in [investigations::Kind::typical(), investigations::Kind::long()] {
        investigations::measure(kind, &extent).await;
    }
}
