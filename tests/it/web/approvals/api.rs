//! Requests and decisions in the API, as its description says.

use serde_json::{Value, json};

use super::fixture::{Asking, OWN, ana, person};
use crate::support::wait::eventually;
use crate::web::described::assert_fits;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_lists_shows_and_decides_as_described() {
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let document: Value = serde_json::from_str(tarsy_web::OPENAPI).unwrap();
    let list = "GET /approvals";
    let one = "GET /approvals/{part}/{number}";
    let get = async |operation: &str, path: &str, status: u16| {
        let answer = web.ask("GET", &format!("/api/v1{path}"), &ana()).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_fits(&document, operation, status, &answer.json());
        answer.json()
    };
    let path = asking.path();
    let session = asking.request.session;
    let open = get(list, "/approvals", 200).await;
    assert_eq!(open["approvals"][0]["event"], asking.request.event);
    let all = format!("/approvals?requests=all&session={session}&since=1h&limit=5");
    assert_eq!(
        get(list, &all, 200).await["approvals"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    for wrong in ["requests=some", "since=tomorrow", "limit=0", "session=abc"] {
        get(list, &format!("/approvals?{wrong}"), 400).await;
    }
    let request = get(one, &path, 200).await;
    assert_eq!(request["arguments"], "{\"pod\":\"db-1\"}");
    get(one, &format!("/approvals/{session}/9999"), 404).await;
    let waiting = get(
        "GET /sessions",
        "/sessions?status=waiting_for_approval",
        200,
    )
    .await;
    assert_eq!(waiting["sessions"][0]["session_id"], session.to_string());
    assert_eq!(waiting["sessions"][0]["status"], "running");
    assert_eq!(waiting["sessions"][0]["waits_for_approval"], true);
    assert_eq!(waiting["counts"]["waiting_for_approval"], 1);
    let report = get("GET /sessions/{part}", &format!("/sessions/{session}"), 200).await;
    assert_eq!(report["session"]["waits_for_approval"], true);

    let post = "POST /approvals/{part}/{number}";
    let decide = async |headers: &[(&str, &str)], body: &Value, status: u16| {
        let headers = [headers, &[OWN]].concat();
        let answer = web
            .post(&format!("/api/v1{path}"), &headers, &body.to_string())
            .await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert_fits(&document, post, status, &answer.json());
        answer.json()
    };
    let decision = |choice: &str, call: &str| json!({"decision": choice, "call": call, "seen_updates": request["updates"], "nonce": "0199d3f2-0000-7000-8000-000000000001"});
    let call = request["call_sha256"].as_str().unwrap();
    decide(&person("eve", "dev"), &decision("deny", call), 404).await;
    decide(&ana(), &json!({"decision": "deny"}), 400).await;
    decide(&ana(), &json!({"decision": "deny", "by": "bob"}), 400).await;
    let sent = decide(&ana(), &decision("approve", call), 202).await;
    assert_eq!(sent["recorded"], false);
    let _recorder = asking.recorder().await;
    // Messages are recorded side by side.
    eventually("a recorded vote", async || asking.votes() == 1).await;
    let other = decide(&ana(), &decision("approve", &"0".repeat(64)), 409).await;
    assert_eq!(
        (&other["refused"], asking.votes()),
        (&json!("decided"), 2),
        "the first one was recorded before: {other}"
    );
    let again = decide(&ana(), &decision("approve", call), 200).await;
    assert_eq!(again["vote_id"], sent["vote_id"]);
    assert_eq!((asking.outcome().as_str(), asking.votes()), ("approved", 2));
}
