//! The connection to the collector: TLS with an authority in a file, and headers from a file that changes.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::collector::Collector;
use crate::support::certificates::localhost_tls;
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;

/// Accepts TLS in front of the collector; returns the port.
async fn tls_in_front_of(collector: &Collector, acceptor: tokio_rustls::TlsAcceptor) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, inner) = (
        listener.local_addr().unwrap().port(),
        collector.address.replace("http://", ""),
    );
    tokio::spawn(async move {
        while let Ok((outer, _)) = listener.accept().await {
            let (acceptor, inner) = (acceptor.clone(), inner.clone());
            tokio::spawn(async move {
                let Ok(mut outer) = acceptor.accept(outer).await else {
                    return;
                };
                let mut inner = TcpStream::connect(inner).await.unwrap();
                copy_bidirectional(&mut outer, &mut inner).await.ok();
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_go_over_tls_with_the_headers_that_a_file_has_at_the_moment() {
    let (system, collector) = (TestSystem::start(&[]).await, Collector::start().await);
    let folder = tempfile::tempdir().unwrap();
    let (acceptor, authority) = localhost_tls(folder.path());
    let port = tls_in_front_of(&collector, acceptor).await;
    let (endpoint, headers) = (
        format!("https://localhost:{port}"),
        folder.path().join("headers"),
    );
    std::fs::write(&headers, "x-scope=first-scope\n").unwrap();
    let env = system.env(system.database.url());
    let tracing = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        (
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            authority.to_str().unwrap(),
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS_FILE", headers.to_str().unwrap()),
    ];
    let mut worker = Tarsy::spawn("w1", &["worker"], &[&env.each()[..], &tracing].concat());
    worker.ready().await;
    let first = system.publish().await;
    system.follow(first).await.finish().await;
    let of = |session: &str| {
        let trace = session.replace('-', "");
        move |span: &super::Span| span.name == "run session" && span.trace_id == trace
    };
    collector
        .first("run of the first session", of(&first.to_string()))
        .await;
    std::fs::write(&headers, "x-scope=second-scope\n").unwrap();
    let second = system.publish().await;
    system.follow(second).await.finish().await;
    collector
        .first("run of the second session", of(&second.to_string()))
        .await;
    let mut scopes = collector.scopes();
    scopes.dedup();
    assert_eq!(scopes, ["first-scope", "second-scope"]);
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
}
