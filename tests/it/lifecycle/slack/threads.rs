//! Questions from threads: asked once by those who may, and answered in the same thread.

use serde_json::json;
use tarsy_bus::{ASKED_BY, PARENT_ID, THREAD};
use tarsy_core::timeline::EventType;

use super::*;
use crate::support::system::PROVEN;

const PEOPLE: &str = "web: {allow: {ask: [sre]}}
approvals: {people: {ana: {slack: U1, groups: [sre]}, bob: {slack: U2, groups: [dev]}}, slack_groups: {sre: S1}}
";
/// The first message that the route sends.
const FIRST: &str = "1700000000.000001";
const GATE: &str = "tool-describe_pod-start";
const NOT_OVER: &str = "Not asked: the investigation is not over yet; ask again then.";
const NO_RIGHT: &str = "Not asked: no group of `web.allow.ask` has you as a member.";
const UNKNOWN: &str = "Not asked: this thread belongs to no investigation that is stored here.";

/// A mention of the bot, as Slack sends it.
struct Mention<'a> {
    event_id: &'a str,
    user: &'a str,
    thread: &'a str,
    text: &'a str,
}

impl Mention<'_> {
    fn body(&self) -> String {
        let event = json!({
            "type": "app_mention", "user": self.user, "team": "T1", "channel": CHANNEL, "thread_ts": self.thread,
            "ts": "1700000100.000100", "text": format!("<@UBOT> {}", self.text),
        });
        let body = json!({
            "type": "event_callback", "api_app_id": "A1", "team_id": "T1", "event_id": self.event_id,
            "authorizations": [{"user_id": "UBOT", "is_bot": true}], "event": event,
        });
        body.to_string()
    }
}

const ANA: Mention<'_> = Mention {
    event_id: "Ev1",
    user: "U1",
    thread: FIRST,
    text: "Is it &lt;over&gt;?",
};

impl InSlack {
    async fn mention(&self, mention: &Mention<'_>) {
        let answer = self.post("/slack/events", &mention.body()).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    }

    /// Mentions the bot, and waits for the line that the person gets.
    async fn not_asked(&self, mention: &Mention<'_>, why: &str) {
        let before = self.sent("chat.postEphemeral").len();
        self.mention(mention).await;
        let lines = self.sent_times("chat.postEphemeral", before + 1).await;
        let expected = json!({
            "channel": CHANNEL, "thread_ts": mention.thread, "user": mention.user, "text": why,
        });
        assert_eq!(lines.last(), Some(&expected));
        let ended = format!(
            "SELECT count(*) = {} FROM alerts WHERE subject LIKE '%.slack' AND place = 'ended'",
            before + 1
        );
        eventually("the question has ended without a session", async || {
            self.system.database.holds(&ended)
        })
        .await;
    }

    fn questions(&self) -> i64 {
        let sql = "SELECT count(*) FROM alert_sessions WHERE parent_id IS NOT NULL";
        self.system.database.number(sql)
    }

