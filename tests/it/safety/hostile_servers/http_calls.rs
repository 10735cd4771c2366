//! Single calls of the MCP client to a hostile server over HTTP.

use std::time::Duration;

use futures_util::future::join_all;
use tarsy_core::execution::entry::ToolCall;
use tarsy_engine::ports::{ToolReply, ToolRequest, Tools};
use tarsy_mask::Mask;
use tarsy_mcp::{ServerConfig, Servers};
use tokio_util::sync::CancellationToken;

use super::http_server::{HostileHttp, TOKEN};
use crate::support::wait::eventually;

/// Far longer than any step here takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(500);
const GROUPS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// An answer with this text.
    Answer(&'static str),
    /// An error that is an answer.
    Error(&'static str),
    /// The tool may have run.
    Broken(&'static str),
    /// No answer in time.
    Expired(&'static str),
}

use Expected::{Answer, Broken, Error, Expired};

/// At a server that answers nothing in time (`s`), or with the usual time-outs (`p`).
const CALLS: [(&str, Expected); 26] = [
    ("s.hang", Expired("no answer within 500 ms")),
    ("s.endless_events", Expired("no answer within 500 ms")),
    (
        "s.endless_progress",
        Expired("progress, but no answer within 1000 ms"),
    ),
    ("s.endless_continue", Expired("no answer within 500 ms")),
    ("s.slow_bytes", Expired("no answer within 500 ms")),
    ("s.other_id", Expired("no answer within 500 ms")),
    (
        "p.endless_event",
        Error("the answer is too large: at most 16777216 bytes"),
    ),
    (
        "p.endless_body",
        Error("the answer is too large: at most 16777216 bytes"),
    ),
    ("p.endless_head", Broken("connection lost")),
    (
        "p.huge_body",
        Error("the answer is too large: at most 16777216 bytes"),
    ),
    (
        "p.huge_claim",
        Error("the answer is too large: at most 16777216 bytes"),
    ),
    ("p.huge_head", Broken("connection lost")),
    ("p.many_heads", Broken("connection lost")),
    (
        "p.wrong_type",
        Broken("the answer is neither JSON nor a stream of events"),
    ),
    ("p.deep_json", Broken("the answer is no JSON-RPC")),
    ("p.events_end", Broken("")),
    ("p.garbage_chunks", Broken("connection lost")),
    ("p.garbage_head", Broken("connection lost")),
    ("p.two_lengths", Broken("connection lost")),
    ("p.cut_off", Broken("connection lost")),
    ("p.redirect", Broken("HTTP 307")),
    ("p.redirect_loop", Broken("HTTP 308")),
    ("p.redirect_get", Broken("HTTP 303")),
    ("p.unauthorized", Broken("HTTP 401")),
    ("p.expired", Broken("Session expired")),
    ("p.fake", Answer("owned")),
];

fn start(configs: Vec<ServerConfig>) -> Servers {
    Servers::start(configs, Mask::default(), &CancellationToken::new()).unwrap()
}

async fn ask(servers: &Servers, tool: &str) -> ToolReply {
    let call = ToolCall {
        id: "1".to_owned(),
        tool: tool.to_owned(),
        arguments: "{}".to_owned(),
        read_only: true,
    };
    let asked = Box::pin(servers.call(ToolRequest::new(&call, LONG)));
    tokio::time::timeout(LONG, asked)
        .await
        .unwrap_or_else(|_| panic!("{tool} outlives its time-out"))
}

fn fits(reply: &ToolReply, expected: Expected) -> bool {
    match (reply, expected) {
        (
            ToolReply::Answered {
                content,
                is_error: false,
            },
            Answer(text),
        )
        | (
            ToolReply::Answered {
                content,
                is_error: true,
            },
            Error(text),
        ) => content.contains(text),
        (
            ToolReply::NoAnswer {
                error,
                timeout: false,
            },
            Broken(text),
        )
        | (
            ToolReply::NoAnswer {
                error,
                timeout: true,
            },
            Expired(text),
        ) => error.contains(text),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_of_http_costs_its_own_call_and_leaves_no_request_open() {
    // Most calls wait, so each group has a server of its own, and they run in parallel.
    join_all(
        CALLS
            .chunks(CALLS.len().div_ceil(GROUPS))
            .map(assert_each_costs_its_own_call),
    )
    .await;
}

async fn assert_each_costs_its_own_call(calls: &[(&str, Expected)]) {
    let elsewhere = HostileHttp::start(&["ok"], "").await;
    let server = HostileHttp::start(&["ok"], &elsewhere.url()).await;
    let mut short = server.config("s");
    short.settings.tool_timeout = SHORT;
    short.settings.max_tool_timeout = SHORT * 2;
    let servers = start(vec![short, server.config("p")]);
    // A busy machine may need longer than the short time-out, also for the handshake of the first call.
    let is_ok = async |name: &str| {
        fits(
            &ask(&servers, &format!("{name}.ok")).await,
            Answer("answer of ok"),
        )
    };
    eventually("the server is connected", async || is_ok("s").await).await;
    for (tool, expected) in calls.iter().copied() {
        let mut reply = ask(&servers, tool).await;
        for _ in 0..20 {
            // On a busy machine the progress itself may come too late.
            let is_late = matches!(expected, Expired(text) if text.starts_with("progress"))
                && fits(&reply, Expired("no answer within 500 ms"))
                && !fits(&reply, expected);
            if !is_late {
                break;
            }
            reply = ask(&servers, tool).await;
        }
        assert!(
            fits(&reply, expected),
            "{tool}: expected {expected:?}, got {reply:?}"
        );
        let shown = format!("{reply:?}");
        assert!(
            !shown.contains(TOKEN) && !shown.contains("127.0.0.1"),
            "{shown}"
        );
        let (name, _) = tool.split_once('.').unwrap();
        eventually(
            &format!("the next call after {tool} is answered"),
            async || is_ok(name).await,
        )
        .await;
        eventually(&format!("the request of {tool} is closed"), async || {
            server.unanswered() == 0
        })
        .await;
    }
    assert_eq!(
        elsewhere.connections(),
        0,
        "no request and no token went to another host"
    );
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_cannot_make_a_client_open_streams_without_pause() {
    const STREAMS: usize = 8;
    let server = HostileHttp::start(&["ok"], "").await;
    server.be_restless();
    let servers = start(vec![server.config("s")]);
    assert_eq!(servers.list(&["s".to_owned()]).await.unavailable, []);
    eventually("streams are opened again and again", async || {
        server.seen("GET").len() >= STREAMS
    })
    .await;
    let seen = server.seen("GET");
    let took = seen[STREAMS - 1].at - seen[0].at;
    assert!(
        took >= Duration::from_millis(100) * u32::try_from(STREAMS - 1).unwrap(),
        "{STREAMS} streams in {took:?}"
    );
    assert!(matches!(
        ask(&servers, "s.ok").await,
        ToolReply::Answered {
            is_error: false,
            ..
        }
    ));
    servers.close().await;
}
