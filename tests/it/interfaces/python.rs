//! A producer and readers in another language: Python's `nats-py`, in `tests/fixtures/python/client.py`.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::system::TestSystem;

const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// The error code of "maximum bytes exceeded".
const QUEUE_IS_FULL: u64 = 10077;

/// The interpreter that has `nats-py`; `None` after printing why the test is skipped.
fn interpreter(test: &str) -> Option<String> {
    let python = std::env::var("TARSY_TEST_PYTHON")
        .ok()
        .filter(|python| !python.is_empty());
    if python.is_none() {
        // This bypasses the test harness, which captures the output of tests.
        let why = "no Python with nats-py: TARSY_TEST_PYTHON is not set, ./dev test sets it";
        std::io::stderr()
            .write_all(format!("\nSKIPPED: python::{test}: {why}\n\n").as_bytes())
            .unwrap();
    }
    python
}

/// One run of the script.
struct Client {
    _child: Child,
    out: Lines<BufReader<ChildStdout>>,
}

impl Client {
    async fn start(python: &str, args: &[&str], input: &[u8]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/python/client.py");
        let mut command = Command::new(python);
        command
            .arg(script)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        // The input is closed at the end of the statement.
        child.stdin.take().unwrap().write_all(input).await.unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, out }
    }

    /// The next value; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(REPLY_TIMEOUT, self.out.next_line())
            .await
            .expect("the script printed no line in time")
            .unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }
}

/// The first value that a run of the script prints.
async fn ask(python: &str, args: &[&str], input: &[u8]) -> Value {
    Client::start(python, args, input)
        .await
        .next()
        .await
        .expect("an answer")
}

/// A reader of one timeline.
struct Reader {
    client: Client,
    events: Vec<Value>,
    deltas: usize,
}

impl Reader {
    /// Returns when the reader is subscribed.
    async fn join(python: &str, url: &str, session: &str) -> Self {
        let mut client = Client::start(python, &["read", url, session], b"").await;
        assert_eq!(client.next().await, Some(json!("ready")));
        Self {
            client,
            events: Vec::new(),
            deltas: 0,
        }
    }

    /// Reads one item; returns `false` at the end.
    async fn step(&mut self) -> bool {
        match self.client.next().await {
            Some(event @ Value::Array(_)) => self.events.push(event),
            Some(_) => self.deltas += 1,
            None => return false,
        }
        true
    }

    /// All events, each `[session_seq, event_type, content]`.
    async fn all(mut self) -> Vec<Value> {
        while self.step().await {}
        self.events
    }
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/alerts")
            .join(name),
    )
    .unwrap()
}

fn assert_complete(events: &[Value]) {
    let numbers: Vec<&Value> = events.iter().map(|event| &event[0]).collect();
    assert_eq!(
        numbers,
        (1..=events.len())
            .map(|number| json!(number))
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(events.last().unwrap()[1], "session_completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_with_nats_py_that_join_early_midway_or_late_see_the_same_timeline() {
    let Some(python) = interpreter("readers_with_nats_py") else {
        return;
    };
    let mut system = TestSystem::start(&["answer-0-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let url = system.nats.url();
    let id = ask(&python, &["id"], b"").await;
    let session = id.as_str().unwrap();

    let mut early = Reader::join(&python, &url, session).await;
    let alert = fixture("01_alertmanager_v4_firing_truncated.json");
    let ack = ask(
        &python,
        &["publish", &url, "tarsy.alerts.normal.python", session],
        &alert,
    )
    .await;
    assert_eq!(ack, json!({"stream": "TARSY_ALERTS", "seq": 1}));
    let middle = system.gates.next().await;
    while early.deltas == 0 {
        assert!(
            early.step().await,
            "half of the answer was written, and the reader got no delta"
        );
    }

    let mut joined = Reader::join(&python, &url, session).await;
    assert!(joined.step().await, "the timeline has earlier events");
    system.gates.open_all();
    middle.open().await;
    let early = early.all().await;
    assert_complete(&early);
    assert_eq!(joined.all().await, early, "joined in the middle");
    assert_eq!(
        Reader::join(&python, &url, session).await.all().await,
        early,
        "joined at the end"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_with_nats_py_is_answered_only_on_a_subject_of_questions() {
    let Some(python) = interpreter("a_question_with_nats_py") else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let (url, root) = (system.nats.url(), system.publish().await);
    system.follow(root).await.finish().await;
    for (subject, end) in [
        ("tarsy.questions.high.python", "session_completed"),
        ("tarsy.alerts.high.python", "session_failed"),
    ] {
        let id = ask(&python, &["id"], b"").await;
        let question = id.as_str().unwrap();
        let asked = ask(
            &python,
            &["ask", &url, subject, question, &root.to_string()],
            b"Is it over?",
        )
        .await;
        assert_eq!(asked["stream"], "TARSY_ALERTS", "{asked}");
        let events = Reader::join(&python, &url, question).await.all().await;
        assert_eq!(events.last().unwrap()[1], end, "{events:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_with_nats_py_needs_no_id_and_gets_an_error_when_the_queue_is_full() {
    let Some(python) = interpreter("a_producer_with_nats_py") else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let url = system.nats.url();
    let publish = ["publish", &url, "tarsy.alerts.normal.python"];
    let ack = ask(
        &python,
        &publish,
        &fixture("04_grafana_unified_firing.json"),
    )
    .await;
    assert_eq!(ack, json!({"stream": "TARSY_ALERTS", "seq": 1}));
    let found = async {
        loop {
            if let [session] = ask(&python, &["sessions", &url], b"")
                .await
                .as_array()
                .unwrap()
                .as_slice()
            {
                return session.as_str().unwrap().to_owned();
            }
        }
    };
    let session = tokio::time::timeout(REPLY_TIMEOUT, found)
        .await
        .expect("no timeline");
    assert_complete(&Reader::join(&python, &url, &session).await.all().await);

    let jetstream = async_nats::jetstream::new(async_nats::connect(&url).await.unwrap());
    let mut config = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    config.max_bytes = 1;
    jetstream.update_stream(config).await.unwrap();
    let refused = ask(&python, &publish, b"one too many").await;
    assert_eq!(refused["err_code"], QUEUE_IS_FULL, "{refused}");
}
