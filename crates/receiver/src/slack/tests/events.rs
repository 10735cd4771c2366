use super::*;

const TS: &str = "1700000000.000100";

/// A mention in a thread as Slack sends it, with more fields than are read.
fn mention() -> Value {
    json!({
        "token": "deprecated", "team_id": "T1", "context_team_id": "T1", "api_app_id": "A1", "type": "event_callback",
        "event_id": "Ev1", "event_time": 1_700_000_009, "is_ext_shared_channel": false,
        "authorizations": [{"team_id": "T1", "user_id": "UBOT", "is_bot": true, "is_enterprise_install": false}],
        "event": {
            "type": "app_mention", "user": "U7", "text": "<@UBOT> is a &lt; b on <http://db-1.example|db-1.example>?",
            "ts": "1700000009.000200", "thread_ts": TS, "channel": "C1", "team": "T1",
            "event_ts": "1700000009.000200", "client_msg_id": "x", "blocks": []
        }
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut mention = mention();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    mention.pointer_mut(parent).unwrap()[name] = value;
    mention
}

fn without(pointer: &str) -> Value {
    let mut mention = mention();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = mention.pointer_mut(parent).unwrap().as_object_mut();
    parent.unwrap().remove(name).unwrap();
    mention
}

impl Served {
    async fn send(&self, event: &Value) -> (u16, String) {
        self.post_to("/slack/events", signed(event.to_string()))
            .await
    }

    fn asked(&self) -> Vec<SlackQuestion> {
        self.queue.asked.lock().clone()
    }
}

#[tokio::test]
async fn a_mention_in_a_thread_is_published_as_plain_text_with_its_person() {
    let served = Served::start(Stream::Stores).await;
    assert_eq!(served.send(&mention()).await, (200, String::new()));
    let asked = served.asked();
    let expected = SlackQuestion {
        id: asked[0].id,
        thread: SlackThread::parse(&format!("C1/{TS}")).unwrap(),
        user: "U7".to_owned(),
        text: "is a < b on db-1.example?".to_owned(),
    };
    assert_eq!(asked, [expected]);
    assert_eq!(
        SessionId::parse(&asked[0].id.to_string()),
        Some(asked[0].id)
    );
    assert_eq!(served.stored(), []);
}

#[tokio::test]
async fn a_repeated_event_is_the_same_question_and_another_one_is_not() {
    let served = Served::start(Stream::Stores).await;
    let other = with("/event_id", json!("Ev2"));
    for event in [&mention(), &mention(), &other] {
        assert_eq!(served.send(event).await.0, 200);
    }
    let ids: Vec<_> = served.asked().iter().map(|asked| asked.id).collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
}

#[tokio::test]
async fn the_challenge_of_slack_is_answered_only_with_a_signature() {
    let served = Served::start(Stream::Stores).await;
    let challenge = json!({"type": "url_verification", "token": "t", "challenge": "3eZbrw1aB"});
    assert_eq!(served.send(&challenge).await, (200, "3eZbrw1aB".to_owned()));
    let unsigned = Signed {
        signature: "v0=00".to_owned(),
        ..signed(challenge.to_string())
    };
    assert_eq!(served.post_to("/slack/events", unsigned).await.0, 401);
    for challenge in [
        json!(""),
        json!("a b"),
        json!("<b>\n"),
        json!("a".repeat(501)),
        Value::Null,
    ] {
        let event = json!({"type": "url_verification", "challenge": challenge});
        assert_eq!(served.send(&event).await.0, 400, "{event}");
    }
}

#[tokio::test]
async fn a_forged_replayed_or_foreign_event_asks_nothing() {
    let served = Served::start(Stream::Stores).await;
    let body = mention().to_string();
    let now = Utc::now().timestamp();
    let changed = Signed {
        body: body.replace("U7", "U8").into_bytes(),
        ..signed(body.clone())
    };
    for request in [
        changed,
        signed_at(now - 301, body.clone().into_bytes()),
        signed_at(now + 320, body.into_bytes()),
        signed(with("/api_app_id", json!("A2")).to_string()),
        signed(with("/team_id", json!("T2")).to_string()),
        signed(without("/team_id").to_string()),
    ] {
        let answer = served.post_to("/slack/events", request).await;
        assert_eq!(answer.0, 401, "{answer:?}");
    }
    assert_eq!(served.asked(), []);
}

#[tokio::test]
async fn what_no_person_of_the_workspace_asks_in_a_thread_is_left_alone() {
    let served = Served::start(Stream::Stores).await;
    let mut unnamed = without("/event/team");
    unnamed["is_ext_shared_channel"] = json!(true);
    let mut unknown = without("/event/team");
    unknown
        .as_object_mut()
        .unwrap()
        .remove("is_ext_shared_channel");
    for event in [
        without("/event/thread_ts"),
        with("/event/thread_ts", json!("1700000009.000200")),
        with("/event/thread_ts", json!("now")),
        with("/event/type", json!("message")),
        with("/event/bot_id", json!("B1")),
        with("/event/subtype", json!("message_changed")),
        with(
            "/event/edited",
            json!({"user": "U7", "ts": "1700000010.000000"}),
        ),
        with("/event/user", json!("")),
        with("/event/user", json!("U7 *")),
        without("/event/user"),
        with("/event/channel", json!("alerts")),
        with("/event/team", json!("T2")),
        with("/event/user_team", json!("T2")),
        with("/event/source_team", json!("T2")),
        unnamed,
        unknown,
        with("/event/text", json!("<@UBOT> ")),
        with("/event/text", json!("<@UBOT>\u{200b}\u{202e}")),
        with("/event_id", json!("")),
        with("/type", json!("app_rate_limited")),
        without("/event"),
    ] {
        assert_eq!(served.send(&event).await, (200, String::new()), "{event}");
    }
    assert_eq!(served.asked(), []);
    assert_eq!(served.send(&without("/event/team")).await.0, 200);
    assert_eq!(
        served.asked().len(),
        1,
        "no other workspace shares the channel"
    );
}

#[tokio::test]
async fn a_hostile_body_is_refused_and_a_long_question_cut_behind_the_limit() {
    let served = Served::start(Stream::Stores).await;
    for body in [
        b"".to_vec(),
        b"payload=%7B%7D".to_vec(),
        vec![0xff; 4_096],
        vec![b'['; 100_000],
        b"[]".to_vec(),
        b"{\"type\":7}".to_vec(),
        with("/event", json!([])).to_string().into_bytes(),
    ] {
        let answer = served.post_to("/slack/events", signed(body)).await;
        assert_eq!(answer.0, 400, "{answer:?}");
    }
    let long = format!("<@UBOT> {}", "é".repeat(30_000));
    served.send(&with("/event/text", json!(long))).await;
    let lengths: Vec<_> = served
        .asked()
        .iter()
        .map(|asked| asked.text.chars().count())
        .collect();
    assert_eq!(lengths, [2_001]);
}

#[tokio::test]
async fn slack_repeats_an_event_that_the_queue_does_not_store() {
    let full = Served::start(Stream::IsFull).await;
    assert_eq!(full.send(&mention()).await.0, 503);
    let silent = Served::start(Stream::IsSilent).await;
    let began = tokio::time::Instant::now();
    assert_eq!(silent.send(&mention()).await.0, 503);
    assert!(began.elapsed() < Duration::from_secs(3), "{began:?}");
}
