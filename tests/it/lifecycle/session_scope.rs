//! Investigations whose server has `scope: session`: a child process for each of them.

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use crate::safety::hostile_servers::server::HostileServer;
use crate::support::process::{children_of, metric_is};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// Selects the recording that calls the tool `wait`.
const MARK: &str = "OwnServer";
const RECORDING: &str = "name: own\nmatch: OwnServer\nprovider_state: true\nanswers:\n  \
    - chunks: [{call: {tool: own.wait, arguments: {}}}]\n  - chunks: [{text: \"Cause: a test [[*]].\"}]\n";
const CONNECTIONS: &str = "tarsy_mcp_session_connections";

async fn start(server: &HostileServer) -> TestSystem {
    let servers = server.config_line("own", "scope: session");
    let transcript = Some(RECORDING.to_owned());
    TestSystem::start_with(Setup {
        servers: &servers,
        transcript,
        ..Setup::default()
    })
    .await
}

/// Publishes an alert that joins no other session.
async fn publish(system: &TestSystem) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers =
        json!({SESSION_ID: session.to_string(), "Tarsy-Fingerprint": session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_have_two_children_that_end_with_them() {
    let server = HostileServer::start(&["wait"]).await;
    let system = start(&server).await;
    let (worker, address) = system.worker("w1").await;
    let sessions = [publish(&system).await, publish(&system).await];
    server.called("wait", 2).await;
    let children = || children_of(worker.pid(), "bridge.sh");
    assert_eq!(
        (children().len(), server.connections()),
        (3, 3),
        "one of each session, and one that lists the tools"
    );
    metric_is(&address, CONNECTIONS, "", 2.0).await;
    server.go();
    for session in sessions {
        assert_eq!(
            system.follow(session).await.finish().await.event_type,
            EventType::SessionCompleted
        );
    }
    eventually("the children of the sessions have ended", async || {
        children().len() == 1 && server.open() == 1
    })
    .await;
    metric_is(&address, CONNECTIONS, "", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_session_has_a_new_child_and_the_old_one_ends_with_its_worker() {
    let server = HostileServer::start(&["wait"]).await;
    let system = start(&server).await;
    let (mut worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    server.called("wait", 1).await;
    assert_eq!(server.open(), 2);
    worker.kill().await;
    eventually("the children end with the killed worker", async || {
        server.open() == 0
    })
    .await;
    let (mut next, address) = system.worker("w2").await;
    server.called("wait", 2).await;
    metric_is(&address, CONNECTIONS, "", 1.0).await;
    server.go();
    let mut timeline = system.follow(session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    metric_is(&address, CONNECTIONS, "", 0.0).await;
    next.terminate();
    assert!(next.ended().await.success());
    eventually("no child is left", async || server.open() == 0).await;
}
