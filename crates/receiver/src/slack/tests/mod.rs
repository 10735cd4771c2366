mod events;

use std::sync::Arc;

use chrono::Utc;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use ring::hmac;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::form_urlencoded;

use super::*;
use tarsy_core::approvals::slack::{SlackButton, action_id};
use tarsy_core::approvals::{CallHash, Choice, RequestId};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::Rating;
use tarsy_core::verdicts::slack::{
    action_id as rating_id, block_id as verdict_block_id, cause_block_id,
};

const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";
const ANSWERS: &str = "https://hooks.slack.com/actions/";

/// The reaction of the queue.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Stores,
    IsFull,
    IsSilent,
}

#[derive(Clone, Debug)]
struct Queue {
    stream: Stream,
    stored: Arc<Mutex<Vec<SlackClick>>>,
    asked: Arc<Mutex<Vec<SlackQuestion>>>,
}

impl SlackQueue for Queue {
    async fn publish(&self, click: SlackClick) -> Result<(), PublishError> {
        self.react().await?;
        self.stored.lock().push(click);
        Ok(())
    }

    async fn ask(&self, question: SlackQuestion) -> Result<(), PublishError> {
        self.react().await?;
        self.asked.lock().push(question);
        Ok(())
    }
}

impl Queue {
    async fn react(&self) -> Result<(), PublishError> {
        match self.stream {
            Stream::Stores => Ok(()),
            Stream::IsFull => Err(PublishError::Unavailable {
                reason: "the stream is full".to_owned(),
                retry_after: Duration::from_secs(1),
            }),
            Stream::IsSilent => std::future::pending().await,
        }
    }
}

/// A receiver on a port of its own.
struct Served {
    url: String,
    queue: Queue,
    _stop: DropGuard,
}