    fn dead_reasons(&self) -> String {
        let sql = "SELECT coalesce(string_agg(dead_reason, ' '), '') FROM alerts";
        self.system.database.text(sql)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_in_the_thread_of_an_investigation_is_answered_there_once() {
    let setup = Setup {
        watched: &[GATE],
        transcripts: &[PROVEN],
        ..Setup::default()
    };
    let mut slack = InSlack::start(setup, "[started, ended]", PEOPLE).await;
    let root = slack.publish("disk full on db-1").await;
    let held = slack.system.gates.next().await;
    slack.sent_times("chat.postMessage", 1).await;
    slack.not_asked(&ANA, NOT_OVER).await;
    assert_eq!(slack.questions(), 0);

    held.open().await;
    slack.system.gates.open_all();
    slack.system.follow(root).await.finish().await;
    slack.sent_times("chat.postMessage", 2).await;
    let receipts = "SELECT string_agg(DISTINCT receipt, ' ') FROM notifications";
    let thread = format!("{CHANNEL}/{FIRST}");
    assert_eq!(slack.system.database.text(receipts), thread);

    // Slack repeats what was answered too late; the question that was not asked has another id.
    let again = Mention {
        event_id: "Ev2",
        ..ANA
    };
    slack.mention(&again).await;
    slack.mention(&again).await;
    let messages = slack.sent_times("chat.postMessage", 4).await;
    slack.system.queue_is_empty().await;
    for message in &messages[1..] {
        let place = (&message["channel"], &message["thread_ts"]);
        assert_eq!(place, (&json!(CHANNEL), &json!(FIRST)), "{message:#}");
    }
    let answer = messages[3].to_string();
    assert!(
        answer.contains("Is it &lt;over&gt;?") && answer.contains("completed after"),
        "{answer}"
    );

    let question = slack.system.database.text(&format!(
        "SELECT session_id::text FROM alert_sessions WHERE parent_id = '{}'",
        root.0
    ));
    let question = SessionId::parse(&question).expect("one question");
    let mut timeline = slack.system.follow(question).await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    let mut seen = timeline.seen.iter();
    let asked = seen.find(|event| event.event_type == EventType::UserQuestion);
    let asked = asked.expect("the question is an event");
    assert_eq!(asked.content, "Is it <over>?");
    assert_eq!(asked.metadata["asked_by"], "slack:U1");

    // After the two minutes in which the stream knows a repetition, the store knows it.
    let nats = slack.system.connect().await;
    let repeated = NewAlert {
        priority: Priority::High,
        suffix: "slack".parse().ok(),
        body: b"Is it <over>?".to_vec(),
        headers: json!({SESSION_ID: question.to_string(), THREAD: thread, ASKED_BY: "slack:U1"}),
    };
    nats.publish_question(repeated).await.unwrap();
    slack.system.queue_is_empty().await;
    assert_eq!(slack.questions(), 1);
    assert_eq!(slack.sent("chat.postMessage").len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_ask_gets_one_line_and_a_forged_thread_nothing() {
    let setup = Setup {
        transcripts: &[PROVEN],
        ..Setup::default()
    };
    let slack = InSlack::start(setup, "[ended]", PEOPLE).await;
    let root = slack.publish("disk full on db-1").await;
    slack.system.follow(root).await.finish().await;
    slack.sent_times("chat.postMessage", 1).await;
    let long = "é".repeat(2_001);
    for (mention, why) in [
        (
            Mention {
                event_id: "Ev2",
                user: "U2",
                ..ANA
            },
            NO_RIGHT,
        ),
        (
            Mention {
                event_id: "Ev3",
                user: "U3",
                ..ANA
            },
            NO_RIGHT,
        ),
        (
            Mention {
                event_id: "Ev4",
                thread: "1700000000.999999",
                ..ANA
            },
            UNKNOWN,
        ),
        (
            Mention {
                event_id: "Ev5",
                text: &long,
                ..ANA
            },
            "Not asked: a question has at most 2000 characters here.",
        ),
    ] {
        slack.not_asked(&mention, why).await;
    }
    // 20 questions are the most.
    slack.system.database.execute(&format!(
        "INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, worker_name, chain, \
         parent_id, status, finished_at, settled_at) SELECT gen_random_uuid(), now(), now(), interval '0', gen_random_uuid(), \
         'w', 'c', '{}', 'failed', now(), now() FROM generate_series(1, 20)",
        root.0
    ));
    let full = Mention {
        event_id: "Ev6",
        ..ANA
    };
    let why = "Not asked: the investigation has 20 questions already.";
    slack.not_asked(&full, why).await;
    let nats = slack.system.connect().await;
    let thread = format!("{CHANNEL}/{FIRST}");
    for (suffix, headers) in [
        ("question", json!({THREAD: thread, ASKED_BY: "slack:U1"})),
        ("eu.slack", json!({THREAD: thread, ASKED_BY: "slack:U1"})),
        ("slack", json!({THREAD: thread, ASKED_BY: "ana"})),
        (
            "slack",
            json!({PARENT_ID: root.to_string(), ASKED_BY: "slack:U1"}),
        ),
        (
            "slack",
            json!({PARENT_ID: root.to_string(), THREAD: thread, ASKED_BY: "slack:U1"}),
        ),
    ] {
        let forged = NewAlert {
            priority: Priority::High,
            suffix: suffix.parse().ok(),
            body: b"Is it over?".to_vec(),
            headers,
        };
        nats.publish_question(forged).await.unwrap();
    }
    slack.system.queue_is_empty().await;
    assert_eq!(slack.dead_reasons(), ["invalid_parent"; 5].join(" "));

    // Of another question the header counts for nothing.
    let other = NewAlert {
        priority: Priority::High,
        suffix: "eu.slack".parse().ok(),
        body: b"Is it over?".to_vec(),
        headers: json!({PARENT_ID: root.to_string(), THREAD: thread, ASKED_BY: "slack:U1"}),
    };
    nats.publish_question(other).await.unwrap();
    let sql = "SELECT count(*) = 1 FROM alert_sessions WHERE parent_id IS NOT NULL AND status = 'completed'";
    eventually("the question is answered", async || {
        slack.system.database.holds(sql)
    })
    .await;
    // The route is notified of the dead letters, in its channel; nothing is in the thread.
    let messages = slack.sent_times("chat.postMessage", 6).await;
    assert!(
        messages
            .iter()
            .all(|message| message.get("thread_ts").is_none()),
        "{messages:#?}"
    );
    assert_eq!(slack.sent("chat.postEphemeral").len(), 5);
}
