//! Tests of the forms for people who may ask and cancel, and of the report as a file.

use tarsy_core::ids::SessionId;

use super::Web;
use crate::interfaces::commands::run_with;
use crate::support::http::Answer;
use crate::support::system::TestSystem;

const SECRET: &str = "s3cret-of-the-proxy";
const ADA: [(&str, &str); 3] = [
    ("x-tarsy-proxy-secret", SECRET),
    ("x-forwarded-email", "ada@example.com"),
    ("content-type", "application/x-www-form-urlencoded"),
];
const SRE: (&str, &str) = ("x-forwarded-groups", "sre");
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
const OTHER: (&str, &str) = ("sec-fetch-site", "cross-site");

async fn web(system: &TestSystem) -> Web {
    std::fs::write(
        system.file("web.yaml"),
        "web: {auth: proxy, allow: {ask: [sre], cancel: [sre]}}\n",
    )
    .unwrap();
    let config = system.file("web.yaml").display().to_string();
    Web::start(
        system,
        &[
            ("TARSY_CONFIG", &config),
            ("TARSY_WEB_PROXY_SECRET", SECRET),
        ],
    )
    .await
}

async fn send(web: &Web, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    web.post(path, &[&ADA, headers].concat(), body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_forms_work_for_those_who_may_and_from_no_other_site() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = web(&system).await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let mut timeline = system.follow(session).await;
    let cancel = format!("/sessions/{session}/cancel");
    assert_eq!(
        send(&web, &cancel, &[OWN], "").await.status,
        404,
        "not in the group"
    );
    assert_eq!(send(&web, &cancel, &[OTHER, SRE], "").await.status, 403);
    assert_eq!(
        send(&web, &cancel, &[SRE], "").await.status,
        403,
        "a form names its origin"
    );
    let asks = web.ask("GET", &cancel, &[&ADA[..2], &[SRE]].concat()).await;
    assert!(
        asks.status == 200 && asks.body.contains(&format!("action=\"{cancel}\"")),
        "{asks:?}"
    );
    let cancelled = send(&web, &cancel, &[OWN, SRE], "").await;
    let page = format!("/sessions/{session}");
    assert_eq!(
        (cancelled.status, cancelled.header("location")),
        (303, Some(page.as_str())),
        "{cancelled:?}"
    );
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type.as_str(), &end.metadata["cancelled_by"]),
        ("session_cancelled", &"ada@example.com".into())
    );
    drop(held);
    system.gates.open_all();

    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let ask = format!("/sessions/{session}/questions");
    let question = "question=Why+5%25%3F";
    assert_eq!(
        send(&web, &ask, &[OWN], question).await.status,
        404,
        "not in the group"
    );
    assert_eq!(send(&web, &ask, &[OTHER, SRE], question).await.status, 403);
    for wrong in ["", "text=Why", "question=", "question=+"] {
        assert_eq!(
            send(&web, &ask, &[OWN, SRE], wrong).await.status,
            400,
            "{wrong}"
        );
    }
    let asked = send(&web, &ask, &[OWN, SRE], question).await;
    let page = asked.header("location").unwrap_or_default();
    let answer = page.strip_prefix("/sessions/").and_then(SessionId::parse);
    let answer = answer
        .filter(|_| asked.status == 303)
        .unwrap_or_else(|| panic!("{asked:?}"));
    system.follow(answer).await.finish().await;
    let events = web
        .ask("GET", &format!("/api/v1/sessions/{answer}/events"), &ADA)
        .await
        .json();
    let question = &events["events"][1];
    assert_eq!(
        (&question["content"], &question["metadata"]["asked_by"]),
        (&"Why 5%?".into(), &ADA[1].1.into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_is_a_file_with_the_text_of_the_command() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let env = system.env(system.database.url());
    let id = session.to_string();
    let report = run_with(&env.each(), &["sessions", "show", "--report", &id], b"")
        .await
        .exits(0)
        .out;
    let file = Web::start(&system, &[])
        .await
        .get(&format!("/sessions/{id}/report.md"))
        .await;
    assert_eq!((file.status, &file.body), (200, &report));
    assert_eq!(
        file.header("content-type"),
        Some("text/markdown; charset=utf-8")
    );
    let name = format!("attachment; filename=\"tarsy-{}.md\"", session.short());
    assert_eq!(file.header("content-disposition"), Some(name.as_str()));
}
