//! Servers with one connection for each session (`scope: session`), and children that crash or stop reading.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Pid;
use tarsy_config::{SESSION_IN_HEADERS, ServerScope};
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Lease, SessionAfterRun, ToolReply, ToolRequest, Tools as _};
use tarsy_mask::Mask;
use tarsy_mcp::{HttpConfig, ServerConfig, Servers, StdioConfig, Transport};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{TEST_TIMEOUT, call, within};
use crate::support::process::is_running;
use crate::support::tool_server::{Form, ToolServer};
use crate::support::wait::eventually;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mcp/pid.sh");
const SHORT: Duration = Duration::from_millis(300);
/// The time limit for the calls of a child that reads nothing: long enough for all of them to begin.
const DEAF_TIMEOUT: Duration = Duration::from_secs(4);

/// A server whose tool `pid` answers with the number of its process.
fn pid_server(name: &str, folder: &Path) -> ServerConfig {
    let args = vec![SCRIPT.to_owned(), folder.to_str().unwrap().to_owned()];
    let program = StdioConfig {
        command: "sh".to_owned(),
        args,
        ..StdioConfig::default()
    };
    ServerConfig::new(name, Transport::Stdio(program))
}

fn start(configs: Vec<ServerConfig>) -> Servers {
    Servers::start(configs, Mask::default(), &CancellationToken::new()).unwrap()
}

fn lease(session: u128, epoch: u32) -> Lease {
    Lease {
        session_id: SessionId(Uuid::from_u128(session)),
        epoch,
        token: Uuid::nil(),
    }
}

/// A call of a run, or of a person.
async fn ask(servers: &Servers, call: &ToolCall, lease: Option<Lease>) -> ToolReply {
    let request = ToolRequest::new(call, TEST_TIMEOUT);
    within(Box::pin(
        servers.call(lease.map_or(request, |lease| request.under(lease))),
    ))
    .await
}

fn pid_in(reply: &ToolReply) -> Pid {
    let ToolReply::Answered {
        content,
        is_error: false,
    } = reply
    else {
        panic!("{reply:?}")
    };
    Pid::from_raw(content.parse().unwrap()).unwrap()
}

/// The process that answers the calls of a run. On a busy machine it may start more slowly than a call may take.
async fn pid(servers: &Servers, lease: Lease) -> Pid {
    let mut reply = ask(servers, &call("own.pid", "{}"), Some(lease)).await;
    for _ in 0..20 {
        let ToolReply::NotSent { .. } = reply else {
            break;
        };
        reply = ask(servers, &call("own.pid", "{}"), Some(lease)).await;
    }
    pid_in(&reply)
}

#[tokio::test]
async fn each_session_has_a_process_from_its_first_call_to_the_end_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = pid_server("own", folder.path());
    config.settings.scope = ServerScope::Session;
    let servers = start(vec![config]);
    assert_eq!(
        within(servers.list(&["own".to_owned()])).await.unavailable,
        []
    );
    let listing = pid_in(&ask(&servers, &call("own.pid", "{}"), None).await);
    let (one, other) = (
        pid(&servers, lease(1, 1)).await,
        pid(&servers, lease(2, 1)).await,
    );
    assert!(
        one != other && one != listing && other != listing,
        "{one:?} {other:?} {listing:?}"
    );
    assert_eq!(
        pid(&servers, lease(1, 1)).await,
        one,
        "further calls use the same process"
    );

    servers.run_ended(lease(1, 1), SessionAfterRun::Ended);
    eventually("the process of the session has ended", async || {
        !is_running(one)
    })
    .await;
    assert!(is_running(other) && is_running(listing));
    let resumed = pid(&servers, lease(1, 2)).await;
    assert!(
        ![one, other, listing].contains(&resumed),
        "a later run of the session has a new process"
    );
    servers.run_ended(lease(1, 1), SessionAfterRun::Ended);
    assert_eq!(
        pid(&servers, lease(1, 2)).await,
        resumed,
        "the end of the earlier run does not end it"
    );
    within(servers.close()).await;
    assert!(
        [other, listing, resumed]
            .into_iter()
            .all(|pid| !is_running(pid))
    );
}

