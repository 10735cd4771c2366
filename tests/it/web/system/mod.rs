//! The system page: what real workers report of themselves, without secrets.

use std::time::Duration;

use serde_json::{Value, json};
use tarsy_core::ids::WorkerId;
use tarsy_engine::ports::{Presence as _, WorkerStatus};
use uuid::Uuid;

use super::Web;
use super::described::assert_fits;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const TOKEN: &str = "s3cret-of-the-web";
const BEARER: (&str, &str) = ("authorization", "Bearer s3cret-of-the-web");
/// A server that does not answer, with a secret in each place that may have one.
const SERVERS: &str = "  remote:
    url: http://127.0.0.1:9/mcp
    headers: {Authorization: 'Bearer canary-1', X-Team: canary-2}
    proxy: http://ada:canary-3@127.0.0.1:9
  local:
    command: /nonexistent
    args: ['--token', canary-4]
    env: {API_KEY: canary-5, PLAIN: canary-6, FROM: '${CANARY:-}'}
";
const SECTIONS: &str = "web: {allow: {system: ['*']}}
agents:
  hostile: {instructions: \"<script>alert(1)</script> \\u202e <img src=x>\"}
";

pub(super) async fn system_of(web: &Web) -> Value {
    let answer = web.ask("GET", "/api/v1/system", &[BEARER]).await;
    // Until the web server is connected to the broker, it has no answer.
    assert!([200, 503].contains(&answer.status), "{answer:?}");
    answer.json()
}

/// The server with this name in the report of the only worker.
fn server<'a>(system: &'a Value, name: &str) -> &'a Value {
    let servers = system["workers"][0]["system"]["servers"].as_array();
    servers
        .and_then(|servers| servers.iter().find(|server| server["name"] == name))
        .unwrap_or(&Value::Null)
}

/// The names of the workers with the states of their reports.
fn states(system: &Value) -> Vec<(String, String)> {
    let workers = system["workers"].as_array().into_iter().flatten();
    workers
        .map(|worker| {
            let of = |key: &str| worker[key].as_str().unwrap_or_default().to_owned();
            (of("name"), of("state"))
        })
        .collect()
}

pub(super) async fn started() -> (TestSystem, Tarsy, Web) {
    let system = TestSystem::start_with(Setup {
        servers: SERVERS,
        sections: SECTIONS,
        tool_wait: Duration::from_secs(1),
        ..Setup::default()
    })
    .await;
    let own = system.env(system.database.url());
    let env = [&own.each()[..], &[("CANARY", "canary-7")]].concat();
    let mut worker = Tarsy::spawn("w1", &["worker", "--name", "w1"], &env);
    worker.ready().await;
    let web = Web::start(&system, &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    (system, worker, web)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_reports_its_configuration_without_secrets_and_the_state_of_its_servers() {
    let (system, _worker, web) = started().await;
    eventually("the worker has reported", async || {
        system_of(&web).await["workers"][0]["state"] == "current"
    })
    .await;
    let first = system_of(&web).await;
    let document = web
        .ask("GET", "/api/v1/openapi.json", &[BEARER])
        .await
        .json();
    assert_fits(&document, "GET /system", 200, &first);
    assert_eq!(first["warnings"], json!([]));
    assert_eq!(server(&first, "drill")["state"], "not_asked");
    assert_eq!(server(&first, "drill")["tools"], Value::Null);
    let config = first["workers"][0]["system"]["config"]["text"]
        .as_str()
        .unwrap();
    assert!(
        config.contains("X-Team")
            && config.contains("<script>")
            && config.contains("***@127.0.0.1:9"),
        "{config}"
    );

    // An investigation needs the servers, and the report says how that went.
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    eventually("the servers were asked", async || {
        let system = system_of(&web).await;
        server(&system, "drill")["state"] == "reachable"
            && server(&system, "local")["state"] == "unreachable"
            && server(&system, "remote")["state"] == "unreachable"
    })
    .await;
    let asked = system_of(&web).await;
    assert_fits(&document, "GET /system", 200, &asked);
    assert!(
        server(&asked, "drill")["tools"]["read_only"].as_u64() > Some(0),
        "{asked}"
    );
    assert!(server(&asked, "local")["error"].is_string(), "{asked}");

    let page = web.ask("GET", "/system", &[BEARER]).await;
    assert_eq!(page.status, 200);
    for text in [first.to_string(), asked.to_string(), page.body.clone()] {
        assert!(!text.contains("canary"), "{text}");
    }
    assert!(
        !page.body.contains("<script>alert") && !page.body.contains("<img"),
        "{}",
        page.body
    );
    assert!(page.body.contains("&lt;script&gt;alert"), "{}", page.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_differ_or_do_not_report_are_named() {
    let (system, _worker, web) = started().await;
    // A worker of an earlier version: it sends a status and no report.
    let nats = system.connect().await;
    let silent = WorkerStatus {
        worker_id: WorkerId(Uuid::from_u128(7)),
        name: "a-silent".to_owned(),
        version: "0.0.9".to_owned(),
        slots: 1,
        sessions: Vec::new(),
        busy: 0,
        state: "claiming".to_owned(),
        unavailable: Vec::new(),
        state_ms: 1,
    };
    let own = system.env(system.database.url());
    let mut other = Tarsy::spawn(
        "w2",
        &["worker", "--name", "w2", "--slots", "3"],
        &own.each(),
    );
    other.ready().await;
    let expected = [
        ("a-silent", "missing"),
        ("w1", "current"),
        ("w2", "current"),
    ];
    let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
    eventually("all workers are known", async || {
        nats.announce(&silent);
        states(&system_of(&web).await) == expected
    })
    .await;
    nats.announce(&silent);
    let system = system_of(&web).await;
    let warnings = system["warnings"].to_string();
    assert!(
        warnings.contains("2 different configurations")
            && warnings.contains("different versions: 0.0.9"),
        "{warnings}"
    );
    let page = web.ask("GET", "/system", &[BEARER]).await.body;
    assert!(
        page.contains("has sent no report") && page.contains("2 different configurations"),
        "{page}"
    );
}