impl Served {
    async fn start(stream: Stream) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let queue = Queue {
            stream,
            stored: Arc::default(),
            asked: Arc::default(),
        };
        let settings = SlackSettings {
            app: "A1".to_owned(),
            team: "T1".to_owned(),
            keys: HmacKeys::new(&["other".to_owned(), SECRET.to_owned()]),
            answers: vec![ANSWERS.to_owned()],
            header_timeout: Duration::from_secs(10),
            limits: Limits {
                connections: 8,
                per_address: 8,
            },
        };
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, settings, queue.clone(), stop.clone()));
        Self {
            url,
            queue,
            _stop: stop.drop_guard(),
        }
    }

    async fn post(&self, signed: Signed) -> (u16, String) {
        self.post_to("/slack/actions", signed).await
    }

    async fn post_to(&self, path: &str, signed: Signed) -> (u16, String) {
        let url = format!("{}{path}", self.url);
        let request = tarsy_http::outgoing::builder()
            .build()
            .unwrap()
            .post(url)
            .header("x-slack-request-timestamp", signed.time)
            .header("x-slack-signature", signed.signature)
            .body(signed.body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// The beginning of the answer to the head of a request with a body of so many bytes.
    async fn announce(&self, bytes: usize) -> String {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head =
            format!("POST /slack/actions HTTP/1.1\r\nhost: a\r\ncontent-length: {bytes}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        String::from_utf8_lossy(&status).into_owned()
    }

    fn stored(&self) -> Vec<SlackClick> {
        self.queue.stored.lock().clone()
    }

    fn decisions(&self) -> Vec<DecisionMessage> {
        let stored = self.stored().into_iter();
        stored
            .map(|click| match click.message {
                SlackMessage::Decision(decision) => decision,
                SlackMessage::Verdict(verdict) => panic!("{verdict:?}"),
            })
            .collect()
    }
}

struct Signed {
    time: String,
    signature: String,
    body: Vec<u8>,
}

fn signed(body: impl Into<Vec<u8>>) -> Signed {
    signed_at(Utc::now().timestamp(), body.into())
}

fn signed_at(time: i64, body: Vec<u8>) -> Signed {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let message = [format!("v0:{time}:").as_bytes(), &body].concat();
    let tag = hmac::sign(&key, &message);
    Signed {
        time: time.to_string(),
        signature: format!("v0={}", HEXLOWER.encode(tag.as_ref())),
        body,
    }
}

fn form(payload: &Value) -> String {
    form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish()
}

fn button() -> SlackButton {
    SlackButton {
        request: RequestId {
            session: SessionId::parse(SESSION).unwrap(),
            event: 42,
        },
        call: CallHash([0xab; 32]),
        updates: 3,
    }
}

/// A click as Slack sends it, with more fields than are read.
fn click(choice: Choice) -> Value {
    let button = button();
    json!({
        "type": "block_actions", "api_app_id": "A1", "token": "deprecated", "trigger_id": "1.2.3",
        "team": {"id": "T1", "domain": "example"}, "user": {"id": "U7", "username": "ana", "team_id": "T1"},
        "container": {"type": "message", "message_ts": "1700000000.000100", "channel_id": "C1", "is_ephemeral": false},
        "response_url": format!("{ANSWERS}T1/1/abc"),
        "state": {"values": {button.comment_block_id(): {"comment": {"type": "plain_text_input", "value": " ok \n"}}}},
        "actions": [{
            "type": "button", "action_id": action_id(choice), "block_id": button.block_id(),
            "value": button.value(), "action_ts": "1700000001.000200"
        }],
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut click = click(Choice::Approve);
    *click.pointer_mut(pointer).unwrap() = value;
    click
}

#[tokio::test]
async fn a_click_is_published_with_the_hash_that_was_shown_and_answered_without_a_body() {
    let served = Served::start(Stream::Stores).await;
    for choice in Choice::ALL {
        let answer = served.post(signed(form(&click(choice)))).await;
        assert_eq!(answer, (200, String::new()));
    }
    let stored = served.stored();
    let decisions = served.decisions();
    let choices: Vec<_> = decisions.iter().map(|each| each.verdict).collect();
    assert_eq!(choices, Choice::ALL);
    let first = &stored[0];
    assert_eq!(first.topic, Topic::Decision(button().request.session));
    let expected = json!({
        "v": 1, "request": format!("{SESSION}/42"), "call": "ab".repeat(32), "seen_updates": 3, "verdict": "approve",
        "comment": "ok", "by": {"name": "U7"}, "response_url": format!("{ANSWERS}T1/1/abc"),
    });
    assert_eq!(serde_json::to_value(&first.message).unwrap(), expected);
}

#[tokio::test]
async fn a_repeated_click_is_the_same_vote_and_another_one_is_not() {
    let served = Served::start(Stream::Stores).await;
    let later = with("/actions/0/action_ts", json!("1700000009.000200"));
    let other = with("/user/id", json!("U8"));
    let request = format!("tarsy:{SESSION}:43");
    let another = with("/actions/0/block_id", json!(request));
    for click in [
        &click(Choice::Approve),
        &click(Choice::Approve),
        &click(Choice::Deny),
        &later,
        &other,
        &another,
    ] {
        served.post(signed(form(click))).await;
    }
    let ids: Vec<_> = served.stored().iter().map(|each| each.id).collect();
    assert_eq!(ids[0], ids[1]);
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (6, 5));
}

/// A click on a button under the message about an ended investigation.
fn judgement(rating: Rating) -> Value {
    let session = SessionId::parse(SESSION).unwrap();
    let mut click = click(Choice::Approve);
    click["state"]["values"] = json!({cause_block_id(session): {"cause": {"type": "plain_text_input", "value": "a full disk"}}});
    click["actions"] = json!([{
        "type": "button", "action_id": rating_id(rating), "block_id": verdict_block_id(session),
        "action_ts": "1700000001.000200"
    }]);
    click
}

#[tokio::test]
async fn a_person_judges_the_analysis_of_the_session_that_the_button_names() {
    let served = Served::start(Stream::Stores).await;
    for rating in Rating::ALL {
        let answer = served.post(signed(form(&judgement(rating)))).await;
        assert_eq!(answer, (200, String::new()));
    }
    let mut other = judgement(Rating::Wrong);
    other["actions"][0]["block_id"] = json!(format!("tarsy:{SESSION}:42"));
    assert_eq!(served.post(signed(form(&other))).await.0, 400);
    let stored = served.stored();
    let session = SessionId::parse(SESSION).unwrap();
    let ids: std::collections::BTreeSet<_> = stored.iter().map(|each| each.id).collect();
    assert_eq!((stored.len(), ids.len()), (3, 3));
    assert!(
        stored
            .iter()
            .all(|each| each.topic == Topic::Verdict(session))
    );
    let expected = json!({
        "v": 1, "verdict": "right", "cause": "a full disk", "by": {"name": "U7"},
        "response_url": format!("{ANSWERS}T1/1/abc"),
    });
    assert_eq!(serde_json::to_value(&stored[0].message).unwrap(), expected);
}

#[tokio::test]
async fn a_forged_replayed_or_foreign_click_decides_nothing() {
    let served = Served::start(Stream::Stores).await;
    let body = form(&click(Choice::Approve));
    let now = Utc::now().timestamp();
    let changed = Signed {
        body: body.replace("approve", "deny").into_bytes(),
        ..signed(body.clone())
    };
    let unsigned = Signed {
        signature: "v0=00".to_owned(),
        ..signed(body.clone())
    };
    let moved = Signed {
        time: (now + 1).to_string(),
        ..signed_at(now, body.clone().into_bytes())
    };
    let guest = form(&with("/user/team_id", json!("T2")));
    for request in [
        changed,
        unsigned,
        moved,
        signed_at(now - 301, body.clone().into_bytes()),
        signed_at(now + 320, body.into_bytes()),
        signed(form(&with("/api_app_id", json!("A2")))),
        signed(form(&with("/team/id", json!("T2")))),
        signed(form(&with("/team", Value::Null))),
        signed(guest),
        signed(form(&with("/user", json!({"id": "U7"})))),
    ] {
        let answer = served.post(request).await;
        assert_eq!(answer.0, 401, "{answer:?}");
    }
    assert_eq!(served.stored(), []);
}

#[tokio::test]
async fn a_hostile_form_is_refused_and_other_interactions_decide_nothing() {
    let served = Served::start(Stream::Stores).await;
    let good = form(&click(Choice::Approve));
    let deep = format!("payload={}", "%5B".repeat(100_000));
    let mut two = click(Choice::Approve);
    let second = click(Choice::Deny)["actions"][0].clone();
    two["actions"].as_array_mut().unwrap().push(second);
    let half = format!("{}.3", "ab".repeat(16));
    for body in [
        b"".to_vec(),
        b"payload=".to_vec(),
        b"payload=%FF%00".to_vec(),
        b"{\"type\":\"block_actions\"}".to_vec(),
        vec![0xff; 4_096],
        format!("{good}&{good}").into_bytes(),
        deep.into_bytes(),
        form(&json!([])).into_bytes(),
        form(&json!({"type": 7})).into_bytes(),
        form(&two).into_bytes(),
        form(&with("/user", Value::Null)).into_bytes(),
        form(&with("/user/id", json!("U7 *"))).into_bytes(),
        form(&with("/user/id", json!("U".repeat(41)))).into_bytes(),
        form(&with("/actions/0/value", json!(half))).into_bytes(),
        form(&with("/actions/0/value", Value::Null)).into_bytes(),
        form(&with("/actions/0/block_id", json!("tarsy:7:42"))).into_bytes(),
        form(&with("/actions/0/action_ts", json!(""))).into_bytes(),
    ] {
        let shown = String::from_utf8_lossy(&body)
            .chars()
            .take(80)
            .collect::<String>();
        let answer = served.post(signed(body)).await;
        assert_eq!(answer.0, 400, "{shown}: {answer:?}");
    }
    assert_eq!(served.announce(600_000).await, "HTTP/1.1 413");
    for body in [
        form(&with("/type", json!("view_submission"))),
        form(&with("/actions", json!([]))),
        form(&with("/actions/0/action_id", json!("open_page"))),
    ] {
        assert_eq!(served.post(signed(body)).await, (200, String::new()));
    }
    assert_eq!(served.stored(), []);
}

#[tokio::test]
async fn an_address_for_answers_that_is_not_of_slack_is_left_out() {
    let served = Served::start(Stream::Stores).await;
    let long = format!("{ANSWERS}{}", "a".repeat(500));
    for url in [
        "http://hooks.slack.com/actions/T1",
        "https://hooks.slack.com.example.com/actions/T1",
        "https://hooks.slack.com/services/T1",
        "https://x@hooks.slack.com/actions/T1",
        &long,
        "",
    ] {
        served
            .post(signed(form(&with("/response_url", json!(url)))))
            .await;
    }
    let decisions = served.decisions();
    assert_eq!(decisions.len(), 6);
    let left: Vec<_> = decisions
        .iter()
        .filter_map(|each| each.response_url.as_deref())
        .collect();
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_long_comment_is_cut_and_one_of_another_request_is_not_taken() {
    let served = Served::start(Stream::Stores).await;
    let input = |text: &str| json!({"comment": {"value": text}});
    let mut long = click(Choice::Deny);
    long["state"]["values"] = json!({button().comment_block_id(): input(&"é".repeat(3_000))});
    let mut other = click(Choice::Deny);
    other["state"]["values"] = json!({format!("tarsy-comment:{SESSION}:43"): input("no")});
    for click in [&long, &other, &with("/state", Value::Null)] {
        assert_eq!(served.post(signed(form(click))).await.0, 200);
    }
    let decisions = served.decisions();
    let comments: Vec<_> = decisions.into_iter().map(|each| each.comment).collect();
    assert_eq!(comments, [Some("é".repeat(2_000)), None, None]);
}

#[tokio::test]
async fn a_person_sees_an_error_while_the_stream_does_not_store_the_decision() {
    let full = Served::start(Stream::IsFull).await;
    assert_eq!(full.post(signed(form(&click(Choice::Deny)))).await.0, 503);
    let silent = Served::start(Stream::IsSilent).await;
    let began = tokio::time::Instant::now();
    assert_eq!(silent.post(signed(form(&click(Choice::Deny)))).await.0, 503);
    assert!(began.elapsed() < Duration::from_secs(3), "{began:?}");
}

#[tokio::test]
async fn only_the_paths_of_slack_are_served() {
    let served = Served::start(Stream::Stores).await;
    let client = tarsy_http::outgoing::builder().build().unwrap();
    for path in [
        "/",
        "/alert",
        "/slack",
        "/slack/actions/",
        "/slack/events/",
        "/hooks/grafana",
    ] {
        let url = format!("{}{path}", served.url);
        assert_eq!(
            client.post(url).send().await.unwrap().status(),
            404,
            "{path}"
        );
    }
    for path in ["/slack/actions", "/slack/events"] {
        let url = format!("{}{path}", served.url);
        assert_eq!(
            client.get(url).send().await.unwrap().status(),
            405,
            "{path}"
        );
    }
}
