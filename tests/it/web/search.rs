//! The search in a session: the same events in the API, on the page and in the command.

use serde_json::{Value, json};

use super::Web;
use super::described::assert_fits;
use crate::interfaces::commands::run_with;
use crate::support::system::TestSystem;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_finds_the_same_events_in_the_api_the_page_and_the_command() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let web = Web::start(&system, &[]).await;
    let env = system.env(system.database.url());
    // The whole result of one call has words that its event does not have.
    system.database.execute(
        "UPDATE tool_interactions SET result = result || '; 100 % of <script>Größe</script>' WHERE (execution_id, call_id) =
           (SELECT execution_id, metadata ->> 'call_id' FROM timeline_events WHERE event_type = 'tool_result'
            ORDER BY session_seq LIMIT 1)",
    );
    let events = format!("/sessions/{session}/events");
    let all = web.json(&events).await;
    let contents = all["events"].as_array().unwrap().iter();
    let expected: Vec<&Value> = contents
        .filter(|event| {
            let content = event["content"].as_str().unwrap().to_lowercase();
            content.contains("revision 43")
        })
        .collect();
    assert!(expected.len() > 1, "{all}");

    let found = web.json(&format!("{events}?q=REVISION+43")).await;
    let document = web.json("/openapi.json").await;
    assert_fits(&document, "GET /sessions/{part}/events", 200, &found);
    assert_eq!(found["events"], json!(expected));
    assert_eq!(
        [
            &found["last_seq"],
            &found["ended"],
            &found["search"]["complete"]
        ],
        [&all["last_seq"], &json!(true), &json!(true)]
    );

    // One at a time: the filtered page does not say that the session has ended.
    let first = web.json(&format!("{events}?q=revision+43&limit=1")).await;
    assert_eq!(
        [
            &first["last_seq"],
            &first["ended"],
            &first["search"]["complete"]
        ],
        [&expected[0]["session_seq"], &json!(false), &json!(false)]
    );

    let id = session.to_string();
    let command = ["sessions", "search", "--json", &id, "revision", "43"];
    let lines = run_with(&env.each(), &command, b"").await.exits(0).out;
    let numbers: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone())
        .collect();
    let expected: Vec<Value> = expected
        .iter()
        .map(|event| event["session_seq"].clone())
        .collect();
    assert_eq!(numbers, expected);
    let page = web
        .get(&format!("/sessions/{id}/search?q=revision+43"))
        .await;
    assert_eq!(page.status, 200);
    for number in &numbers {
        let link = format!("/s/{id}/{number}\"");
        assert!(page.body.contains(&link), "{link}: {}", page.body);
    }

    // Characters of patterns and markup stand for themselves.
    for (query, words) in [
        ("100+%25+OF", "100 % OF"),
        ("%3CSCRIPT%3Egr%C3%B6%E1%BA%9Ee", "<SCRIPT>größe"),
    ] {
        let found = web.json(&format!("{events}?q={query}")).await;
        assert_eq!(found["search"]["matches"][0]["in"], "result", "{found}");
        let page = web
            .get(&format!("/sessions/{id}/search?q={query}"))
            .await
            .body;
        assert!(
            page.contains("<mark>") && !page.contains("<script>"),
            "{page}"
        );
        let text = run_with(&env.each(), &["sessions", "search", &id, words], b"").await;
        assert!(text.exits(0).out.contains("100 % of <script>"));
    }
    for nothing in ["100+_+of", "1%25f", "revision.43"] {
        let found = web.json(&format!("{events}?q={nothing}")).await;
        assert_eq!(found["events"], json!([]), "{nothing}");
    }

    // An unknown session, and a text that is too long.
    let unknown = "/api/v1/sessions/0198b2c4-5d6e-7f80-9a1b-2c3d00000001/events?q=x";
    assert_eq!(web.get(unknown).await.status, 404);
    let long = "x".repeat(201);
    for (path, status) in [
        (format!("/api/v1{events}?q={long}"), 400),
        (format!("/sessions/{id}/search?q={long}"), 200),
    ] {
        let answer = web.get(&path).await;
        assert_eq!(answer.status, status);
        assert!(answer.body.contains("q: at most 200 bytes"), "{answer:?}");
    }
    let blank = run_with(&env.each(), &["sessions", "search", &id, " "], b"").await;
    blank.exits(1);
}
