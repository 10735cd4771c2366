//! The answers of the API: those of the commands, and as `openapi.json` describes them.

use serde_json::{Value, json};

use super::Web;
use super::described::assert_fits;
use crate::interfaces::commands::run_with;
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_the_one_of_the_command_and_fits_its_description() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = Web::start(&system, &[]).await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let env = system.env(system.database.url());
    let document = web.json("/openapi.json").await;

    // The whole session, found by its id or by either end of it.
    let shown = run_with(
        &env.each(),
        &["sessions", "show", "--json", &session.to_string()],
        b"",
    )
    .await
    .exits(0);
    let whole = web.get(&format!("/api/v1/sessions/{session}")).await;
    assert_eq!((whole.status, &whole.body), (200, &shown.out));
    assert_eq!(whole.header("content-type"), Some("application/json"));
    assert_fits(&document, "GET /sessions/{part}", 200, &whole.json());
    for part in [session.short(), session.to_string()[..23].to_owned()] {
        assert_eq!(web.json(&format!("/sessions/{part}")).await, whole.json());
    }

    // Its events: as a page, and as the lines of `watch --json`.
    let events = format!("/api/v1/sessions/{session}/events");
    let watched = run_with(&env.each(), &["watch", "--json", &session.to_string()], b"")
        .await
        .exits(0);
    let lines = web
        .ask("GET", &events, &[("accept", "application/x-ndjson")])
        .await;
    assert_eq!(
        (lines.status, &lines.body),
        (200, &watched.out),
        "byte for byte"
    );
    let page = web.get(&events).await.json();
    assert_fits(&document, "GET /sessions/{part}/events", 200, &page);
    let all: Vec<Value> = watched
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&page["events"], &page["last_seq"], &page["ended"]),
        (&json!(all), &json!(all.len()), &json!(true))
    );
    let part = web
        .json(&format!("/sessions/{session}/events?after=2&limit=3"))
        .await;
    assert_eq!(
        part,
        json!({"events": all[2..5], "last_seq": 5, "ended": false})
    );
    let last = all.len();
    let end = web
        .json(&format!("/sessions/{session}/events?after={}", last - 1))
        .await;
    assert_eq!(
        end,
        json!({"events": all[last - 1..], "last_seq": last, "ended": true})
    );
    let after_it = web
        .json(&format!("/sessions/{session}/events?after={last}"))
        .await;
    assert_eq!(
        after_it,
        json!({"events": [], "last_seq": last, "ended": true}),
        "as a stream, which gets 204"
    );
    let one = web.get(&format!("{events}/4")).await;
    assert_eq!(one.json(), all[3]);
    assert_eq!(
        one.header("cache-control"),
        Some("private, max-age=31536000, immutable")
    );
    assert_fits(
        &document,
        "GET /sessions/{part}/events/{number}",
        200,
        &one.json(),
    );

    // Its model calls, as the command shows them.
    let id = session.to_string();
    let calls = web.json(&format!("/sessions/{session}/calls")).await;
    assert_fits(&document, "GET /sessions/{part}/calls", 200, &calls);
    let listed = run_with(
        &env.each(),
        &["sessions", "show", "--prompts", "--json", &id],
        b"",
    )
    .await
    .exits(0);
    let listed: Vec<Value> = listed
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(calls["calls"], json!(listed));
    for number in ["1", "last"] {
        let shown = run_with(
            &env.each(),
            &["sessions", "show", "--prompt", number, "--json", &id],
            b"",
        )
        .await
        .exits(0);
        let call = web
            .get(&format!("/api/v1/sessions/{session}/calls/{number}"))
            .await;
        assert_eq!((call.status, &call.body), (200, &shown.out));
        assert_fits(
            &document,
            "GET /sessions/{part}/calls/{number}",
            200,
            &call.json(),
        );
        let from = web
            .json(&format!("/sessions/{session}/calls/{number}?from=2"))
            .await;
        let messages = call.json()["request"]["messages"]
            .as_array()
            .unwrap()
            .clone();
        assert_eq!(from["request"]["messages"], json!(messages[1..]));
    }

    let list = web.json("/sessions").await;
    assert_fits(&document, "GET /sessions", 200, &list);
    let entry = &list["sessions"][0];
    assert_eq!(
        (&entry["session_id"], &entry["owners"]),
        (&json!(session), &json!(1))
    );
    assert!(!entry["cause"].as_str().unwrap().is_empty(), "{entry}");
    assert_eq!(
        entry["tool_calls"],
        json!(
            whole.json()["session"]["tool_calls"]
                .as_array()
                .unwrap()
                .len()
        )
    );
    assert_eq!(
        (&list["next"], &list["counts"]["completed"]),
        (&Value::Null, &json!(1))
    );

    eventually("the worker has sent its status", async || {
        web.get("/api/v1/queue").await.body.contains("\"w1\"")
    })
    .await;
    let queue = web.json("/queue").await;
    assert_fits(&document, "GET /queue", 200, &queue);
    let lanes: Vec<&str> = queue["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["priority"].as_str().unwrap())
        .collect();
    assert_eq!(
        (lanes, &queue["live"]),
        (vec!["critical", "high", "normal", "low"], &json!(true))
    );
    let checks = queue["checks"].as_array().unwrap();
    let found = |name: &str| {
        checks
            .iter()
            .find(|check| check["check"] == name)
            .unwrap_or_else(|| panic!("{queue}"))
    };
    for (name, part) in [
        ("nats", "rtt"),
        ("streams", "4 streams"),
        ("postgres", "(current)"),
        ("workers", "worker"),
    ] {
        assert!(
            found(name)["detail"].as_str().unwrap().contains(part),
            "{queue}"
        );
    }
    assert_eq!(found("postgres")["verdict"], "ok");
    assert_fits(
        &document,
        "GET /dead-letters",
        200,
        &web.json("/dead-letters").await,
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_json_and_its_status_is_described() {
    let system = TestSystem::start(&[]).await;
    let web = Web::start(&system, &[]).await;
    let document = web.json("/openapi.json").await;
    let unknown = uuid::Uuid::now_v7();
    for (path, described, status) in [
        ("/sessions?status=lost".to_owned(), "/sessions", 400),
        ("/sessions?limit=0".to_owned(), "/sessions", 400),
        ("/sessions/abc".to_owned(), "/sessions/{part}", 400),
        ("/sessions/abcdef".to_owned(), "/sessions/{part}", 404),
        (format!("/sessions/{unknown}"), "/sessions/{part}", 404),
        (
            format!("/sessions/{unknown}/events"),
            "/sessions/{part}/events",
            404,
        ),
        (
            format!("/sessions/{unknown}/events?limit=5000"),
            "/sessions/{part}/events",
            400,
        ),
        (
            format!("/sessions/{unknown}/events?after=x"),
            "/sessions/{part}/events",
            400,
        ),
        (
            format!("/sessions/{unknown}/events/1"),
            "/sessions/{part}/events/{number}",
            404,
        ),
        (
            format!("/sessions/{unknown}/events/0"),
            "/sessions/{part}/events/{number}",
            400,
        ),
        ("/dead-letters?limit=501".to_owned(), "/dead-letters", 400),
    ] {
        let answer = web.get(&format!("/api/v1{path}")).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_fits(
            &document,
            &format!("GET {described}"),
            status,
            &answer.json(),
        );
    }
    for (method, path, status) in [
        ("GET", "/api/v1/nothing", 404),
        ("DELETE", "/api/v1/sessions", 403),
    ] {
        let answer = web.ask(method, path, &[]).await;
        assert_eq!(
            (answer.status, answer.json()["error"].is_string()),
            (status, true),
            "{path}: {answer:?}"
        );
    }
    let answer = web
        .ask(
            "PUT",
            "/api/v1/sessions",
            &[("sec-fetch-site", "same-origin")],
        )
        .await;
    assert_eq!(answer.status, 405, "{answer:?}");
}