#[tokio::test]
async fn a_session_waits_while_the_most_sessions_have_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let scope = ServerScope::Session;
    let mut config = pid_server("own", folder.path());
    config.settings.scope = scope;
    config.max_session_connections = 1;
    let servers = start(vec![config]);
    let first = pid(&servers, lease(1, 1)).await;
    let look = call("own.pid", "{}");
    let refused = within(Box::pin(
        servers.call(ToolRequest::new(&look, SHORT).under(lease(2, 1))),
    ))
    .await;
    assert!(matches!(refused, ToolReply::NotSent { .. }), "{refused:?}");
    servers.run_ended(lease(1, 1), SessionAfterRun::Ended);
    let second = pid(&servers, lease(2, 1)).await;
    assert!(
        second != first && !is_running(first),
        "the second process started after the end of the first"
    );
    within(servers.close()).await;
}

#[tokio::test]
async fn over_http_each_session_has_a_session_of_the_server_that_its_end_deletes() {
    let server = ToolServer::start(Form::Json).await;
    let address = HttpConfig {
        url: server.url(),
        ..HttpConfig::default()
    };
    let mut config = ServerConfig::new("web", Transport::Http(address));
    config.settings.scope = ServerScope::Session;
    let servers = start(vec![config]);
    let look = call("web.look", "{}");
    for session in [1, 2, 1] {
        let reply = ask(&servers, &look, Some(lease(session, 1))).await;
        assert_eq!(
            reply,
            ToolReply::Answered {
                content: "done".to_owned(),
                is_error: false
            }
        );
    }
    assert_eq!(server.count("initialize"), 2);
    servers.run_ended(lease(1, 1), SessionAfterRun::Ended);
    let deleted = || {
        server
            .seen()
            .iter()
            .filter(|seen| seen.method == "DELETE")
            .count()
    };
    eventually("the session at the server is deleted", async || {
        deleted() == 1
    })
    .await;
    within(servers.close()).await;
    assert_eq!(deleted(), 2);
}

/// The servers with one over HTTP whose headers name the session.
fn with_named_session(server: &ToolServer) -> Servers {
    let headers = [
        ("x-session-id", SESSION_IN_HEADERS),
        ("x-box", "box-{{session}}/a"),
        ("x-team", "payments"),
    ];
    let address = HttpConfig {
        url: server.url(),
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..HttpConfig::default()
    };
    let mut config = ServerConfig::new("web", Transport::Http(address));
    config.settings.scope = ServerScope::Session;
    start(vec![config])
}

/// The values of the header in requests of this method, in order.
fn sent(server: &ToolServer, method: &str, header: &str) -> Vec<String> {
    let seen = server.seen();
    let of_method = seen.iter().filter(|seen| seen.method == method);
    of_method
        .map(|seen| {
            let value = seen.headers.get(header).unwrap();
            value.to_str().unwrap().to_owned()
        })
        .collect()
}

#[tokio::test]
async fn headers_name_the_session_of_each_request_the_delete_included() {
    let server = ToolServer::start(Form::Json).await;
    let servers = with_named_session(&server);
    let look = call("web.look", "{}");
    ask(&servers, &look, Some(lease(1, 1))).await;
    let id = Uuid::from_u128(1).to_string();
    servers.run_ended(lease(1, 1), SessionAfterRun::Ended);
    eventually("the session at the server is deleted", async || {
        sent(&server, "DELETE", "x-session-id") == [id.clone()]
    })
    .await;
    let requests = sent(&server, "POST", "x-session-id");
    assert!(requests.len() >= 3, "{requests:?}");
    assert!(requests.iter().all(|sent| *sent == id), "{requests:?}");
    assert_eq!(
        sent(&server, "DELETE", "x-box"),
        [format!("box-{id}/a")],
        "the id is a part of a value, too"
    );
    assert_eq!(sent(&server, "DELETE", "x-team"), ["payments"]);
    let at_server = sent(&server, "DELETE", "mcp-session-id");
    assert!(at_server[0].starts_with("session-"), "{at_server:?}");
    within(servers.close()).await;
}

