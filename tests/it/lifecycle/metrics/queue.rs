//! The gauges of the queue, which one worker at a time exports.

use std::time::Duration;

use crate::support::http;
use crate::support::process::{Tarsy, metric};
use crate::support::system::TestSystem;

/// Twice the time after which a silent worker has ended, and the interval between two reads of the queue.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(120);

const GAUGES: [&str; 4] = [
    "tarsy_queue_pending",
    "tarsy_queue_in_progress",
    "tarsy_queue_oldest_alert_age_seconds",
    "tarsy_queue_poll_timestamp_seconds",
];

/// Waits until one of these workers exports the gauges, with the three alerts that wait. Returns its index.
async fn one_exports(workers: &[(Tarsy, String)]) -> usize {
    let reached = async {
        loop {
            let mut exporting = Vec::new();
            for (index, (_, metrics)) in workers.iter().enumerate() {
                let body = http::get(metrics, "/metrics").await.body;
                if GAUGES
                    .iter()
                    .any(|name| body.lines().any(|line| line.starts_with(name)))
                {
                    exporting.push(index);
                }
            }
            if let [at] = exporting.as_slice()
                && (metric(
                    &workers[*at].1,
                    "tarsy_queue_pending",
                    "priority=\"critical\"",
                )
                .await
                    - 3.0)
                    .abs()
                    < 1e-9
            {
                return *at;
            }
            tokio::time::sleep(Duration::from_millis(100)).await; // pacing of the scrapes
        }
    };
    tokio::time::timeout(TAKEN_OVER_WITHIN, reached)
        .await
        .expect("one worker exports the gauges of the queue in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_worker_exports_the_queue_and_another_one_takes_over_after_its_death() {
    let mut system = TestSystem::start(&[]).await;
    system.llm.kill().await;
    for _ in 0..3 {
        system.publish().await;
    }
    let mut workers = vec![system.worker("w1").await, system.worker("w2").await];
    let first = one_exports(&workers).await;
    let (mut killed, _) = workers.remove(first);
    killed.kill().await;
    assert_eq!(one_exports(&workers).await, 0);
}
