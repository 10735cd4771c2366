use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Buttons, Routes};
use tarsy_core::approvals::CallHash;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::request::Request;
use tarsy_core::notification::summary::Summary;
use tarsy_core::notification::{Notification, NotificationKey};
use tarsy_engine::ports::{Notifier as _, ProviderAnswer};
use tarsy_http::listener::{Limits, http};

/// A Slack that gives prepared answers and keeps what it was sent.
#[derive(Clone, Debug, Default)]
struct Fake {
    requests: Arc<Mutex<Vec<Sent>>>,
    answers: Arc<Mutex<VecDeque<Prepared>>>,
}

#[derive(Clone, Debug)]
enum Prepared {
    Json(Value),
    Status(u16),
    Silence,
}

#[derive(Clone, Debug, PartialEq)]
struct Sent {
    path: String,
    token: String,
    body: Value,
}

impl Fake {
    async fn start(answers: Vec<Prepared>) -> (Self, String) {
        let fake = Self {
            answers: Arc::new(Mutex::new(answers.into())),
            ..Self::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(fake.clone());
        tokio::spawn(http::serve(
            listener,
            options(),
            router,
            CancellationToken::new(),
        ));
        (fake, origin)
    }

    fn sent(&self) -> Vec<Sent> {
        self.requests.lock().clone()
    }
}

fn options() -> http::Options {
    let limit = Duration::from_secs(30);
    http::Options {
        name: "fake slack",
        limits: Limits {
            connections: 16,
            per_address: 16,
        },
        header_timeout: limit,
        write_timeout: limit,
        lifetime: None,
        last_request_timeout: limit,
        drain_timeout: limit,
        over_limit_response: b"",
        open_connections: None,
    }
}

async fn take(
    State(fake): State<Fake>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let token = headers
        .get(AUTHORIZATION)
        .map_or("", |token| token.to_str().unwrap());
    fake.requests.lock().push(Sent {
        path: uri.to_string(),
        token: token.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let answer = fake.answers.lock().pop_front();
    match answer.unwrap_or_else(|| Prepared::Json(json!({"ok": true}))) {
        Prepared::Json(body) => (StatusCode::OK, body.to_string()),
        Prepared::Status(status) => (StatusCode::from_u16(status).unwrap(), String::new()),
        Prepared::Silence => std::future::pending().await,
    }
}

struct Installed {
    config: Config,
    _token: tempfile::NamedTempFile,
}

fn installed(origin: &str) -> Installed {
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "xoxb-token").unwrap();
    let text = format!(
        "notifications:\n  on-call: {{kind: slack, token_file: {}, channel: C0123456789, api_url: '{origin}/api', when: \
         [ended, approval]}}\napprovals:\n  slack_groups: {{sre: S0614TZR7, dba: S0614TZR8}}\n",
        token.path().display()
    );
    let config = Config::parse("f", &text, &|_| None).unwrap();
    Installed {
        config,
        _token: token,
    }
}

fn people(installed: &Installed) -> SlackPeople {
    SlackPeople::new(&installed.config, Mask::default())
}

fn users(users: &[&str]) -> Prepared {
    Prepared::Json(json!({"ok": true, "users": users}))
}

fn both() -> Vec<String> {
    vec!["dba".to_owned(), "sre".to_owned()]
}

#[tokio::test]
async fn a_group_that_is_not_wanted_is_not_read_so_its_fault_takes_no_right() {
    let (fake, origin) = Fake::start(vec![users(&["U7"]), Prepared::Status(500)]).await;
    let installed = installed(&origin);
    let sre = vec!["sre".to_owned()];
    let groups = people(&installed).groups_of("U7", &sre).await;
    assert_eq!(groups, Groups::Known(sre));
    assert_eq!(fake.sent().len(), 1);
}

#[tokio::test]
async fn the_groups_of_a_person_are_read_with_the_token_and_kept() {
    let (fake, origin) = Fake::start(vec![users(&["U1", "U7"]), users(&["U7"])]).await;
    let installed = installed(&origin);
    let people = people(&installed);
    // In the order of their names.
    assert_eq!(people.groups_of("U7", &both()).await, Groups::Known(both()));
    assert_eq!(
        people.groups_of("U1", &both()).await,
        Groups::Known(vec!["dba".to_owned()])
    );
    assert_eq!(
        people.groups_of("U9", &both()).await,
        Groups::Known(Vec::new())
    );
    let sent = fake.sent();
    let paths: Vec<&str> = sent.iter().map(|each| each.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/api/usergroups.users.list?usergroup=S0614TZR8",
            "/api/usergroups.users.list?usergroup=S0614TZR7"
        ]
    );
    assert_eq!(sent[0].token, "Bearer xoxb-token");
}

#[tokio::test]
async fn a_group_that_cannot_be_read_gives_no_right_and_is_asked_for_again() {
    let refused = Prepared::Json(json!({"ok": false, "error": "missing_scope"}));
    let unknown = Prepared::Json(json!({"ok": false, "error": "no_such_subteam"}));
    let answers = vec![
        refused,
        Prepared::Status(500),
        Prepared::Json(json!("no")),
        Prepared::Status(429),
        unknown,
        users(&["U7"]),
    ];
    let (_fake, origin) = Fake::start(answers).await;
    let installed = installed(&origin);
    let people = people(&installed);
    for _ in 0..4 {
        assert_eq!(people.groups_of("U7", &both()).await, Groups::Unavailable);
    }
    let known = Groups::Known(vec!["sre".to_owned()]);
    assert_eq!(people.groups_of("U7", &both()).await, known);
}

#[tokio::test]
async fn a_slack_that_does_not_answer_is_unavailable_and_without_a_bot_it_is_not_asked() {
    let (_fake, origin) = Fake::start(vec![Prepared::Silence]).await;
    let installed = installed(&origin);
    assert_eq!(
        people(&installed).groups_of("U7", &both()).await,
        Groups::Unavailable
    );
    let config = Config::parse("f", "approvals: {slack_groups: {sre: S0614TZR7}}", &|_| {
        None
    });
    let nothing = SlackPeople::new(&config.unwrap(), Mask::default());
    assert_eq!(nothing.groups_of("U7", &both()).await, Groups::NotAsked);
}

#[tokio::test]
async fn a_person_is_answered_only_at_an_address_of_slack() {
    let (fake, origin) = Fake::start(vec![]).await;
    let installed = installed(&origin);
    let people = people(&installed);
    people
        .answer(&format!("{origin}/actions/T1/2/x"), "Recorded.")
        .await;
    for other in [
        format!("{origin}/services/T1"),
        format!("{origin}/actions/../services/T1"),
        format!("{origin}/actions/%2e%2e/services/T1"),
        origin.replace("127.0.0.1", "localhost") + "/actions/T1",
        "no address".to_owned(),
        String::new(),
    ] {
        people.answer(&other, "Recorded.").await;
    }
    let expected = Sent {
        path: "/actions/T1/2/x".to_owned(),
        token: String::new(),
        body: json!({"response_type": "ephemeral", "replace_original": false, "text": "Recorded."}),
    };
    assert_eq!(fake.sent(), [expected]);
    assert_eq!(
        answer_addresses(&installed.config),
        [
            format!("{origin}/actions/"),
            "https://hooks.slack.com/actions/".to_owned()
        ]
    );
}

#[tokio::test]
async fn a_lost_answer_of_slack_ends_in_time() {
    let (fake, origin) = Fake::start(vec![Prepared::Silence, Prepared::Status(404)]).await;
    let installed = installed(&origin);
    let people = people(&installed);
    let address = format!("{origin}/actions/T1/2/x");
    people.answer(&address, "Recorded.").await;
    people.answer(&address, "Recorded.").await;
    assert_eq!(fake.sent().len(), 2);
}

const ARGUMENTS: &str = r#"{"name":"checkout"}"#;

fn asks(moment: Moment) -> Notification {
    let session = SessionId::parse("019a2b3c-0000-7000-8000-000000000001").unwrap();
    let request = json!({
        "event": 42, "tool": "k8s.rollout_restart", "policy": "default", "arguments": ARGUMENTS,
        "call": CallHash([0xab; 32]), "why": "restart", "quorum": 1, "channels": ["slack"], "updates": 0,
        "expires_at": "2026-11-30T14:03:00.123456+00:00", "is_over": false,
    });
    let mut request: Request = serde_json::from_value(request).unwrap();
    if moment == Moment::Decided {
        request.outcome = Some("approved".to_owned());
        request.receipt = Some("C0123456789/1700000000.000100".to_owned());
    }
    Notification {
        key: NotificationKey {
            session,
            route: "on-call".to_owned(),
            moment,
            request: Some(42),
        },
        about: session,
        summary: Summary {
            title: "KubePodCrashLooping".to_owned(),
            request: Some(request),
            ..Summary::default()
        },
        url: None,
        template: None,
        may_repeat: false,
        stays_in_thread: false,
    }
}

fn routes(installed: &Installed, mask: Mask) -> Routes {
    Routes::new(installed.config.notification_routes(), mask).with_buttons(Buttons::Offered)
}

fn block_types(body: &Value) -> Vec<&str> {
    let blocks = body["blocks"].as_array().unwrap();
    blocks
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect()
}

#[tokio::test]
async fn a_message_that_asks_is_replaced_without_buttons_once_people_have_decided() {
    let posted = Prepared::Json(json!({"ok": true, "ts": "1700000000.000100"}));
    let (fake, origin) = Fake::start(vec![posted]).await;
    let installed = installed(&origin);
    let routes = routes(&installed, Mask::default());
    let first = Some("1699.9".to_owned());
    let answer = routes.send(asks(Moment::Approval), first.clone()).await;
    let receipt = Some("C0123456789/1700000000.000100".to_owned());
    assert_eq!(answer, ProviderAnswer::Accepted { receipt });
    let answer = routes.send(asks(Moment::Decided), first).await;
    assert_eq!(answer, ProviderAnswer::Accepted { receipt: None });
    let sent = fake.sent();
    assert_eq!(sent[0].path, "/api/chat.postMessage");
    assert_eq!(sent[0].body["thread_ts"], json!("1699.9"));
    assert_eq!(
        block_types(&sent[0].body),
        ["section", "rich_text", "section", "input", "actions"]
    );
    assert_eq!(sent[1].path, "/api/chat.update");
    assert_eq!(
        (&sent[1].body["channel"], &sent[1].body["ts"]),
        (&json!("C0123456789"), &json!("1700000000.000100"))
    );
    assert_eq!(
        block_types(&sent[1].body),
        ["section", "rich_text", "section"]
    );
}

#[tokio::test]
async fn a_message_without_buttons_links_only_and_one_that_never_asked_is_not_changed() {
    let (fake, origin) = Fake::start(vec![]).await;
    let installed = installed(&origin);
    let without = Routes::new(installed.config.notification_routes(), Mask::default());
    without.send(asks(Moment::Approval), None).await;
    // A secret that became known since: the person would see other arguments than those that are sent.
    let mask = Mask::default();
    mask.learn(["checkout".to_owned()]);
    let masked = routes(&installed, mask);
    masked.send(asks(Moment::Approval), None).await;
    for sent in fake.sent() {
        assert_eq!(block_types(&sent.body), ["section"], "{sent:?}");
        assert!(!sent.body.to_string().contains("checkout"), "{sent:?}");
    }
    let mut never = asks(Moment::Decided);
    if let Some(request) = &mut never.summary.request {
        request.receipt = None;
    }
    let answer = masked.send(never, None).await;
    assert!(
        matches!(answer, ProviderAnswer::NoPlace { .. }),
        "{answer:?}"
    );
    assert_eq!(fake.sent().len(), 2);
}

#[tokio::test]
async fn a_message_that_may_have_asked_is_found_and_not_sent_once_people_have_decided() {
    let late = || {
        let mut late = asks(Moment::Decided);
        late.key.moment = Moment::Approval;
        late.may_repeat = true;
        late
    };
    let metadata =
        json!({"event_type": "tarsy_notification", "event_payload": {"id": late().key.id()}});
    let found =
        json!({"ok": true, "messages": [{"ts": "1700000000.000100", "metadata": metadata}]});
    let none = json!({"ok": true, "messages": []});
    let answers = vec![
        Prepared::Json(found),
        Prepared::Json(none),
        Prepared::Status(500),
    ];
    let (fake, origin) = Fake::start(answers).await;
    let installed = installed(&origin);
    let routes = routes(&installed, Mask::default());
    let receipt = Some("C0123456789/1700000000.000100".to_owned());
    let answer = routes.send(late(), None).await;
    assert_eq!(answer, ProviderAnswer::Found { receipt });
    let answer = routes.send(late(), None).await;
    assert!(
        matches!(answer, ProviderAnswer::NoPlace { .. }),
        "{answer:?}"
    );
    let answer = routes.send(late(), None).await;
    assert!(
        matches!(answer, ProviderAnswer::Unavailable { .. }),
        "{answer:?}"
    );
    let sent = fake.sent();
    assert_eq!(sent.len(), 3);
    assert!(
        sent.iter()
            .all(|each| each.path.starts_with("/api/conversations.history")),
        "{sent:?}"
    );
}

#[tokio::test]
async fn an_answer_for_the_people_of_a_thread_is_posted_nowhere_else() {
    let gone = || Prepared::Json(json!({"ok": false, "error": "channel_not_found"}));
    let posted = Prepared::Json(json!({"ok": true, "ts": "1700000000.000200"}));
    let (fake, origin) = Fake::start(vec![gone(), gone(), posted]).await;
    let installed = installed(&origin);
    let routes = routes(&installed, Mask::default());
    let mut answer = asks(Moment::Approval);
    answer.key.moment = Moment::Ended;
    answer.stays_in_thread = true;
    let thread = Some("C0PRIVATE01/1700000000.000100".to_owned());
    routes.send(answer.clone(), thread.clone()).await;
    assert_eq!(fake.sent().len(), 1);
    answer.stays_in_thread = false;
    routes.send(answer, thread).await;
    let channels: Vec<Value> = fake
        .sent()
        .iter()
        .map(|each| each.body["channel"].clone())
        .collect();
    assert_eq!(channels, ["C0PRIVATE01", "C0PRIVATE01", "C0123456789"]);
}

#[tokio::test]
async fn an_update_is_tried_again_unless_the_message_is_gone() {
    let gone = Prepared::Json(json!({"ok": false, "error": "message_not_found"}));
    let answers = vec![Prepared::Status(500), Prepared::Status(429), gone];
    let (_fake, origin) = Fake::start(answers).await;
    let installed = installed(&origin);
    let routes = routes(&installed, Mask::default());
    for _ in 0..2 {
        let answer = routes.send(asks(Moment::Decided), None).await;
        assert!(
            matches!(answer, ProviderAnswer::Unavailable { .. }),
            "{answer:?}"
        );
    }
    let answer = routes.send(asks(Moment::Decided), None).await;
    assert!(
        matches!(answer, ProviderAnswer::NoPlace { .. }),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_line_in_a_thread_is_shown_to_one_person_once() {
    let refused = Prepared::Json(json!({"ok": false, "error": "user_not_in_channel"}));
    let (fake, origin) = Fake::start(vec![Prepared::Status(500), refused]).await;
    let installed = installed(&origin);
    let people = people(&installed);
    let thread = SlackThread::parse("C1/1700000000.000100").unwrap();
    for _ in 0..3 {
        people.show(&thread, "U7", "Not asked: a test.").await;
    }
    let sent = fake.sent();
    assert_eq!(sent.len(), 3, "none is repeated");
    for each in sent {
        assert_eq!(
            (each.path.as_str(), each.token.as_str()),
            ("/api/chat.postEphemeral", "Bearer xoxb-token")
        );
        let expected = json!({
            "channel": "C1", "thread_ts": "1700000000.000100", "user": "U7", "text": "Not asked: a test.",
        });
        assert_eq!(each.body, expected);
    }
}

#[tokio::test]
async fn a_receipt_is_the_first_message_of_a_thread_also_where_another_one_is_gone() {
    let ts = |ts: &str| Prepared::Json(json!({"ok": true, "ts": ts}));
    let gone = Prepared::Json(json!({"ok": false, "error": "thread_not_found"}));
    let first = "1700000000.000001";
    let later = "1700000000.000009";
    let answers = vec![ts(first), ts(later), ts(later), gone, ts(later)];
    let (fake, origin) = Fake::start(answers).await;
    let installed = installed(&origin);
    let routes = routes(&installed, Mask::default());
    let ended = asks(Moment::Ended);
    let whole = format!("C0123456789/{first}");
    let new = format!("C0123456789/{later}");
    for (thread, receipt) in [
        (None, &whole),
        (Some(whole.clone()), &whole),
        // As a worker of an earlier version has stored it.
        (Some(first.to_owned()), &whole),
        (Some(whole.clone()), &new),
    ] {
        let answer = routes.send(ended.clone(), thread.clone()).await;
        let expected = ProviderAnswer::Accepted {
            receipt: Some(receipt.clone()),
        };
        assert_eq!(answer, expected, "{thread:?}");
    }
    let sent = fake.sent();
    let threads: Vec<_> = sent
        .iter()
        .map(|each| each.body["thread_ts"].as_str())
        .collect();
    assert_eq!(threads, [None, Some(first), Some(first), Some(first), None]);
}
