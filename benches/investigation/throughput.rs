//! Time of one investigation alone, investigations a second with many slots, and the processor time of each.

use std::time::{Duration, Instant};

use crate::line;
use crate::rig::{AT_ONCE, Rig};
use crate::support::process::Tarsy;

const WARM_UP: usize = 100;
/// Investigations of each measurement.
const ALONE: usize = 300;
const MANY: usize = 800;

pub(crate) async fn measure() {
    let rig = Rig::start(&AT_ONCE, &[]).await;
    for slots in [1, 8, 64, 256] {
        let (worker, ready) = rig.worker(&format!("w{slots}"), slots).await;
        if slots == 1 {
            line(
                "worker: time until it is ready",
                format_args!("{:.0} ms", ready.as_secs_f64() * 1e3),
            );
        }
        let count = if slots == 1 { ALONE } else { MANY };
        one(&rig, &[&worker], &format!("{slots} slots"), count).await;
        if slots == 1 {
            alone(&rig, count);
        }
    }
    let (first, _) = rig.worker("wa", 64).await;
    let (second, _) = rig.worker("wb", 64).await;
    one(&rig, &[&first, &second], "two workers of 64 slots", MANY).await;
}

async fn one(rig: &Rig, workers: &[&Tarsy], name: &str, count: usize) {
    rig.investigate(WARM_UP).await;
    let (before, began) = (rig.processors(workers), Instant::now());
    rig.investigate(count).await;
    let took = began.elapsed().as_secs_f64();
    line(
        &format!("{name}: investigations a second"),
        format_args!("{:.0}", count as f64 / took),
    );
    let each = rig.processors(workers).each(before, count);
    line(
        "  processor time of each: Postgres / worker / nats-server / LLM service",
        format_args!("{each}"),
    );
}

/// The time from the opening of a session to its end, of the newest sessions.
fn alone(rig: &Rig, count: usize) {
    let quantile = |part: f64| {
        let sql = format!(
            "SELECT (percentile_disc({part}) WITHIN GROUP (ORDER BY finished_at - created_at))::text FROM \
             (SELECT extract(epoch FROM finished_at) AS finished_at, extract(epoch FROM created_at) AS created_at \
              FROM alert_sessions ORDER BY session_id DESC LIMIT {count}) s"
        );
        Duration::from_secs_f64(rig.system.database.text(&sql).parse().unwrap()).as_secs_f64() * 1e3
    };
    let (median, most) = (quantile(0.5), quantile(0.99));
    line(
        "one slot: from created to finished, p50 / p99",
        format_args!("{median:.1} / {most:.1} ms"),
    );
}
