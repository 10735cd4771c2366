//! The MCP client with servers over streamable HTTP.

use std::time::Duration;

use tarsy_engine::ports::{ToolReply, ToolRequest, Tools};
use tarsy_http::outgoing::token::TokenSource;
use tarsy_mask::Mask;
use tarsy_mcp::{HttpConfig, ServerConfig, Servers, Transport};
use tokio_util::sync::CancellationToken;

use super::{TEST_TIMEOUT, call, within};
use crate::support::certificates::localhost_tls;
use crate::support::tool_server::{Fault, Form, Oddity, ToolServer};

fn servers(address: HttpConfig) -> Servers {
    let config = ServerConfig::new("web", Transport::Http(address));
    Servers::start(vec![config], Mask::default(), &CancellationToken::new()).unwrap()
}

fn at(server: &ToolServer) -> HttpConfig {
    HttpConfig {
        url: server.url(),
        ..HttpConfig::default()
    }
}

async fn reply(servers: &Servers, tool: &str) -> ToolReply {
    let call = call(&format!("web.{tool}"), "{}");
    within(Box::pin(
        servers.call(ToolRequest::new(&call, TEST_TIMEOUT)),
    ))
    .await
}

/// The text of an answer.
async fn answered(servers: &Servers, tool: &str) -> String {
    match reply(servers, tool).await {
        ToolReply::Answered {
            content,
            is_error: false,
            ..
        } => content,
        other => panic!("{other:?}"),
    }
}

async fn unavailable(servers: &Servers) -> String {
    let listing = within(servers.list(&["web".to_owned()])).await;
    listing
        .unavailable
        .first()
        .expect("the server is unavailable")
        .why
        .clone()
}

async fn offered(servers: &Servers) -> Vec<String> {
    let listing = within(servers.list(&["web".to_owned()])).await;
    assert_eq!(listing.unavailable, []);
    listing.tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn a_server_answers_as_json_or_as_events_with_a_session_or_without() {
    for form in [Form::Json, Form::Events] {
        let server = ToolServer::start(form).await;
        for sessions in [true, false] {
            if !sessions {
                server.without_sessions();
            }
            let servers = servers(at(&server));
            assert_eq!(
                offered(&servers).await,
                [
                    "web.hold_look",
                    "web.large",
                    "web.log",
                    "web.look",
                    "web.tokens"
                ]
            );
            assert_eq!(answered(&servers, "look").await, "done");
            servers.close().await;
            let deleted = server
                .seen()
                .iter()
                .filter(|seen| seen.method == "DELETE")
                .count();
            assert_eq!(deleted, 1, "only the first client had a session to delete");
        }
    }
}

#[tokio::test]
async fn headers_and_token_are_sent_and_the_token_is_read_again_after_a_401() {
    let server = ToolServer::start(Form::Json).await;
    server.accept_token("first-t0ken");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first-t0ken\n").unwrap();
    let headers = [("X-Team".to_owned(), "sre".to_owned())].into();
    let servers = servers(HttpConfig {
        headers,
        token: Some(TokenSource::File(file.clone())),
        ..at(&server)
    });
    assert_eq!(answered(&servers, "look").await, "done");
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.headers["x-team"] == "sre")
    );

    server.accept_token("second-t0ken");
    std::fs::write(&file, "second-t0ken\n").unwrap();
    assert_eq!(answered(&servers, "restart").await, "done");
    assert_eq!(
        server.performed(),
        ["look", "restart"],
        "the refused request ran no tool"
    );
    assert_eq!(
        server.count("initialize"),
        1,
        "the session goes on with the new token"
    );

    server.accept_token("third-t0ken");
    let refused = reply(&servers, "restart").await;
    let error = "web.restart: HTTP 401 Unauthorized".to_owned();
    assert_eq!(
        refused,
        ToolReply::NoAnswer {
            error,
            timeout: false
        }
    );
    let calls = server.count("tools/call");
    assert_eq!(
        calls, 4,
        "one call was sent again with another token, and none with the refused one"
    );
    servers.close().await;
}

#[tokio::test]
async fn without_a_valid_token_a_server_is_unavailable_and_no_message_shows_the_token() {
    let server = ToolServer::start(Form::Json).await;
    server.accept_token("other-t0ken");
    let wrong = servers(HttpConfig {
        token: Some(TokenSource::Value("wrong-t0ken".to_owned())),
        ..at(&server)
    });
    assert_eq!(
        unavailable(&wrong).await,
        "mcp server \"web\": protocol error: HTTP 401 Unauthorized"
    );
    let missing = servers(HttpConfig {
        token: Some(TokenSource::File("/no/such/file".into())),
        ..at(&server)
    });
    let why = unavailable(&missing).await;
    assert!(
        why.contains("the file of the bearer token cannot be read (/no/such/file)"),
        "{why}"
    );
}

