//! The memory of a worker, by its slots and by the sessions that it runs.

use std::time::Duration;

use super::Extent;
use super::meter::memory_mib;
use crate::proofs::load::{paced, publish_many};
use crate::support::process::peak_memory;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually_within;

const ANSWERS: usize = 5;
const WITHIN: Duration = Duration::from_secs(300);
/// The gate at which each session waits with three checkpoints, until the memory is read.
const BUSY: &str = "answer-3-start";

/// Prints a line for each number of slots: memory when idle, and with a session in each slot.
pub(super) async fn measure(extent: &Extent) {
    println!(
        "\n{:>6} {:>12} {:>14} {:>12} {:>18}",
        "slots", "idle MiB", "all busy MiB", "peak MiB", "KiB a session"
    );
    for slots in extent.slots {
        let transcript = Some(paced(ANSWERS, extent.call));
        let lease = Duration::from_secs(30);
        let watched = &[BUSY];
        let setup = Setup {
            slots: *slots,
            lease,
            transcript,
            watched,
            ..Setup::default()
        };
        let mut system = TestSystem::start_with(setup).await;
        let (worker, _) = system.worker("w1").await;
        worker.logged("claiming started").await;
        let idle = memory_mib(worker.pid());
        let sessions = usize::try_from(*slots).unwrap();
        publish_many(&system, sessions).await;
        let mut waiting = Vec::new();
        for _ in 0..sessions {
            waiting.push(system.gates.next().await);
        }
        let all_busy = memory_mib(worker.pid());
        system.gates.open_all();
        drop(waiting);
        let ended = format!(
            "SELECT count(*) = {sessions} FROM alert_sessions WHERE settled_at IS NOT NULL"
        );
        eventually_within(WITHIN, "every session has ended", async || {
            system.database.holds(&ended)
        })
        .await;
        let (peak, each) = (
            peak_memory(&worker),
            (all_busy - idle) * 1024.0 / f64::from(*slots),
        );
        println!("{slots:>6} {idle:>12.1} {all_busy:>14.1} {peak:>12} {each:>18.0}");
        assert!(
            idle > 1.0 && all_busy >= idle * 0.8,
            "the memory was read: {idle} {all_busy}"
        );
    }
}
