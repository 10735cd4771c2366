//! Tool servers: a child process that is killed, and a server over HTTP that is gone.

use std::time::Duration;

use chrono::Utc;
use rustix::process::{Pid, Signal, kill_process};

use super::bed::{Bed, SESSIONS};
use super::{Measured, Pace};
use crate::proofs::load::MARK;
use crate::support::process::children_of;
use crate::support::system::Setup;
use crate::support::tool_server::{Form, ToolServer};

/// An alert that waits is looked at every five seconds.
const MARGIN: Duration = Duration::from_secs(15);

pub(super) async fn stdio_killed(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace.patient(), Setup::default()).await;
    bed.system.gates.watch("tool-describe_pod-start");
    let held = bed.system.gates.next().await;
    let at = Utc::now();
    let servers: Vec<Pid> = bed
        .workers
        .iter()
        .flat_map(|worker| children_of(worker.pid(), "evidence-server"))
        .collect();
    assert!(
        !servers.is_empty(),
        "a worker with a call has a tool server"
    );
    for server in servers {
        kill_process(server, Signal::KILL).unwrap();
    }
    bed.system.gates.open_all();
    drop(held);
    bed.end(1).await;
    vec![Measured::new(
        "a running session takes its next step",
        bed.steps_after(at),
    )]
}

/// The tool server does not return. The sessions that use it continue without it.
pub(super) async fn http_gone(pace: Pace) -> Vec<Measured> {
    let mut server = ToolServer::start(Form::Json).await;
    let line = format!("  web: {{url: '{}'}}\n", server.url());
    let mut text = format!("name: web\nmatch: {MARK}\nprovider_state: true\nanswers:\n");
    let wait = pace.call.as_millis();
    for step in 1..pace.answers {
        text.push_str(&format!(
            "  - chunks: [{{wait: {wait}ms}}, {{call: {{tool: web.look, arguments: {{step: {step}}}}}}}]\n"
        ));
    }
    text.push_str("  - chunks: [{text: \"Cause: a drill [[*]]. The end.\"}]\n");
    let bed = Bed::start(
        pace.patient(),
        Setup {
            servers: &line,
            transcript: Some(text),
            ..Setup::default()
        },
    )
    .await;
    let at = Utc::now();
    server.stop().await;
    let new = bed.publish(1).await;
    bed.end(1).await;
    let failed = bed
        .system
        .database
        .number("SELECT count(*) FROM tool_interactions WHERE state <> 'done'");
    assert!(
        failed >= i64::try_from(SESSIONS).unwrap(),
        "only {failed} calls failed"
    );
    // A worker that has not noticed yet knows the tools, and begins at once; another one waits for the server.
    let opened = bed.opened_after(at, &new);
    assert!(
        opened.iter().all(|time| *time < pace.tool_wait + MARGIN),
        "the wait has an end: {opened:?}"
    );
    vec![
        Measured::new("a running session takes its next step", bed.steps_after(at)),
        Measured::new("a new alert is opened", opened),
    ]
}