#[tokio::test]
async fn calls_of_an_expired_session_share_one_new_connection() {
    let server = ToolServer::start(Form::Json).await;
    let servers = servers(HttpConfig {
        not_run_on: vec![404],
        ..at(&server)
    });
    offered(&servers).await;
    server.forget_sessions();
    // As the engine does: a call that did not run is sent a second time.
    let call = async || {
        let first = reply(&servers, "restart").await;
        match first {
            ToolReply::NotSent { error } => {
                assert!(
                    error.ends_with("the server did not take the call: HTTP 404 Not Found"),
                    "{error}"
                );
                answered(&servers, "restart").await
            }
            ToolReply::Answered { content, .. } => content,
            other => panic!("{other:?}"),
        }
    };
    let answers = futures_util::future::join_all((0..8).map(|_| call())).await;
    assert_eq!(answers, ["done"; 8]);
    assert_eq!(server.performed().len(), 8, "no call ran twice");
    assert_eq!(
        server.count("initialize"),
        2,
        "one new connection serves all calls"
    );
    let seen = server.seen();
    let again = seen
        .iter()
        .rposition(|seen| seen.message == "initialize")
        .unwrap();
    let delay = seen[again].at
        - seen[..again]
            .iter()
            .find(|seen| seen.message == "tools/call")
            .unwrap()
            .at;
    assert!(delay >= Duration::from_millis(200), "{delay:?}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_was_restarted_is_reached_again_and_lists_its_tools_again() {
    let mut server = ToolServer::start(Form::Json).await;
    let servers = servers(at(&server));
    assert_eq!(answered(&servers, "look").await, "done");
    server.stop().await;
    let ToolReply::NotSent { error } = reply(&servers, "restart").await else {
        panic!("no server listens")
    };
    assert!(
        error.contains("connection failed: ") && !error.contains("127.0.0.1"),
        "{error}"
    );
    let why = unavailable(&servers).await;
    assert!(why.contains("connection failed: "), "{why}");
    server.restart().await;
    assert_eq!(answered(&servers, "restart").await, "done");
    assert_eq!(server.performed(), ["look", "restart"]);
    servers.close().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_call_at_once_and_no_other() {
    for form in [Form::Json, Form::Events] {
        let server = ToolServer::start(form).await;
        let servers = servers(at(&server));
        for _ in 0..2 {
            let ToolReply::Answered {
                content,
                is_error: true,
                ..
            } = reply(&servers, "large").await
            else {
                panic!("the answer is no error")
            };
            assert_eq!(
                content,
                "the answer is too large: at most 16777216 bytes are read. Ask for less."
            );
        }
        assert_eq!(answered(&servers, "look").await, "done");
        assert_eq!(server.count("initialize"), 1);
        servers.close().await;
    }
}

#[tokio::test]
async fn a_fault_tells_whether_the_tool_may_have_run() {
    let server = ToolServer::start(Form::Json).await;
    let servers = servers(HttpConfig {
        not_run_on: vec![425, 529],
        ..at(&server)
    });
    for (fault, may_have_run, text) in [
        (Fault::Status(400), true, "HTTP 400 Bad Request"),
        (Fault::Status(404), true, "Session expired (HTTP 404)"),
        (Fault::Status(425), false, "HTTP 425 Too Early"),
        (Fault::Status(429), true, "HTTP 429 Too Many Requests"),
        (Fault::Status(503), true, "HTTP 503 Service Unavailable"),
        (Fault::Status(529), false, "HTTP 529"),
        (Fault::Garbage, true, "the answer is no JSON-RPC"),
        (Fault::Close, true, "connection lost: "),
    ] {
        server.fail_next(&[fault]);
        match reply(&servers, "restart").await {
            ToolReply::NotSent { error } => {
                assert!(!may_have_run && error.contains(text), "{fault:?}: {error}")
            }
            ToolReply::NoAnswer {
                error,
                timeout: false,
            } => {
                assert!(may_have_run && error.contains(text), "{fault:?}: {error}");
            }
            other => panic!("{fault:?}: {other:?}"),
        }
        assert_eq!(answered(&servers, "look").await, "done", "after {fault:?}");
    }
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_is_a_little_off_is_understood() {
    let pings = "event: ping\ndata: 2026-11-27 03:00:00\n\nevent: endpoint\ndata: /messages?session=1\n\ndata: ok\n\n";
    let no_fields = "keep-alive\nproxy: p1\nid: 1\nid: 2\nretry: soon\n\n";
    for (form, oddity) in [
        (Form::Json, Oddity::Type("text/plain")),
        (Form::Json, Oddity::Type("application/octet-stream")),
        (Form::Json, Oddity::Type("application/vnd.mcp+json; v=1")),
        (Form::Json, Oddity::Type("")),
        (Form::Json, Oddity::ByteOrderMark),
        (Form::Json, Oddity::Notification(400)),
        (Form::Events, Oddity::Notification(500)),
        (Form::Events, Oddity::Notification(404)),
        (Form::Events, Oddity::Events(pings)),
        (Form::Events, Oddity::Events(no_fields)),
    ] {
        let server = ToolServer::start(form).await;
        server.be_odd(oddity);
        let servers = servers(at(&server));
        assert_eq!(offered(&servers).await.len(), 5, "{oddity:?}");
        assert_eq!(answered(&servers, "restart").await, "done", "{oddity:?}");
        assert_eq!(
            (server.performed(), server.count("initialize")),
            (vec!["restart".to_owned()], 1),
            "{oddity:?}"
        );
        servers.close().await;
    }
}

#[tokio::test]
async fn the_reason_in_the_body_of_a_refusal_is_shown() {
    let server = ToolServer::start(Form::Json).await;
    let servers = servers(at(&server));
    for (status, body, text) in [
        (
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no namespace prodd"}}"#,
            "no namespace prodd",
        ),
        (
            422,
            r#"{"detail":[{"loc":["a"],"msg":"missing"}]}"#,
            "missing",
        ),
        (503, "upstream connect error", "upstream connect error"),
    ] {
        server.fail_next(&[Fault::Refusal(status, body)]);
        let ToolReply::NoAnswer {
            error,
            timeout: false,
        } = reply(&servers, "look").await
        else {
            panic!("{body}")
        };
        assert!(
            error.contains(&format!("HTTP {status}")) && error.contains(text),
            "{error}"
        );
    }
    servers.close().await;
}

#[tokio::test]
async fn a_redirect_is_followed_on_the_same_origin_only() {
    let (server, elsewhere) = (
        ToolServer::start(Form::Json).await,
        ToolServer::start(Form::Json).await,
    );
    let to = |url: String| HttpConfig {
        url,
        token: Some(TokenSource::Value("t0ken-x".to_owned())),
        ..at(&server)
    };
    let same = servers(to(server.redirect("/mcp")));
    assert_eq!(answered(&same, "look").await, "done");
    let other = servers(to(server.redirect(&elsewhere.url())));
    assert!(
        unavailable(&other)
            .await
            .ends_with("HTTP 307 Temporary Redirect")
    );
    assert_eq!(
        elsewhere.seen().len(),
        0,
        "neither the request nor its token leaves the origin"
    );
    same.close().await;
}

#[tokio::test]
async fn an_authority_of_a_file_is_trusted_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (acceptor, authority) = localhost_tls(folder.path());
    let server = ToolServer::with_tls(acceptor).await;
    let trusting = servers(HttpConfig {
        ca_file: Some(authority),
        ..at(&server)
    });
    assert_eq!(answered(&trusting, "look").await, "done");
    trusting.close().await;
    let why = unavailable(&servers(at(&server))).await;
    assert!(
        why.contains("connection failed: ") && why.contains("certificate"),
        "{why}"
    );
    let missing = servers(HttpConfig {
        ca_file: Some("/no/such/file".into()),
        ..at(&server)
    });
    assert!(
        unavailable(&missing)
            .await
            .contains("ca_file: /no/such/file: ")
    );
}

#[tokio::test]
async fn a_configured_proxy_gets_every_request() {
    let (server, proxy) = (
        ToolServer::start(Form::Json).await,
        ToolServer::start(Form::Json).await,
    );
    let proxied = servers(HttpConfig {
        proxy: Some(proxy.url().replace("/mcp", "")),
        ..at(&server)
    });
    assert_eq!(answered(&proxied, "look").await, "done");
    assert_eq!(
        (server.seen().len(), proxy.performed()),
        (0, vec!["look".to_owned()])
    );
    proxied.close().await;
}
