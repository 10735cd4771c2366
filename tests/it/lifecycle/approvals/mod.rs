//! Approvals in whole investigations: a session waits without a worker, a person decides at the command line, and the
//! call is sent once or not at all, whichever worker dies.

use serde_json::{Value, json};
use tarsy_bus::{ChannelKeys, NewAlert, NewPeopleMessage, Priority, SESSION_ID};
use tarsy_core::approvals::{PeopleSubject, Sender, Topic};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use crate::faults::survive::settled;
use crate::interfaces::commands::{Ran, run};
use crate::support::http::provider::{FakeProvider, Reply};
use crate::support::process::{Tarsy, metric_is};
use crate::support::system::{Setup, TestSystem, Timeline};
use crate::support::wait::eventually;

/// Selects the recording that restarts a deployment.
const MARK: &str = "RestartDrill";
const TOOL: &str = "restart_deployment";
/// A further key of the server `drill`, the last one before the further lines of `mcp_servers`.
const APPROVE: &str = "    approve: [restart_deployment]\n";
const PEOPLE: &str = "approvals:
  policies: {default: {approvers: [sre], channels: [cli]}}
  people: {ana: {cli: ana, groups: [sre]}}
";
/// The journal of a session whose call is about to be sent.
const STARTED: &str = "prompt prompt answer approval_requested approval_ended started";
/// The exit codes of a decision that is recorded, that does not count, and that no worker has recorded.
const RECORDED: i32 = 0;
const DOES_NOT_COUNT: i32 = 3;
const NOT_RECORDED: i32 = 75;

