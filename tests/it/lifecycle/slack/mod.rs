//! People in Slack: clicks and mentions with real signatures to a real receiver, real workers, and a Slack of the test.

mod buttons;
mod threads;

use chrono::Utc;
use data_encoding::HEXLOWER;
use ring::hmac;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use crate::support::http::endpoint::{Endpoint, Reply, Request};
use crate::support::http::{self, Answer};
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const CHANNEL: &str = "C0123456789";

/// A Slack that accepts everything, whose bots have no user groups. Its messages have the time stamps 1, 2, ….
async fn fake_slack() -> Endpoint {
    let count = AtomicU32::new(0);
    Endpoint::start(move |request| {
        if request.path.starts_with("/usergroups.users.list") {
            return Reply::json(&json!({"ok": true, "users": []}));
        }
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        Reply::json(&json!({"ok": true, "ts": format!("1700000000.{number:06}")}))
    })
    .await
}

/// A system with a worker and the receiver of Slack.
struct InSlack {
    system: TestSystem,
    slack: Endpoint,
    receiver: String,
    _processes: [Tarsy; 2],
    _secrets: tempfile::TempDir,
}

impl InSlack {
    /// Starts everything, with these moments of the route and these further sections.
    async fn start(setup: Setup<'_>, moments: &str, sections: &str) -> Self {
        let slack = fake_slack().await;
        let secrets = tempfile::tempdir().unwrap();
        let token = secrets.path().join("token");
        let signing = secrets.path().join("signing");
        std::fs::write(&token, "xoxb-t0ken").unwrap();
        std::fs::write(&signing, SECRET).unwrap();
        let sections = format!(
            "notifications:\n  ops: {{kind: slack, token_file: {}, channel: {CHANNEL}, api_url: '{}', when: {moments}}}\n\
             receive: {{slack: {{app: A1, team: T1, signing_secret_file: {}}}}}\n{sections}",
            token.display(),
            slack.url(),
            signing.display(),
        );
        let system = TestSystem::start_with(Setup {
            sections: &sections,
            ..setup
        })
        .await;
        let (worker, _) = system.worker("w1").await;
        let args = ["receive", "--slack-only", "--listen", "127.0.0.1:0"];
        let mut process = system.tarsy("slack", &args);
        let receiver = process.ready().await;
        process.logged("nats connected").await;
        Self {
            system,
            slack,
            receiver,
            _processes: [worker, process],
            _secrets: secrets,
        }
    }

    /// Posts a body with a signature.
    async fn post(&self, path: &str, body: &str) -> Answer {
        let time = Utc::now().timestamp().to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let tag = hmac::sign(&key, format!("v0:{time}:{body}").as_bytes());
        let signature = format!("v0={}", HEXLOWER.encode(tag.as_ref()));
        let headers = [
            ("x-slack-request-timestamp", time.as_str()),
            ("x-slack-signature", &signature),
        ];
        http::post(&self.receiver, path, &headers, body.as_bytes()).await
    }

    /// Publishes an alert; returns the id of its session.
    async fn publish(&self, body: &str) -> SessionId {
        let session = SessionId(Uuid::now_v7());
        let alert = NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body: body.into(),
            headers: json!({SESSION_ID: session.to_string()}),
        };
        let nats = self.system.connect().await;
        nats.publish_alert(alert).await.unwrap();
        session
    }

    /// The bodies of the requests for a method of Slack's API, in order.
    fn sent(&self, method: &str) -> Vec<Value> {
        let path = format!("/{method}");
        let requests = self.slack.requests().into_iter();
        requests
            .filter(|request| request.path == path)
            .map(|request: Request| request.json())
            .collect()
    }

    /// Waits for as many requests for a method, and returns their bodies.
    async fn sent_times(&self, method: &str, times: usize) -> Vec<Value> {
        eventually(&format!("{times} requests for {method}"), async || {
            self.sent(method).len() >= times
        })
        .await;
        let sent = self.sent(method);
        assert_eq!(sent.len(), times, "{sent:#?}");
        sent
    }
}
