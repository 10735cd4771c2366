//! Memory of a worker and of the LLM service: idle, and with many sessions that wait for the model.

use std::time::{Duration, Instant};

use crate::line;
use crate::meter::memory_mib;
use crate::rig::{Recording, Rig};
use crate::support::figures::from_env;

/// Each session waits for its second answer, so its conversation has a tool result.
pub(crate) async fn measure() {
    let sessions: u32 = from_env("TARSY_BENCH_SESSIONS", 1_000);
    let wait = Duration::from_secs(from_env("TARSY_BENCH_WAIT_SECS", 30));
    let rig = Rig::start(
        &Recording {
            iterations: 2,
            wait,
        },
        &[],
    )
    .await;
    let (worker, _) = rig.worker("w1", sessions).await;
    let (idle, service) = (memory_mib(worker.pid()), memory_mib(rig.system.llm.pid()));
    line("worker: memory when idle", format_args!("{idle:.1} MiB"));
    line(
        "LLM service: memory when idle",
        format_args!("{service:.1} MiB"),
    );
    let began = Instant::now();
    rig.publish(sessions as usize).await;
    let open = "SELECT count(*) FROM agent_executions WHERE checkpoint = 3 AND status = 'running'";
    rig.until(
        sessions as usize,
        open,
        "every session waits for its second answer",
    )
    .await;
    line(
        &format!("time until {sessions} sessions are open"),
        format_args!("{:.1} s", began.elapsed().as_secs_f64()),
    );
    // The last of them send their requests now, and heartbeats and renewals are sent as well.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let each = |now: f64, then: f64| (now - then) * 1024.0 / f64::from(sessions);
    let (busy, serving) = (memory_mib(worker.pid()), memory_mib(rig.system.llm.pid()));
    line(
        &format!("worker: memory of each of {sessions} open sessions"),
        format_args!("{:.1} KiB", each(busy, idle)),
    );
    line(
        &format!("LLM service: memory of each of {sessions} open streams"),
        format_args!("{:.1} KiB", each(serving, service)),
    );
    rig.settled(sessions as usize).await;
    line(
        &format!("time until {sessions} sessions are settled"),
        format_args!("{:.1} s", began.elapsed().as_secs_f64()),
    );
}