/// A recording that restarts a deployment and reports.
fn transcript() -> String {
    format!(
        "name: restart\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{{call: {{tool: drill.{TOOL}, arguments: {{namespace: checkout, deployment: checkout}}}}}}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    )
}

/// Publishes an alert; returns the id of its session.
async fn publish(system: &TestSystem) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// A session whose call waits for a person. No worker has it, and the queue is empty.
struct Waiting {
    system: TestSystem,
    worker: Tarsy,
    /// The address of the worker's metrics.
    metrics: String,
    session: SessionId,
    timeline: Timeline,
    /// The request, as `tarsy approvals` names it.
    request: String,
    /// The first digits of the call's hash.
    call: String,
}

impl Waiting {
    /// Starts a system whose gates in `watched` hold their arrivals. Its worker has one slot.
    async fn start(watched: &[&str]) -> Self {
        Self::start_with(watched, PEOPLE).await
    }

    /// The same with these sections of the file.
    async fn start_with(watched: &[&str], sections: &str) -> Self {
        let system = TestSystem::start_with(Setup {
            watched,
            slots: 1,
            servers: APPROVE,
            sections,
            transcript: Some(transcript()),
            ..Setup::default()
        })
        .await;
        Self::in_system(system).await
    }

    async fn in_system(system: TestSystem) -> Self {
        let (worker, metrics) = system.worker("w1").await;
        let session = publish(&system).await;
        let mut timeline = system.follow(session).await;
        timeline.until(EventType::SessionWaiting).await;
        system.queue_is_empty().await;
        let listed = run(&system, &["approvals", "list", "--json"]).await;
        let rows = listed.exits(0).json();
        let [row] = &*rows else {
            panic!("one call waits: {rows:#?}")
        };
        assert_eq!(
            (&row["session_id"], &row["tool"]),
            (&json!(session.to_string()), &json!(format!("drill.{TOOL}")))
        );
        let waiting = Self {
            request: format!("{session}:{}", row["event"]),
            call: row["call_sha256"].as_str().unwrap()[..8].to_owned(),
            system,
            worker,
            metrics,
            session,
            timeline,
        };
        waiting.assert_parked();
        waiting
    }

    /// Asserts that no worker has the session, that it waits, and that its call was not sent.
    #[track_caller]
    fn assert_parked(&self) {
        let is_parked =
            "status = 'running' AND lease_owner IS NULL AND lease_expires_at > clock_timestamp()";
        let sql = format!(
            "SELECT {is_parked} FROM alert_sessions WHERE session_id = '{}'",
            self.session.0
        );
        assert!(self.system.database.holds(&sql), "the session is parked");
        assert_eq!(self.sends(), 0);
    }

    /// Runs a command that decides about the call as ana.
    async fn decide(&self, verb: &str, rest: &[&str]) -> Ran {
        let request = self.request.as_str();
        let mut args = vec!["approvals", verb, request, "--as", "ana", "--json"];
        args.extend(rest);
        run(&self.system, &args).await
    }

    async fn approve(&self) -> Ran {
        self.decide("approve", &["--call", &self.call]).await
    }

    /// The number of times that the call was sent.
    fn sends(&self) -> u32 {
        let calls = self.system.tool_calls();
        let of_tool = calls.iter().filter(|(call, _)| call.starts_with(TOOL));
        of_tool.map(|(_, sends)| sends).sum()
    }

    /// The number of votes for which a condition holds.
    fn votes(&self, condition: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM approval_votes WHERE {condition}");
        self.system.database.number(&sql)
    }

    fn journal(&self) -> String {
        self.of_entries("kind", "true")
    }

    /// The result of the call, as the model gets it.
    fn result(&self) -> String {
        self.of_entries("content", "kind = 'tool_result'")
    }

    /// A column of the session's entries for which a condition holds, in order.
    fn of_entries(&self, column: &str, condition: &str) -> String {
        self.system.database.text(&format!(
            "SELECT coalesce(string_agg({column}, ' ' ORDER BY entry_no), '') FROM entries \
             WHERE session_id = '{}' AND {condition}",
            self.session.0
        ))
    }

    /// Follows the session to its end, which has an analysis.
    async fn completes(&mut self) {
        let end = self.timeline.finish().await;
        let seen = &self.timeline.seen;
        assert_eq!(end.event_type, EventType::SessionCompleted, "{seen:#?}");
        settled(&self.system, self.session).await;
        self.system.queue_is_empty().await;
        self.system.assert_invariants(self.session, seen).await;
        assert_eq!(
            of_people(seen),
            [
                "approval_requested",
                "session_waiting",
                "approval_decided",
                "approval_ended"
            ]
        );
    }

    /// Asserts that the call was sent once, because of one vote, and that the model got its result.
    fn assert_sent_once(&self) {
        assert_eq!(
            self.journal(),
            format!("{STARTED} tool_result answer ended")
        );
        assert_eq!((self.sends(), self.votes("refused IS NULL")), (1, 1));
        let result = self.result();
        assert!(
            result.contains("deployment.apps/checkout restarted"),
            "{result}"
        );
        assert_eq!(self.ended()["outcome"], "approved");
        assert_eq!(self.ended()["by"], json!(["ana"]));
    }

    /// The end of the request on the timeline.
    fn ended(&self) -> &Value {
        let mut seen = self.timeline.seen.iter();
        let ended = seen.find(|event| event.event_type == EventType::ApprovalEnded);
        &ended.expect("the request has an end").metadata
    }
}

/// The types of the events about people, in order.
fn of_people(seen: &[TimelineEvent]) -> Vec<&str> {
    let mut words: Vec<&str> = seen.iter().map(|event| event.event_type.as_str()).collect();
    words.retain(|word| word.starts_with("approval_") || *word == "session_waiting");
    words
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_without_slot_and_message_and_is_sent_once_after_an_approval() {
    let mut waiting = Waiting::start(&[]).await;
    metric_is(&waiting.metrics, "tarsy_sessions_parked_total", "", 1.0).await;
    metric_is(&waiting.metrics, "tarsy_sessions_running", "", 0.0).await;
    // The only slot of the only worker is free for another alert.
    let other = waiting.system.publish().await;
    let end = waiting.system.follow(other).await.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    waiting.assert_parked();

    let report = waiting.approve().await.exits(RECORDED).json();
    assert_eq!(
        (&report[0]["result"], &report[0]["refused"]),
        (&json!("recorded"), &Value::Null)
    );
    waiting.completes().await;
    waiting.assert_sent_once();
    // It is decided: a second approval is not even sent.
    let again = waiting.approve().await.exits(1);
    assert!(again.err.contains("nothing was sent"), "{again:?}");
    assert_eq!(waiting.votes("true"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_asks_anew_whatever_people_have_decided_before() {
    let mut waiting = Waiting::start(&[]).await;
    waiting.approve().await.exits(RECORDED);
    waiting.completes().await;
    waiting.assert_sent_once();

    let system = &waiting.system;
    let first = waiting.session.to_string();
    let rerun = run(system, &["sessions", "rerun", &first, "--json"]).await;
    let rerun = rerun.exits(0).json().remove(0);
    let again = SessionId::parse(rerun["session_id"].as_str().unwrap()).unwrap();
    let mut timeline = system.follow(again).await;
    timeline.until(EventType::SessionWaiting).await;
    let listed = run(system, &["approvals", "list", "--json"]).await;
    let rows = listed.exits(0).json();
    let [row] = &*rows else {
        panic!("the call of the rerun waits: {rows:#?}")
    };
    assert_eq!(row["session_id"], again.to_string());
    let hash = row["call_sha256"].as_str().unwrap();
    assert!(hash.starts_with(&waiting.call), "it is the same call");
    // The approval of the first session does not count for it.
    assert_eq!((waiting.sends(), waiting.votes("true")), (1, 1));

    let request = format!("{again}:{}", row["event"]);
    let deny = ["approvals", "deny", &request, "--as", "ana"];
    run(system, &deny).await.exits(RECORDED);
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    assert_eq!(waiting.sends(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outside_of_drills_refuses_what_people_of_drills_decide() {
    let mut waiting = Waiting::start(&[]).await;
    let database = &waiting.system.database;
    let call = database.text("SELECT encode(call_sha256, 'hex') FROM approvals");
    let message = NewPeopleMessage {
        subject: PeopleSubject {
            topic: Topic::Decision(waiting.session),
            sender: Sender::Drill,
        },
        id: Uuid::new_v4(),
        body: serde_json::to_vec(
            &json!({"v": 1, "request": waiting.request.replace(':', "/"),
            "call": call, "seen_updates": 0, "verdict": "approve", "by": {"name": "ana"}}),
        )
        .unwrap(),
    };
    let nats = waiting.system.connect().await;
    let unsigned = ChannelKeys::default();
    nats.publish_of_person(&message, &unsigned).await.unwrap();
    eventually("the vote of the drill is recorded", async || {
        waiting.votes("channel = 'drill'") == 1
    })
    .await;
    assert_eq!(waiting.votes("refused = 'wrong_channel'"), 1);
    waiting.assert_parked();

    waiting.approve().await.exits(RECORDED);
    waiting.completes().await;
    waiting.assert_sent_once();
}

/// The answer of a model with these parts.
fn answer(parts: &Value) -> Reply {
    let usage =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    Reply::events(&[json!({"candidates": [candidate], "usageMetadata": usage})])
}

fn calls(tool: &str, arguments: &Value) -> Reply {
    let name = format!("drill__{tool}");
    answer(&json!([{"functionCall": {"name": name, "args": arguments}}]))
}

/// A system whose agent asks this provider.
async fn start_with_provider(provider: &FakeProvider) -> TestSystem {
    let sections = format!(
        "{PEOPLE}llm_providers:\n  fake: {{provider: google, model: gemini-2.5-pro, api_key_env: FAKE_KEY, base_url: \
         '{}'}}\ndefaults: {{llm_provider: fake}}\n",
        provider.url()
    );
    let mut system = TestSystem::start_with(Setup {
        servers: APPROVE,
        sections: &sections,
        ..Setup::default()
    })
    .await;
    let options = [
        "--allow-key-env",
        "FAKE_KEY",
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    system
        .replace_llm_service(&options, &[("FAKE_KEY", "key-of-the-fake")])
        .await;
    system
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_call_is_not_sent_and_the_model_reads_the_words_of_the_person() {
    const COMMENT: &str = "the disk is replaced at noon";
    let provider = FakeProvider::start(vec![
        calls(
            "describe_pod",
            &json!({"namespace": "checkout", "pod": "checkout-7d9f8b6c5-x2x9p"}),
        ),
        calls(
            TOOL,
            &json!({"namespace": "checkout", "deployment": "checkout"}),
        ),
        answer(&json!([{"text": "Cause: the limit is too low [drill.describe_pod]"}])),
    ])
    .await;
    let mut waiting = Waiting::in_system(start_with_provider(&provider).await).await;
    assert_eq!(provider.requests().len(), 2);

    let denied = waiting.decide("deny", &["--comment", COMMENT]).await;
    assert_eq!(denied.exits(RECORDED).json()[0]["result"], "recorded");
    waiting.completes().await;
    assert_eq!(waiting.sends(), 0);
    assert_eq!(
        waiting.journal(),
        "prompt prompt answer tool_result answer approval_requested approval_ended tool_result after_wait answer ended"
    );
    let ended = waiting.ended();
    assert_eq!(
        (&ended["outcome"], &ended["comment"]),
        (&json!("denied"), &json!(COMMENT))
    );

    let requests = provider.requests();
    let [_, before, after] = &*requests else {
        panic!("{requests:#?}")
    };
    for words in [
        "not sent: a person denied this call.",
        "A person (ana, cli, ",
        COMMENT,
    ] {
        assert!(after.body.contains(words), "{words}: {}", after.body);
        assert!(!before.body.contains(words), "{words}: {}", before.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_without_any_worker_counts_when_the_next_one_starts() {
    let mut waiting = Waiting::start(&[]).await;
    waiting.worker.kill().await;
    let report = waiting.approve().await.exits(NOT_RECORDED).json();
    assert_eq!(report[0]["result"], "sent");
    assert_eq!(waiting.votes("true"), 0);
    waiting.assert_parked();

    let _next = waiting.system.worker("w2").await;
    waiting.completes().await;
    waiting.assert_sent_once();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_people_in_its_file_counts_decisions_that_none_records() {
    let mut waiting = Waiting::start(&[]).await;
    waiting.worker.kill().await;
    waiting.approve().await.exits(NOT_RECORDED);
    let file = waiting.system.file("tarsy.yaml");
    let with_people = std::fs::read_to_string(&file).unwrap();
    let without = with_people.replace(PEOPLE, "").replace(APPROVE, "");
    assert_eq!(
        with_people.len() - without.len(),
        PEOPLE.len() + APPROVE.len()
    );
    std::fs::write(&file, without).unwrap();

    let (_next, metrics) = waiting.system.worker("w2").await;
    metric_is(&metrics, "tarsy_decisions_pending", "", 1.0).await;
    metric_is(&metrics, "tarsy_approvals_open", "", 1.0).await;
    assert_eq!(waiting.votes("true"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_request_wakes_its_session_which_is_no_lost_message_and_gauges_show_it() {
    let mut waiting = Waiting::start(&[]).await;
    metric_is(&waiting.metrics, "tarsy_approvals_open", "", 1.0).await;
    metric_is(&waiting.metrics, "tarsy_sessions_waiting", "", 1.0).await;
    // Four hours, in the past; the deadline does not count meanwhile.
    waiting.system.database.execute(
        "UPDATE approvals SET asked_at = asked_at - i, expires_at = expires_at - i FROM (SELECT interval '4 h' AS i) t; \
         UPDATE alert_sessions SET lease_expires_at = lease_expires_at - i, deadline_at = deadline_at - i \
         FROM (SELECT interval '4 h' AS i) t",
    );
    let end = waiting.timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    assert_eq!(waiting.ended()["outcome"], "expired");
    assert_eq!(waiting.sends(), 0);
    let words = "session woken: a request for an approval has expired";
    let line = waiting.worker.logged(words).await;
    assert!(line.contains("INFO"), "{line}");
    assert!(!waiting.worker.log().contains("lost message"));
    let counter = "tarsy_sessions_woken_total";
    for (cause, value) in [("expiry", 1.0), ("decision", 0.0), ("resolved", 0.0)] {
        let label = format!("cause=\"{cause}\"");
        metric_is(&waiting.metrics, counter, &label, value).await;
    }
    let orphans = "found=\"requeued\"";
    metric_is(&waiting.metrics, "tarsy_sweeps_total", orphans, 0.0).await;
    metric_is(&waiting.metrics, "tarsy_approvals_open", "", 0.0).await;
    metric_is(&waiting.metrics, "tarsy_approval_oldest_ratio", "", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_request_has_the_address_of_its_page_where_pages_are_configured() {
    let pages = "web: {public_url: 'https://tarsy.example.com/'}\n";
    let waiting = Waiting::start_with(&[], &format!("{PEOPLE}{pages}")).await;
    let page = waiting.request.replace(':', "/");
    let url = format!("https://tarsy.example.com/approvals/{page}");
    let list = ["approvals", "list"];
    let listed = run(&waiting.system, &list).await.exits(0);
    assert!(
        listed.out.contains(&format!("  Web: {url}\n")),
        "{listed:?}"
    );
    let listed = run(&waiting.system, &["approvals", "list", "--json"]).await;
    assert_eq!(listed.exits(0).json()[0]["url"], url);
    let show = ["approvals", "show", &waiting.request];
    let shown = run(&waiting.system, &show).await.exits(0);
    assert!(shown.out.contains(&format!("Web: {url}\n")), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_in_a_freeze_does_not_count_and_the_next_one_after_it_does() {
    let mut waiting = Waiting::start(&[]).await;
    let system = &waiting.system;
    let freeze = [
        "approvals",
        "freeze",
        "--reason",
        "release weekend",
        "--as",
        "ana",
    ];
    run(system, &freeze).await.exits(RECORDED);
    let listed = run(system, &["approvals", "list"]).await.exits(0);
    assert!(
        listed.err.contains("all changes are frozen by ana"),
        "{listed:?}"
    );

    let report = waiting.approve().await.exits(DOES_NOT_COUNT).json();
    assert_eq!(
        (&report[0]["result"], &report[0]["refused"]),
        (&json!("refused"), &json!("frozen"))
    );
    waiting.assert_parked();
    let unfreeze = ["approvals", "unfreeze", "--as", "ana"];
    run(system, &unfreeze).await.exits(RECORDED);
    // The end of the freeze revives no vote.
    waiting.assert_parked();

    waiting.approve().await.exits(RECORDED);
    waiting.completes().await;
    waiting.assert_sent_once();
    assert_eq!(waiting.votes("refused = 'frozen'"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_call_of_a_killed_worker_is_lost_and_never_sent_again() {
    for place in ["start", "end"] {
        let gate = format!("tool-{TOOL}-{place}");
        let mut waiting = Waiting::start(&[&gate]).await;
        waiting.approve().await.exits(RECORDED);
        // The tool server has written the call down.
        let held = waiting.system.gates.next().await;
        assert_eq!(held.gate, gate);
        assert_eq!((waiting.journal().as_str(), waiting.sends()), (STARTED, 1));
        waiting.worker.kill().await;
        waiting.system.gates.open_all();
        drop(held);

        let _next = waiting.system.worker("w2").await;
        waiting.completes().await;
        assert_eq!(
            waiting.journal(),
            format!("{STARTED} lost tool_result answer ended"),
            "{place}"
        );
        let result = waiting.result();
        assert!(result.contains("Its outcome is unknown"), "{result}");
        assert_eq!((waiting.sends(), waiting.votes("true")), (1, 1));
        assert_eq!(waiting.ended()["outcome"], "approved");
        let results: Vec<&TimelineEvent> = waiting
            .timeline
            .seen
            .iter()
            .filter(|event| event.event_type == EventType::ToolResult)
            .collect();
        assert_eq!(results.len(), 1, "{results:#?}");
        assert_eq!(results[0].metadata["is_error"], true);
    }
}