#[tokio::test]
async fn what_a_server_keeps_for_a_named_session_outlives_a_run_that_another_follows() {
    let server = ToolServer::start(Form::Json).await;
    let servers = with_named_session(&server);
    let look = call("web.look", "{}");
    ask(&servers, &look, Some(lease(1, 1))).await;
    servers.run_ended(lease(1, 1), SessionAfterRun::Continues);
    within(servers.close()).await;
    assert_eq!(
        sent(&server, "DELETE", "x-session-id"),
        Vec::<String>::new(),
        "a release deletes nothing"
    );

    let next = with_named_session(&server);
    ask(&next, &look, Some(lease(1, 2))).await;
    next.run_ended(lease(1, 2), SessionAfterRun::Ended);
    within(next.close()).await;
    let id = Uuid::from_u128(1).to_string();
    assert_eq!(
        sent(&server, "DELETE", "x-session-id"),
        std::slice::from_ref(&id)
    );
    assert!(
        sent(&server, "POST", "x-session-id")
            .iter()
            .all(|sent| *sent == id),
        "both workers have sent the same id"
    );
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test]
async fn a_connection_that_no_session_uses_has_an_id_of_its_own_that_is_deleted() {
    let server = ToolServer::start(Form::Json).await;
    let mut ids = Vec::new();
    for deleted in 1..=2 {
        let servers = with_named_session(&server);
        assert_eq!(
            within(servers.list(&["web".to_owned()])).await.unavailable,
            []
        );
        ask(&servers, &call("web.look", "{}"), None).await;
        within(servers.close()).await;
        ids = sent(&server, "DELETE", "x-session-id");
        assert_eq!(ids.len(), deleted);
    }
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| Uuid::parse_str(id).is_ok()), "{ids:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_delete_delays_no_end_for_long() {
    let server = ToolServer::start(Form::Json).await;
    let servers = with_named_session(&server);
    ask(&servers, &call("web.look", "{}"), Some(lease(1, 1))).await;
    server.hold_deletes();
    servers.run_ended(lease(1, 1), SessionAfterRun::Ended);
    within(servers.close()).await;
    assert_eq!(sent(&server, "DELETE", "x-session-id").len(), 1);
}

#[tokio::test]
async fn a_crash_is_noticed_at_once_although_another_process_keeps_the_output_open() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(vec![pid_server("own", folder.path())]);
    let first = pid(&servers, lease(1, 1)).await;
    let began = Instant::now();
    let error = "own.leave: connection lost during the call: Transport closed".to_owned();
    let crashed = ask(&servers, &call("own.leave", "{}"), None).await;
    assert_eq!(
        crashed,
        ToolReply::NoAnswer {
            error,
            timeout: false
        }
    );
    assert!(
        began.elapsed() < TEST_TIMEOUT / 2,
        "the call ended at its time-out: {:?}",
        began.elapsed()
    );
    let second = pid(&servers, lease(1, 1)).await;
    assert_ne!(second, first);
    let left = std::fs::read_to_string(folder.path().join("left"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let left = Pid::from_raw(left).unwrap();
    eventually("the process that was left behind has ended", async || {
        !is_running(left)
    })
    .await;
    within(servers.close()).await;
}

#[tokio::test]
async fn a_child_that_stops_reading_costs_its_calls_their_time_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut limited = pid_server("own", folder.path());
    limited.settings.tool_timeout = DEAF_TIMEOUT;
    let servers = start(vec![limited, pid_server("other", folder.path())]);
    let first = pid(&servers, lease(1, 1)).await;
    let (stop, small, other) = (
        call("own.deaf", "{}"),
        call("own.pid", "{}"),
        call("other.pid", "{}"),
    );
    // More than a pipe holds, so that the message cannot be written, and no message after it.
    let large = call(
        "own.pid",
        &format!(r#"{{"text": "{}"}}"#, "x".repeat(400_000)),
    );
    pid_in(&ask(&servers, &other, None).await);
    let ended = AtomicUsize::new(0);
    let expires = async |call: &ToolCall| {
        let reply = ask(&servers, call, None).await;
        let error = format!(
            "{}: no answer within {} ms",
            call.tool,
            DEAF_TIMEOUT.as_millis()
        );
        assert_eq!(
            reply,
            ToolReply::NoAnswer {
                error,
                timeout: true
            }
        );
        ended.fetch_add(1, Ordering::Relaxed);
    };
    let deaf = async || {
        let line = format!("/proc/{}/cmdline", first.as_raw_nonzero());
        eventually("the child reads no more", async || {
            std::fs::read_to_string(&line).unwrap().contains("sleep")
        })
        .await;
    };
    let beside = async {
        deaf().await;
        pid_in(&ask(&servers, &other, None).await);
        assert_eq!(
            ended.load(Ordering::Relaxed),
            0,
            "another server answers meanwhile"
        );
    };
    let blocked = async |call| {
        deaf().await;
        expires(call).await;
    };
    tokio::join!(
        expires(&stop),
        blocked(&large),
        blocked(&large),
        blocked(&small),
        beside
    );
    assert_ne!(
        pid(&servers, lease(1, 1)).await,
        first,
        "a new process answers"
    );
    eventually(
        "the child has ended although its input could not be closed",
        async || !is_running(first),
    )
    .await;
    within(servers.close()).await;
}
