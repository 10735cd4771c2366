//! A session that waits for a person, a web server for its approvers, and a recorder as a worker has it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tarsy_bus::{ChannelKeys, JetStreamPeople};
use tarsy_config::Config;
use tarsy_core::approvals::{CallHash, RequestId};
use tarsy_core::plan::WhenResolved;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    AskedApproval, Checkpoint, Journal as _, NoChannelGroups, Parking, WaitingCalls as _,
};
use tarsy_engine::worker::decisions::{Drills, Recorder};
use tarsy_mask::Mask;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::adapters::store::fixture::{prompt, running_session};
use crate::support::http::Answer;
use crate::support::system::{Setup, TestSystem};
use crate::web::Web;

pub(in crate::web) const SECRET: &str = "s3cret-of-the-proxy";
pub(in crate::web) const PEOPLE: &str = "approvals:
  policies: {default: {approvers: [sre]}, drain: {approvers: [lead], channels: [web]}, shell: {approvers: [sre], channels: [cli]}}
  people: {ana: {web: ana@example.com, groups: [sre]}, bob: {web: bob@example.com}}
";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub(super) const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

/// The headers of a person whom the proxy names.
pub(super) fn person<'a>(name: &'a str, groups: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("x-tarsy-proxy-secret", SECRET),
        ("x-forwarded-email", name),
        ("x-forwarded-groups", groups),
        FORM,
    ]
}

pub(super) fn ana() -> [(&'static str, &'static str); 4] {
    person("ana@example.com", "dev")
}

/// The servers with a session that waits for a person, without a worker.
pub(in crate::web) struct Asking {
    pub(in crate::web) system: TestSystem,
    pub(in crate::web) request: RequestId,
}

impl Asking {
    pub(in crate::web) async fn new() -> Self {
        Self::with("default", "{\"pod\":\"db-1\"}").await
    }

    pub(in crate::web) async fn with(policy: &str, arguments: &str) -> Self {
        let setup = Setup {
            sections: PEOPLE,
            ..Setup::default()
        };
        let system = TestSystem::start_with(setup).await;
        let request = ask(&system, policy, arguments).await;
        Self { system, request }
    }

    pub(in crate::web) fn path(&self) -> String {
        format!("/approvals/{}", self.request)
    }

    /// A web server with a section `web`, for the people of [`PEOPLE`].
    pub(in crate::web) async fn web(&self, section: &str, env: &[(&str, &str)]) -> Web {
        let file = self.system.file("web.yaml");
        std::fs::write(&file, format!("web: {section}\n{PEOPLE}")).unwrap();
        let config = file.display().to_string();
        let env = [env, &[("TARSY_CONFIG", config.as_str())]].concat();
        Web::start(&self.system, &env).await
    }

    /// A web server behind a proxy.
    pub(in crate::web) async fn behind_proxy(&self) -> Web {
        self.web("{auth: proxy}", &[("TARSY_WEB_PROXY_SECRET", SECRET)])
            .await
    }

    /// Records what people decide, as a worker does, until the guard is dropped.
    pub(in crate::web) async fn recorder(&self) -> DropGuard {
        let nats = self.system.connect().await;
        let config = Config::parse("tarsy.yaml", PEOPLE, &|_| None).unwrap();
        let recorder = Recorder {
            store: Arc::new(self.system.database.store()),
            queue: Arc::new(nats.clone()),
            groups: NoChannelGroups,
            mask: Mask::default(),
            approvals: config.approvals,
            drills: Drills::Refuse,
        };
        let end = CancellationToken::new();
        let messages = JetStreamPeople::new(&nats, ChannelKeys::default());
        tokio::spawn(recorder.run(messages, end.clone()));
        end.drop_guard()
    }

    /// The alert changes after the page was made.
    pub(super) fn change_alert(&self) {
        self.system.database.execute(&format!(
            "UPDATE alert_sessions SET updates = updates + 1 WHERE session_id = '{}'",
            self.request.session
        ));
    }

    /// The decision of people.
    pub(super) fn outcome(&self) -> String {
        self.system.database.text(&format!(
            "SELECT coalesce(outcome, '') FROM approvals WHERE session_id = '{}'",
            self.request.session
        ))
    }

    /// The number of votes, also of those that did not count.
    pub(super) fn votes(&self) -> i64 {
        self.system
            .database
            .number("SELECT count(*) FROM approval_votes")
    }
}

/// Opens a session with a call that waits, and parks it.
pub(in crate::web) async fn ask(system: &TestSystem, policy: &str, arguments: &str) -> RequestId {
    let store = system.database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let asked = AskedApproval {
        call_id: "c1".to_owned(),
        tool: "k8s.restart".to_owned(),
        policy: policy.to_owned(),
        arguments: arguments.to_owned(),
        call_sha256: CallHash([7; 32]),
        schema_sha256: [9; 32],
        why: "The pod does not come back [2].".to_owned(),
        evidence: Vec::new(),
        origins: json!([{"at": "/pod", "in_alert": true}]),
        quorum: 1,
        timeout: Duration::from_secs(3_600),
        valid_for: Duration::from_secs(900),
        on_resolved: WhenResolved::Withdraw,
        other_person: false,
        channels: vec!["web", "cli"],
    };
    let event = EventDraft::new(
        EventType::ApprovalRequested,
        "k8s.restart",
        json!({"call_id": "c1"}),
    );
    let checkpoint = Checkpoint {
        events: vec![event],
        asked: vec![asked],
        ..prompt(executions[0], 1, "")
    };
    store.append(lease, checkpoint).await.unwrap();
    let outcomes = store.outcomes(lease.session_id).await.unwrap();
    let parked = store.park(lease, outcomes.event_seq).await;
    assert_eq!(parked, Ok(Parking::Parked));
    let of_session = format!("session_id = '{}'", lease.session_id);
    let event = system.database.number(&format!(
        "SELECT event_seq::bigint FROM approvals WHERE {of_session}"
    ));
    RequestId {
        session: lease.session_id,
        event: u32::try_from(event).unwrap(),
    }
}

/// The hidden fields of the form of a page, as a browser sends them.
pub(super) fn fields(page: &str) -> String {
    let form = page.split("<form class=\"order decide\"").nth(1);
    let form = form.unwrap_or_else(|| panic!("no form: {page}"));
    let mut fields = String::new();
    for name in ["nonce", "call", "seen_updates"] {
        let value = form
            .split(&format!("name=\"{name}\" value=\""))
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        fields.push_str(&format!("{name}={}&", value.expect("a field")));
    }
    fields
}

pub(super) async fn get(web: &Web, path: &str, headers: &[(&str, &str)]) -> Answer {
    web.ask("GET", path, headers).await
}

/// Sends a form of this page.
pub(super) async fn send(web: &Web, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    web.post(path, &[headers, &[OWN]].concat(), body).await
}

/// The page to which an answer leads.
pub(super) async fn followed(web: &Web, answer: &Answer, headers: &[(&str, &str)]) -> Answer {
    assert_eq!(answer.status, 303, "{answer:?}");
    let page = get(web, answer.header("location").unwrap(), headers).await;
    assert_eq!(page.status, 200, "{page:?}");
    page
}
