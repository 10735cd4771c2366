//! Decisions about a call, and verdicts about an analysis, by the buttons of their messages.

use tarsy_core::timeline::EventType;
use url::form_urlencoded;

use super::*;

/// Selects the recording that restarts a deployment.
const MARK: &str = "RestartDrill";
const TOOL: &str = "restart_deployment";
/// A further key of the server `drill`.
const APPROVE: &str = "    approve: [restart_deployment]\n";
const PEOPLE: &str = "approvals:
  policies: {default: {approvers: [sre], channels: [slack]}}
  people: {ana: {slack: U1, groups: [sre]}}
";

/// The block of a message with the buttons.
fn buttons(message: &Value) -> &Value {
    let blocks = message["blocks"]
        .as_array()
        .expect("the message has blocks");
    let actions = blocks.iter().find(|block| block["type"] == "actions");
    actions.unwrap_or_else(|| panic!("no buttons: {message:#}"))
}

/// The click of a person on a button, as Slack sends it.
fn click(button: &Value, block: &Value, user: &str, answers: &str) -> String {
    let payload = json!({
        "type": "block_actions", "api_app_id": "A1", "team": {"id": "T1"}, "user": {"id": user, "team_id": "T1"},
        "response_url": answers, "state": {"values": {}},
        "actions": [{
            "action_id": button["action_id"], "block_id": block["block_id"], "value": button["value"],
            "action_ts": "1700000001.000200",
        }],
    });
    form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_approves_a_call_which_is_sent_once_and_the_message_loses_its_buttons() {
    let transcript = format!(
        "name: restart\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{{call: {{tool: drill.{TOOL}, arguments: {{namespace: checkout, deployment: checkout}}}}}}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    );
    let setup = Setup {
        servers: APPROVE,
        transcript: Some(transcript),
        ..Setup::default()
    };
    let slack = InSlack::start(setup, "[approval]", PEOPLE).await;
    let session = slack.publish(MARK).await;
    let mut timeline = slack.system.follow(session).await;
    timeline.until(EventType::SessionWaiting).await;
    let messages = slack.sent_times("chat.postMessage", 1).await;
    let block = buttons(&messages[0]);
    let button = &block["elements"][0];
    let answers = format!("{}/actions/T1/1/abc", slack.slack.url());
    let path = "/actions/T1/1/abc";
    let answered = async |lines: usize| {
        eventually(&format!("{lines} answers to clicks"), async || {
            let requests = slack.slack.requests();
            let lines_of_it = requests.iter().filter(|request| request.path == path);
            lines_of_it.count() == lines
        })
        .await;
        let requests = slack.slack.requests();
        let last = requests.iter().rfind(|request| request.path == path);
        last.unwrap().json()
    };

    // A person without the right changes nothing.
    let stranger = click(button, block, "U9", &answers);
    assert_eq!(slack.post("/slack/actions", &stranger).await.status, 200);
    let line = answered(1).await;
    assert_eq!(line["response_type"], "ephemeral", "{line}");
    let votes =
        "SELECT string_agg(coalesce(refused, 'counted'), ' ' ORDER BY at) FROM approval_votes";
    assert_eq!(slack.system.database.text(votes), "no_right");

    let approve = click(button, block, "U1", &answers);
    assert_eq!(slack.post("/slack/actions", &approve).await.status, 200);
    answered(2).await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    assert_eq!(slack.system.database.text(votes), "no_right counted");
    // The same click again is the same vote.
    assert_eq!(slack.post("/slack/actions", &approve).await.status, 200);
    let calls = slack.system.tool_calls();
    let of_tool = calls.iter().filter(|(call, _)| call.starts_with(TOOL));
    assert_eq!(of_tool.map(|(_, sends)| sends).sum::<u32>(), 1);

    let updates = slack.sent_times("chat.update", 1).await;
    let place = (&updates[0]["channel"], &updates[0]["ts"]);
    assert_eq!(place, (&json!(CHANNEL), &json!("1700000000.000001")));
    let blocks = updates[0]["blocks"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block["type"] != "actions"));
    assert!(updates[0].to_string().contains("ana"), "{:#}", updates[0]);
    assert_eq!(slack.system.database.text(votes), "no_right counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_judges_an_analysis_by_a_button_under_its_message() {
    let slack = InSlack::start(Setup::default(), "[ended]", PEOPLE).await;
    let session = slack.publish("the disk is full").await;
    let mut timeline = slack.system.follow(session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let messages = slack.sent_times("chat.postMessage", 1).await;
    let block = buttons(&messages[0]);
    let wrong = &block["elements"][2];
    assert_eq!(wrong["text"]["text"], "Wrong");
    let answers = format!("{}/actions/T1/1/abc", slack.slack.url());
    let judge = click(wrong, block, "U1", &answers);
    // The stream knows the second one as a repetition.
    for _ in 0..2 {
        assert_eq!(slack.post("/slack/actions", &judge).await.status, 200);
    }
    eventually("an answer to the click", async || {
        let requests = slack.slack.requests();
        requests
            .iter()
            .any(|each| each.path.starts_with("/actions/"))
    })
    .await;
    let verdicts =
        "SELECT string_agg(person || ' ' || channel || ' ' || verdict, ', ') FROM verdicts";
    assert_eq!(slack.system.database.text(verdicts), "ana slack wrong");
}
