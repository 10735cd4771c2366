//! Alerts from the web server: of a form and of the API, each queued once, and investigations that run again.

use std::time::Duration;

use serde_json::{Value, json};
use tarsy_bus::permissions::NatsRole;
use tarsy_bus::{MessageKind, Priority};
use tarsy_core::ids::SessionId;

use super::Web;
use crate::support::http::Answer;
use crate::support::system::{Setup, TestSystem};

const SECRET: &str = "s3cret-of-the-proxy";
const ADA: [(&str, &str); 4] = [
    ("x-tarsy-proxy-secret", SECRET),
    ("x-forwarded-email", "ada@example.com"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("sec-fetch-site", "same-origin"),
];
const SECTION: &str = "web: {auth: proxy, allow: {rerun: ['*'], submit: ['*']}}\n";
const CHAINS: &str = "
agents: {sre: {}}
agent_chains: {alone: {default: true, stages: [{name: look, agents: [{name: sre}]}]}}
";

async fn web(system: &TestSystem, further: &str, env: &[(&str, &str)]) -> Web {
    std::fs::write(system.file("web.yaml"), format!("{SECTION}{further}")).unwrap();
    let config = system.file("web.yaml").display().to_string();
    Web::start(
        system,
        &[
            &[
                ("TARSY_CONFIG", config.as_str()),
                ("TARSY_WEB_PROXY_SECRET", SECRET),
            ],
            env,
        ]
        .concat(),
    )
    .await
}

/// The id that a form has, and the form.
async fn form(web: &Web, path: &str) -> (String, String) {
    let page = web.ask("GET", path, &ADA).await;
    assert_eq!(page.status, 200, "{page:?}");
    let mark = "name=\"request_id\" value=\"";
    let id = page
        .body
        .split(mark)
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("an id")
        .to_owned();
    (id, page.body)
}

/// The session to whose page an answer leads.
fn session_of(answer: &Answer) -> SessionId {
    let page = answer
        .header("location")
        .filter(|_| answer.status == 303)
        .unwrap_or_else(|| panic!("{answer:?}"));
    SessionId::parse(page.strip_prefix("/sessions/").unwrap()).unwrap()
}

/// The messages that the queue has ever had.
async fn queued(system: &TestSystem) -> u64 {
    let jetstream =
        async_nats::jetstream::new(async_nats::connect(system.nats_url()).await.unwrap());
    jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .state
        .last_sequence
}

async fn shown(web: &Web, session: SessionId) -> Value {
    web.ask("GET", &format!("/api/v1/sessions/{session}"), &ADA)
        .await
        .json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_of_a_form_is_queued_once_and_the_timeline_names_its_sender() {
    let system = TestSystem::start_with(Setup {
        cooldown: Duration::from_hours(1),
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let web = web(&system, "", &[]).await;
    let (request, page) = form(&web, "/submit").await;
    assert!(
        page.contains("action=\"/submit\"") && !page.contains("name=\"chain\""),
        "no chain is known here: {page}"
    );
    let alert = "KubePodOOMKilled+checkout%0D%0Aseverity:+high";
    let send = async |fields: &str| {
        web.post("/submit", &ADA, &format!("request_id={request}&{fields}"))
            .await
    };
    let alert_of = format!("alert={alert}&priority=high");
    let both = tokio::join!(send(&alert_of), send(&alert_of));
    let session = session_of(&both.0);
    assert_eq!(session, session_of(&both.1), "a second click");
    assert_eq!(queued(&system).await, 1);
    system.follow(session).await.finish().await;

    // Later, too, when the stream would store it again.
    assert_eq!(session_of(&send(&alert_of).await), session);
    let report = shown(&web, session).await;
    assert_eq!(
        (&report["subject"], &report["body"], &report["deliveries"]),
        (
            &json!("tarsy.alerts.high.web"),
            &json!("KubePodOOMKilled checkout\nseverity: high"),
            &json!(1)
        )
    );
    let events = web
        .ask("GET", &format!("/api/v1/sessions/{session}/events"), &ADA)
        .await
        .json();
    assert_eq!(
        events["events"][0]["metadata"]["asked_by"],
        "ada@example.com"
    );
    let page = web
        .ask("GET", &format!("/sessions/{session}"), &ADA)
        .await
        .body;
    assert!(
        page.contains("by ada@example.com")
            && page.contains("<dt>sent by</dt><dd>ada@example.com</dd>"),
        "{page}"
    );

    // Another text in the same form is another alert; and the same one within the cooldown joins, unless it is forced.
    let other = session_of(&send(&format!("alert={alert}+again&priority=high")).await);
    assert_ne!(other, session);
    system.follow(other).await.finish().await;
    let (request, _) = form(&web, "/submit").await;
    let (repeated, forced) = (
        format!("request_id={request}&{alert_of}"),
        format!("request_id={request}&{alert_of}&cooldown=ignored"),
    );
    let joined = session_of(&web.post("/submit", &ADA, &repeated).await);
    system.follow(joined).await.finish().await;
    assert_eq!(
        shown(&web, joined).await["joined_session_id"],
        json!(session)
    );
    let forced = session_of(&web.post("/submit", &ADA, &forced).await);
    system.follow(forced).await.finish().await;
    assert_eq!(shown(&web, forced).await["place"], "opened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_that_is_refused_says_why_and_keeps_what_was_typed() {
    let system = TestSystem::start(&[]).await;
    let web = web(
        &system,
        &format!("worker: {{max_alert_bytes: 2000}}\n{CHAINS}"),
        &[],
    )
    .await;
    let (_, page) = form(&web, "/submit").await;
    assert!(
        page.contains("<option value=\"alone\">alone</option>"),
        "{page}"
    );
    let old = "0190a1b2-0000-7000-8000-000000000001";
    let test = "alert=%7B%22source%22%3A%22x%22%7D&priority=urgent";
    for (fields, why, kept) in [
        ("alert=+%0A", "The alert is empty", "<textarea"),
        ("", "The alert is empty", "<textarea"),
        ("alert=%7B%7D", "The alert is empty", "{}</textarea>"),
        (
            "alert=kept+%3Ctext%3E&chain=nope",
            "There is no chain",
            "kept &lt;text&gt;</textarea>",
        ),
        (
            test,
            "Priority: accepted: critical, high, normal, low",
            "{&quot;source&quot;:&quot;x&quot;}</textarea>",
        ),
        (
            &format!("alert=kept+text&request_id={old}"),
            "made more than an hour ago",
            "kept text</textarea>",
        ),
        (
            "alert=kept+text&cooldown=ignored&chain=no&priority=low",
            "no chain",
            "value=\"low\" selected",
        ),
    ] {
        let refused = web.post("/submit", &ADA, fields).await;
        assert_eq!(refused.status, 400, "{fields}: {refused:?}");
        assert!(
            refused.body.contains(why) && refused.body.contains(kept),
            "{fields}: {refused:?}"
        );
        assert!(
            refused.body.contains("role=\"alert\"") && !refused.body.contains(old),
            "{refused:?}"
        );
    }
    let huge = web
        .post("/submit", &ADA, &format!("alert={}", "x".repeat(40_000)))
        .await;
    assert!(
        huge.status == 400 && huge.body.contains("has more than 22384 bytes"),
        "{huge:?}"
    );
    assert_eq!(queued(&system).await, 0, "nothing was published");

    // Without the broker the alert is not queued, and the form can be sent again as it is.
    let alone = self::web(&system, "", &[("NATS_URL", "nats://127.0.0.1:1")]).await;
    let (request, _) = form(&alone, "/submit").await;
    let refused = alone
        .post(
            "/submit",
            &ADA,
            &format!("request_id={request}&alert=kept+text"),
        )
        .await;
    assert!(
        refused.status == 503 && refused.body.contains("kept text</textarea>"),
        "{refused:?}"
    );
    assert!(
        refused.body.contains(&request) && refused.header("retry-after").is_some(),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_of_a_form_investigates_the_same_once_more_past_the_cooldown() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = web(&system, "", &[]).await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let page = web
        .ask("GET", &format!("/sessions/{session}"), &ADA)
        .await
        .body;
    let path = format!("/sessions/{session}/rerun");
    assert!(
        page.contains(&format!("href=\"{path}\">Rerun</a>")),
        "{page}"
    );
    let (request, page) = form(&web, &path).await;
    let before = shown(&web, session).await;
    let first_line = before["body"].as_str().unwrap().lines().next().unwrap();
    assert!(
        page.contains(first_line) && page.contains("readonly"),
        "{page}"
    );
    let fields = format!("request_id={request}");
    let rerun = session_of(&web.post(&path, &ADA, &fields).await);
    assert_eq!(
        session_of(&web.post(&path, &ADA, &fields).await),
        rerun,
        "a second click"
    );
    system.follow(rerun).await.finish().await;
    assert_eq!(
        session_of(&web.post(&path, &ADA, &fields).await),
        rerun,
        "a page that is loaded again"
    );
    let after = shown(&web, rerun).await;
    assert_eq!(
        (&after["place"], &after["session"]["status"]),
        (&json!("opened"), &json!("completed"))
    );
    assert_eq!(
        (&after["body"], &after["alert_type"]),
        (&before["body"], &before["alert_type"])
    );
    assert_eq!(
        (&after["subject"], &after["deliveries"]),
        (&json!("tarsy.alerts.critical.web"), &json!(1))
    );
    assert_eq!(after["headers"]["Tarsy-Retry-Of"], json!(session));
    assert_eq!(after["headers"]["Tarsy-Asked-By"], "ada@example.com");
    let page = web
        .ask("GET", &format!("/sessions/{rerun}"), &ADA)
        .await
        .body;
    assert!(
        page.contains(&format!(
            "<dt>rerun of</dt><dd><a href=\"/sessions/{session}\">"
        )),
        "{page}"
    );

    // A rerun of a rerun is the same alert, and the form of a new alert can begin with it.
    let api = format!("/api/v1{path}");
    let again = web
        .post(
            &api.replace(&session.to_string(), &rerun.to_string()),
            &ADA,
            "",
        )
        .await;
    assert_eq!(again.status, 202, "{again:?}");
    let again = SessionId::parse(again.json()["session_id"].as_str().unwrap()).unwrap();
    system.follow(again).await.finish().await;
    assert_eq!(
        shown(&web, again).await["fingerprint"],
        after["fingerprint"]
    );
    let (_, filled) = form(&web, &format!("/submit?from={session}")).await;
    assert!(
        filled.contains(first_line) && filled.contains("value=\"critical\" selected"),
        "{filled}"
    );
    assert!(filled.contains("value=\"ignored\" checked"), "{filled}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_queues_a_repeated_request_once_and_each_alert_of_a_body() {
    let system = TestSystem::start(&[]).await;
    let web = web(&system, "", &[]).await;
    let request = uuid::Uuid::now_v7();
    let path = format!("/api/v1/alerts?priority=low&request_id={request}");
    let first = web.post(&path, &ADA, "disk 94 % full").await;
    assert_eq!(
        (first.status, &first.json()["subject"]),
        (202, &json!("tarsy.alerts.low.web")),
        "{first:?}"
    );
    assert_eq!(
        web.post(&path, &ADA, "disk 94 % full").await.json()["session_id"],
        first.json()["session_id"]
    );
    assert_eq!(queued(&system).await, 1);
    let other = web.post(&path, &ADA, "disk 95 % full").await;
    assert!(
        other.status == 202 && other.json()["session_id"] != first.json()["session_id"],
        "{other:?}"
    );
    let record = |text: &str| json!({"Sns": {"TopicArn": "arn:aws:sns:eu-1:1:alarms", "Subject": text, "Message": text}});
    let two = json!({"Records": [record("one is full"), record("another is full")]}).to_string();
    let queued_two = web.post("/api/v1/alerts", &ADA, &two).await.json();
    let all = queued_two["alerts"]
        .as_array()
        .unwrap_or_else(|| panic!("{queued_two}"));
    assert_eq!(
        (all.len(), &all[0]["session_id"]),
        (2, &queued_two["session_id"])
    );
    for (query, why) in [
        (
            "?priority=urgent",
            "priority: accepted: critical, high, normal, low",
        ),
        ("?request_id=1", "request_id is not a UUID of version 7"),
        ("?prio=low", "unknown field"),
        ("?force=perhaps", "force"),
    ] {
        let refused = web
            .post(&format!("/api/v1/alerts{query}"), &ADA, "disk full")
            .await;
        assert!(
            refused.status == 400 && refused.json()["error"].as_str().unwrap().contains(why),
            "{refused:?}"
        );
    }
    assert_eq!(queued(&system).await, 4);
}

#[test]
fn the_web_server_may_queue_on_the_subjects_that_it_uses_and_on_no_other_of_alerts() {
    let of_alerts = NatsRole::Web
        .publish()
        .into_iter()
        .filter(|subject| subject.starts_with("tarsy.alerts"));
    let mut expected =
        Priority::ALL.map(|priority| format!("{}.web", priority.subject(MessageKind::Alert)));
    expected.sort_unstable();
    assert_eq!(of_alerts.collect::<Vec<_>>(), expected);
}
