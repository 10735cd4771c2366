//! A collector that is gone or hangs slows nothing.

use std::time::{Duration, Instant};

use tarsy_core::timeline::EventType;
use tokio::net::TcpListener;

use crate::support::process::ports::free_address;
use crate::support::process::{Tarsy, metric};
use crate::support::system::TestSystem;

/// The flush of the last spans takes two seconds at most, a drain without sessions hardly any time.
const MAX_DRAIN: Duration = Duration::from_secs(10);

/// The time from SIGTERM to the end of a worker that has investigated one alert, and its log.
async fn drain_with(endpoint: &str) -> (Duration, String) {
    let system = TestSystem::start(&[]).await;
    let env = system.env(system.database.url());
    let env = [
        &env.each()[..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)],
    ]
    .concat();
    let mut worker = Tarsy::spawn("w1", &["worker", "--name", "w1"], &env);
    let metrics = worker.ready().await;
    let session = system.publish().await;
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    assert!(
        (metric(&metrics, "tarsy_trace_spans_total", "outcome=\"exported\"").await).abs()
            < f64::EPSILON
    );
    let asked = Instant::now();
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
    (asked.elapsed(), worker.log())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_gone_or_hangs_delays_neither_a_session_nor_a_drain() {
    // Connections are accepted by the system and never answered.
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let [absent, hangs] = [free_address(), hanging.local_addr().unwrap().to_string()]
        .map(|at| format!("http://{at}"));
    let ((took, log), hung) = tokio::join!(drain_with(&absent), drain_with(&hangs));
    println!("collector absent: drained in {took:?}");
    assert!(
        took < MAX_DRAIN && log.contains("spans not exported"),
        "{took:?}: {log}"
    );

    let (took, log) = hung;
    println!("collector hangs: drained in {took:?}");
    assert!(
        took < MAX_DRAIN && log.contains("last spans not exported"),
        "{took:?}: {log}"
    );
}

#[tokio::test]
async fn a_setting_of_the_export_that_cannot_be_used_is_bad_configuration() {
    for (variable, value, message) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/protobuf",
            "accepted: grpc",
        ),
        (
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "/no/such/file",
            "/no/such/file",
        ),
        ("OTEL_TRACES_SAMPLER", "sometimes", "accepted: always_on"),
    ] {
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1"),
            (variable, value),
        ];
        let mut worker = Tarsy::spawn("worker", &["worker"], &env);
        let (code, _) = worker.finished().await;
        assert_eq!(code, 78, "{}", worker.log());
        assert!(
            worker.log().contains(variable) && worker.log().contains(message),
            "{}",
            worker.log()
        );
    }
}
