//! Times from a vote, when the stream has it, to the line of the tool server: of a session that waits without a worker,
//! of one in whose stage another agent works, and of one whose recorder dies with the vote. `TARSY_VOTES` sets the
//! number of votes; the suite measures few, `./dev prove` more, and only there a recorder dies.

use std::time::{Duration, Instant};

use serde_json::json;
use tarsy_bus::{ChannelKeys, Nats, NewAlert, NewPeopleMessage, Priority, SESSION_ID};
use tarsy_core::approvals::{
    CallHash, Choice, DecisionMessage, MESSAGE_FORM, PeopleSubject, RequestId, Sender, Topic,
};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use crate::support::figures::{Figures, by_depth, is_proof};
use crate::support::system::{Setup, TestSystem};

const MARK: &str = "VoteTimes";
const TOOL: &str = "restart_deployment";
const APPROVE: &str = "    approve: [restart_deployment]\n";
const SECTIONS: &str = "approvals:
  policies: {default: {approvers: [sre], channels: [cli]}}
  people: {ana: {cli: ana, groups: [sre]}}
agents: {waits: {}, works: {}}
agent_chains:
  alone: {default: true, stages: [{name: look, agents: [{name: waits}]}]}
  pair: {stages: [{name: look, agents: [{name: waits}, {name: works}]}]}
";
/// The gate that holds the agent that works.
const WORKS: &str = "works";
const LEASE: Duration = Duration::from_secs(6);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// The longest times, in the proof: see the design of approvals.
const PARKED_WITHIN: Duration = Duration::from_secs(2);
const RECORDER_DIED_WITHIN: Duration = Duration::from_secs(45);
/// An execution that waits looks again a third of a lease later at the latest; the rest is its sending.
const IN_STAGE_WITHIN: Duration = Duration::from_secs(2 + 2);
/// The time after which a vote without a line is a fault.
const TIMEOUT: Duration = Duration::from_secs(120);

fn recordings() -> [String; 3] {
    let of_agent = |agent: &str, answers: &str| {
        format!("name: {agent}\nmatch: {MARK}\nagent: {agent}\nanswers:\n{answers}")
    };
    let call = format!(
        "  - chunks: [{{call: {{tool: drill.{TOOL}, arguments: {{namespace: checkout, deployment: checkout}}}}}}]\n"
    );
    [
        of_agent(
            "waits",
            &format!("{call}  - chunks: [text: 'Cause: a test.']\n"),
        ),
        of_agent(
            "works",
            &format!("  - chunks: [gate: {WORKS}, text: 'Cause: a test.']\n"),
        ),
        of_agent("synthesis", "  - chunks: [text: 'Cause: a test.']\n"),
    ]
}

struct Bench {
    system: TestSystem,
    nats: Nats,
}

impl Bench {
    async fn start() -> Self {
        let recordings = recordings();
        let system = TestSystem::start_with(Setup {
            watched: &[WORKS],
            lease: LEASE,
            slots: 8,
            servers: APPROVE,
            sections: SECTIONS,
            transcripts: &recordings.each_ref().map(String::as_str),
            ..Setup::default()
        })
        .await;
        let nats = system.connect().await;
        Self { system, nats }
    }

    /// Publishes an alert for a chain; returns when its call waits, or the whole session.
    async fn waits(&self, chain: &str, until: EventType) -> SessionId {
        let session = SessionId(Uuid::now_v7());
        let headers = json!({SESSION_ID: session.to_string(), "Tarsy-Chain": chain});
        let alert = NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body: format!("{MARK} {session}").into(),
            headers,
        };
        self.nats.publish_alert(alert).await.unwrap();
        self.system.follow(session).await.until(until).await;
        session
    }

    /// Publishes an approval; returns when the stream has it.
    async fn approve(&self, session: SessionId) -> Instant {
        let of_session = |column: &str| {
            let sql = format!(
                "SELECT {column} FROM approvals WHERE session_id = '{}'",
                session.0
            );
            self.system.database.text(&sql)
        };
        let event: u32 = of_session("event_seq::text").parse().unwrap();
        let body = DecisionMessage {
            v: MESSAGE_FORM,
            request: RequestId { session, event }.to_string(),
            call: CallHash::parse(&of_session("encode(call_sha256, 'hex')")).unwrap(),
            seen_updates: 0,
            verdict: Choice::Approve,
            comment: None,
            by: None,
            from: None,
            response_url: None,
        };
        let message = NewPeopleMessage {
            subject: PeopleSubject {
                topic: Topic::Decision(session),
                sender: Sender::cli("ana").unwrap(),
            },
            id: Uuid::now_v7(),
            body: serde_json::to_vec(&body).unwrap(),
        };
        let keys = ChannelKeys::default();
        self.nats.publish_of_person(&message, &keys).await.unwrap();
        Instant::now()
    }

    /// The calls that the tool server has written down.
    fn sends(&self) -> usize {
        let text = std::fs::read_to_string(self.system.file("tool_calls")).unwrap_or_default();
        text.lines().filter(|line| line.contains(TOOL)).count()
    }

    /// The time until the tool server has one call more than these.
    async fn sent(&self, before: usize, voted: Instant) -> Duration {
        while self.sends() == before {
            assert!(voted.elapsed() < TIMEOUT, "an approved call is not sent");
            tokio::time::sleep(BETWEEN_LOOKS).await; // pacing of looks
        }
        voted.elapsed()
    }

    async fn times(&self, votes: usize, chain: &str, until: &EventType) -> Figures {
        let mut times = Vec::new();
        for _ in 0..votes {
            let session = self.waits(chain, until.clone()).await;
            let before = self.sends();
            let voted = self.approve(session).await;
            times.push(self.sent(before, voted).await);
        }
        times.into_iter().collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_call_is_sent_soon_whether_its_session_waits_or_runs() {
    let votes = by_depth("TARSY_VOTES", 2, 50);
    let bench = Bench::start().await;
    let (_worker, _) = bench.system.worker("w1").await;
    let parked = bench
        .times(votes, "alone", &EventType::SessionWaiting)
        .await;
    println!("vote to call, parked, a worker is idle: {parked}");
    // The gate holds the other agents; each takes a slot.
    let in_stage = bench
        .times(votes.min(6), "pair", &EventType::ApprovalRequested)
        .await;
    println!("vote to call, another agent works, lease {LEASE:?}: {in_stage}");
    // The times of a busy machine say nothing.
    if is_proof() {
        assert!(parked.quantile(0.99) <= PARKED_WITHIN, "{parked}");
        assert!(in_stage.quantile(0.99) <= IN_STAGE_WITHIN, "{in_stage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_whose_recorder_died_is_recorded_by_the_next_worker() {
    if !is_proof() && std::env::var_os("TARSY_VOTES").is_none() {
        // The message comes again after half a minute: too long for the suite.
        return;
    }
    let bench = Bench::start().await;
    let mut times = Vec::new();
    for number in 0..by_depth("TARSY_DEAD_RECORDERS", 1, 3) {
        let (mut worker, _) = bench.system.worker(&format!("w{number}")).await;
        let session = bench.waits("alone", EventType::SessionWaiting).await;
        let before = bench.sends();
        worker.pause();
        let voted = bench.approve(session).await;
        worker.kill().await;
        let (mut next, _) = bench.system.worker(&format!("n{number}")).await;
        times.push(bench.sent(before, voted).await);
        next.kill().await;
    }
    let times: Figures = times.into_iter().collect();
    println!("vote to call, the recorder died: {times}");
    assert!(times.worst() <= RECORDER_DIED_WITHIN, "{times}");
}
