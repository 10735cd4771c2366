//! Who may come in, what is an alert, and what is answered.

use std::collections::BTreeSet;

use serde_json::json;
use tarsy::investigation::ids::SessionId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Door, fixture};
use crate::support::http::{self, head};
use crate::support::process::{Tarsy, metric_is};

type Headers<'a> = &'a [(&'a str, &'a str)];
/// Method, path, headers and body; the status and a word of the answer.
type Refused<'a> = (&'a str, &'a str, Headers<'a>, &'a [u8], u16, &'a str);

const PARENT: &str = "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa";
const LIMIT: usize = 512 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_is_answered_with_where_it_is_kept_byte_for_byte() {
    let door = Door::open(&[]).await;
    let own = Uuid::now_v7().to_string();
    let (firing, grafana) =
        (fixture("01_alertmanager_v4_firing_truncated.json"), fixture("04_grafana_unified_firing.json"));
    let cases: [(&str, Headers<'_>, &[u8], &str); 6] = [
        ("/alertmanager", &[], &firing, "tarsy.alerts.critical.alertmanager"),
        ("/alertmanager?priority=low", &[], &firing, "tarsy.alerts.low.alertmanager"),
        ("/grafana", &[], &grafana, "tarsy.alerts.normal.grafana"),
        ("/alert", &[("X-Other", &own)], b"disk 94 % full\r\n", "tarsy.alerts.normal.http"),
        ("/alert?x=y&priority=high", &[], b"{\"a\": 1}", "tarsy.alerts.high.http"),
        ("/alert", &[], br#"{"alert":"x","severity":"page"}"#, "tarsy.alerts.critical.http"),
    ];
    for (path, headers, body, subject) in cases {
        let answer = door.post(path, headers, body).await;
        let message = door.stored(&answer).await;
        let id = SessionId::parse(answer.json()["session_id"].as_str().unwrap()).expect("a UUIDv7").to_string();
        let sequence = message.sequence;
        assert_eq!(answer.json(), json!({"session_id": id, "subject": subject, "stream_sequence": sequence}));
        assert_eq!((message.subject.as_str(), message.payload.as_ref()), (subject, body));
        assert_eq!(message.headers.get("Tarsy-Session-Id").unwrap().as_str(), id);
        assert_ne!(id, own);
    }
    let headers = [
        ("TARSY-TITLE", "größer"),
        ("Tarsy-Fingerprint", "f1"),
        ("traceparent", "00-1-2-01"),
        ("Nats-Msg-Id", "m"),
        ("Nats-Expected-Stream", "OTHER"),
        ("X-Other", "o"),
        ("tarsy-chain", "restarts"),
        ("Tarsy-Force", "true"),
        ("Tarsy-Session-Id", &own),
        ("Tarsy-Retry-Of", &own),
    ];
    let answer = door.post("/alert", &headers, b"with headers").await;
    let left_out = json!(["Tarsy-Session-Id", "Tarsy-Force", "Tarsy-Chain", "Tarsy-Retry-Of"]);
    assert_eq!(answer.json()["ignored_headers"], left_out, "the client learns what it sent in vain");
    assert_ne!(answer.json()["session_id"], own);
    let message = door.stored(&answer).await;
    let kept: BTreeSet<String> = message.headers.iter().map(|(name, _)| name.to_string()).collect();
    let expected = ["Tarsy-Fingerprint", "Tarsy-Session-Id", "Tarsy-Title", "traceparent"];
    assert_eq!(kept, expected.map(str::to_owned).into(), "only what is on the list");
    assert_eq!(message.headers.get("Tarsy-Title").unwrap().as_str(), "größer");
    metric_is(&door.metrics, "tarsy_receive_requests_total", "path=\"alert\",code=\"2xx\"", 4.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_says_more_than_what_the_alert_is_goes_along_where_it_is_listed() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tarsy.yaml");
    std::fs::write(&config, "receive: {headers: [Tarsy-Session-Id, Tarsy-Chain]}\n").unwrap();
    let door = Door::open(&[("TARSY_CONFIG", config.to_str().unwrap())]).await;
    let own = Uuid::now_v7().to_string();
    let headers = [("tarsy-session-id", own.as_str()), ("Tarsy-Chain", "restarts"), ("Tarsy-Title", "t")];
    let answer = door.post("/alert", &headers, b"a").await;
    assert_eq!(
        (&answer.json()["session_id"], &answer.json()["ignored_headers"]),
        (&json!(own), &json!(["Tarsy-Title"]))
    );
    let message = door.stored(&answer).await;
    let kept: BTreeSet<String> = message.headers.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(kept, ["Tarsy-Chain", "Tarsy-Session-Id"].map(str::to_owned).into());
    let answer = door.post("/alert", &[("Tarsy-Session-Id", "42")], b"b").await;
    assert_ne!(answer.json()["session_id"], "42", "what is no id is replaced by one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_not_come_in_is_told_why_and_nothing_is_kept() {
    let door = Door::open(&[("TARSY_RECEIVE_TOKEN", "s3cret-of-the-door")]).await;
    let shown = ("authorization", "Bearer s3cret-of-the-door");
    let cases: [Refused<'_>; 17] = [
        ("POST", "/alert", &[], b"a", 401, "bearer token"),
        ("POST", "/alert", &[("authorization", "Bearer s3cret")], b"a", 401, "bearer token"),
        ("POST", "/alert", &[("authorization", "Basic s3cret-of-the-door")], b"a", 401, "bearer token"),
        ("POST", "/alert", &[shown, ("tarsy-parent-id", PARENT)], b"why?", 400, "an alert and no question"),
        ("GET", "/alert", &[shown], b"", 405, "sent with POST"),
        ("PUT", "/alertmanager", &[shown], b"{}", 405, "sent with POST"),
        ("POST", "/", &[shown], b"a", 404, "/alertmanager"),
        ("POST", "/alert/", &[shown], b"a", 404, "/alertmanager"),
        ("GET", "/metrics", &[shown], b"", 404, "/alertmanager"),
        ("GET", "/healthz", &[shown], b"", 404, "/alertmanager"),
        ("POST", "/alert", &[shown], b"", 400, "no content"),
        ("POST", "/alert", &[shown], b" \n{}", 400, "no content"),
        ("POST", "/alert", &[shown], &[0xff, 0xfe], 400, "UTF-8"),
        ("POST", "/alertmanager", &[shown], b"{\"status\": \"firing\"}", 400, "no webhook"),
        ("POST", "/grafana", &[shown], b"some text", 400, "no webhook"),
        ("POST", "/alertmanager", &[shown], b"{\"alerts\": []}", 400, "no content"),
        ("POST", "/alert?priority=urgent", &[shown], b"a", 400, "critical, high, normal, low"),
    ];
    for (method, path, headers, body, status, word) in cases {
        let request = [head(method, path, headers, Some(body.len())), body.to_vec()].concat();
        let answer = http::send(&door.address, &request).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(answer.json()["error"].as_str().unwrap().contains(word), "{method} {path}: {answer:?}");
        assert_eq!(answer.header("allow"), (status == 405).then_some("POST"));
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
    }
    assert_eq!(door.stream().await.info().await.unwrap().state.last_sequence, 0, "nothing was published");
    assert_eq!(door.post("/alert", &[shown], b"a").await.status, 202);
    let all = door.process.log();
    assert!(!all.contains("s3cret"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_is_refused_without_being_read() {
    let door = Door::open(&[]).await;
    // Nothing of the body is sent: the answer comes from its length alone.
    let answer = http::send(&door.address, &head("POST", "/alert", &[], Some(LIMIT + 1))).await;
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    let mut chunked = head("POST", "/alert", &[("transfer-encoding", "chunked")], None);
    chunked.extend(format!("{:x}\r\n", LIMIT + 1).bytes().chain(vec![b'x'; LIMIT + 1]));
    assert_eq!(http::send(&door.address, &chunked).await.status, 413);
    assert_eq!(door.post("/alert", &[], &vec![b'x'; LIMIT]).await.status, 202, "what just fits is taken");
    metric_is(&door.metrics, "tarsy_receive_requests_total", "code=\"4xx\"", 2.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_alerts_at_once_are_all_kept_under_ids_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tarsy.yaml");
    std::fs::write(&config, "receive: {connections_per_address: 200}\n").unwrap();
    let door = Door::open(&[("TARSY_CONFIG", config.to_str().unwrap())]).await;
    let mut posts = JoinSet::new();
    for number in 0..200 {
        let address = door.address.clone();
        posts.spawn(async move { http::post(&address, "/alert", &[], format!("alert {number}").as_bytes()).await });
    }
    let answers = posts.join_all().await;
    let of = |key: &str| -> BTreeSet<String> {
        answers.iter().inspect(|answer| assert_eq!(answer.status, 202)).map(|a| a.json()[key].to_string()).collect()
    };
    assert_eq!((of("session_id").len(), of("stream_sequence").len()), (200, 200));
    let stream = door.stream().await;
    let mut bodies = BTreeSet::new();
    for sequence in 1..=200 {
        bodies.insert(String::from_utf8(stream.get_raw_message(sequence).await.unwrap().payload.to_vec()).unwrap());
    }
    assert_eq!(bodies, (0..200).map(|number| format!("alert {number}")).collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_door_that_is_told_to_stop_finishes_what_it_has_begun() {
    let mut door = Door::open(&[]).await;
    let mut open = TcpStream::connect(&door.address).await.unwrap();
    open.write_all(&head("POST", "/alert", &[("expect", "100-continue")], Some(9))).await.unwrap();
    let mut line = [0; 25];
    open.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n", "its body is being read");
    door.process.terminate();
    door.is_ready(503).await;
    let closed = async {
        while TcpStream::connect(&door.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::PATIENCE, closed).await.expect("the door stays open");
    open.write_all(b"last word").await.unwrap();
    let answer = http::read(&mut open).await.unwrap();
    assert_eq!(door.stored(&answer).await.payload.as_ref(), b"last word");
    assert_eq!(door.process.finished().await.0, 0, "{}", door.process.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_nobody_but_this_machine_can_come_in() {
    let directory = tempfile::tempdir().unwrap();
    let (file, blank) = (directory.path().join("token"), directory.path().join("blank"));
    std::fs::write(&file, "from-a-file\n").unwrap();
    std::fs::write(&blank, " \n").unwrap();
    let (file, blank) = (file.to_str().unwrap(), blank.to_str().unwrap());
    let everywhere = ["receive", "--listen", "0.0.0.0:0"];
    let cases: [(Headers<'_>, &str); 5] = [
        (&[], "can be reached from other machines"),
        (&[("TARSY_RECEIVE_TOKEN", "")], "TARSY_RECEIVE_TOKEN"),
        (&[("TARSY_RECEIVE_TOKEN", "with a space")], "visible ASCII"),
        (&[("TARSY_RECEIVE_TOKEN_FILE", blank)], "TARSY_RECEIVE_TOKEN_FILE"),
        (&[("TARSY_RECEIVE_TOKEN", "a"), ("TARSY_RECEIVE_TOKEN_FILE", file)], "one of them"),
    ];
    for (env, word) in cases {
        let mut receive = Tarsy::spawn("receive", &everywhere, env);
        assert_eq!(receive.finished().await.0, 78, "{env:?}");
        assert!(receive.log().contains(word) && !receive.log().contains("with a space"), "{env:?}: {}", receive.log());
    }
    let door = Door::open(&[("TARSY_RECEIVE_TOKEN_FILE", file)]).await;
    assert_eq!(door.post("/alert", &[], b"a").await.status, 401);
    assert_eq!(door.post("/alert", &[("authorization", "bearer from-a-file")], b"a").await.status, 202);
}
