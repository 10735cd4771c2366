//! Whole investigations whose processes have no more than the permissions of their role.

use std::time::Duration;

use tarsy_bus::permissions::NatsRole;
use uuid::Uuid;

use super::{PASSWORD, guarded};
use crate::interfaces::commands::{Ran, run_with};
use crate::support::http::{self, Answer};
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::Tarsy;
use crate::support::wait::eventually;

/// Broker, database and LLM service, and the files with passwords.
struct Guarded {
    nats: NatsServer,
    database: TestDatabase,
    llm_addr: String,
    _llm: Tarsy,
    directory: tempfile::TempDir,
}

impl Guarded {
    async fn start() -> Self {
        let (nats, directory) = (guarded().await, tempfile::tempdir().unwrap());
        std::fs::write(directory.path().join("password"), format!("{PASSWORD}\n")).unwrap();
        std::fs::write(
            directory.path().join("tarsy.yaml"),
            "web: {allow: {rerun: ['*'], submit: ['*']}}\n",
        )
        .unwrap();
        let mut llm = Tarsy::spawn(
            "llm-service",
            &["llm-service", "--listen", "127.0.0.1:0", "--pace", "0ms"],
            &[],
        );
        let llm_addr = llm.ready().await;
        Self {
            nats,
            database: TestDatabase::empty(),
            llm_addr,
            _llm: llm,
            directory,
        }
    }

    fn env(&self, role: NatsRole) -> Vec<(&'static str, String)> {
        vec![
            ("NATS_URL", self.nats.url()),
            ("NATS_USER", format!("tarsy-{}", role.as_str())),
            (
                "NATS_PASSWORD_FILE",
                self.directory.path().join("password").display().to_string(),
            ),
            ("DATABASE_URL", self.database.url().to_owned()),
            ("TARSY_LLM_ADDR", self.llm_addr.clone()),
            ("TARSY_RECEIVE_LISTEN", "127.0.0.1:0".to_owned()),
            ("TARSY_WEB_LISTEN", "127.0.0.1:0".to_owned()),
            ("TARSY_WEB_TOKEN", PASSWORD.to_owned()),
            (
                "TARSY_CONFIG",
                self.directory
                    .path()
                    .join("tarsy.yaml")
                    .display()
                    .to_string(),
            ),
        ]
    }

    async fn run(&self, role: NatsRole, args: &[&str]) -> Ran {
        let env = self.env(role);
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let ran = run_with(&env, args, br#"{"alertname": "Full"}"#).await;
        assert!(
            !ran.err.contains("Permissions Violation"),
            "{args:?} as {}: {ran:#?}",
            role.as_str()
        );
        ran
    }

    /// A running role, and the address at which it is ready.
    async fn role(&self, role: NatsRole, args: &[&str]) -> (Tarsy, String) {
        let env = self.env(role);
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut process = Tarsy::spawn(role.as_str(), args, &env);
        let address = process.ready().await;
        (process, address)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_works_with_its_permissions_alone() {
    use NatsRole::{Administrator, Producer, Receiver, Watcher, Web, Worker};
    let system = Guarded::start().await;
    system.run(Administrator, &["migrate"]).await.exits(0);
    let (mut worker, _) = system.role(Worker, &["worker"]).await;
    let (mut receiver, _) = system.role(Receiver, &["receive"]).await;
    let (mut web, pages) = system.role(Web, &["web"]).await;
    let (mut read_only, readers_pages) = system.role(Watcher, &["web"]).await;
    let submitted = system
        .run(Producer, &["submit", "-", "--priority", "high"])
        .await
        .exits(0);
    let session = uuid_in(&submitted.out);
    // A watcher asks for an alert that is still queued, and the broker refuses: only administrators read the queue.
    worker.logged(&session).await;
    let watched = system
        .run(Watcher, &["watch", &session, "--timeout", "60s"])
        .await
        .exits(0);
    assert!(!watched.out.is_empty(), "{watched:#?}");
    system
        .run(
            Administrator,
            &["ask", &session, "Why?", "--timeout", "60s"],
        )
        .await
        .exits(0);
    let second = system
        .run(
            Administrator,
            &["submit", "-", "--force", "--watch", "--timeout", "60s"],
        )
        .await;
    second.exits(0);
    system
        .run(Administrator, &["sessions", "rerun", &session])
        .await
        .exits(0);
    system
        .run(Administrator, &["dead-letters", "list"])
        .await
        .exits(0);
    // The web server queues on subjects of its own, and workers take the alert from there.
    for path in [
        "/api/v1/alerts".to_owned(),
        format!("/api/v1/sessions/{session}/rerun"),
    ] {
        let body = if path.ends_with("alerts") {
            "disk 94 % full"
        } else {
            ""
        };
        let queued = post(&pages, &path, body).await;
        assert_eq!(queued.status, 202, "{path}: {queued:?}");
        let subject = queued.json()["subject"].as_str().unwrap().to_owned();
        assert!(
            subject.starts_with("tarsy.alerts.") && subject.ends_with(".web"),
            "{subject}"
        );
        worker.logged(&uuid_in(&queued.body)).await;
        let refused = post(&readers_pages, &path, body).await;
        let why = refused.json()["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            refused.status == 503 && why.contains("does not permit this server to publish on"),
            "{refused:?}"
        );
    }
    for process in [&mut worker, &mut receiver, &mut web, &mut read_only] {
        process.terminate();
        tokio::time::timeout(Duration::from_secs(60), process.ended())
            .await
            .expect("it ends");
        assert!(
            !process.log().contains("Permissions Violation"),
            "{}",
            process.log()
        );
    }
}

/// Alerts whose acknowledgements the broker stores in the timelines of their own sessions, as a producer can.
async fn forge_acknowledgements(nats: &NatsServer, count: usize) {
    let options = async_nats::ConnectOptions::with_user_and_password(
        "tarsy-producer".to_owned(),
        PASSWORD.to_owned(),
    );
    let producer = options.connect(nats.url()).await.unwrap();
    for number in 0..count {
        let session = Uuid::now_v7().to_string();
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Tarsy-Session-Id", session.as_str());
        let (reply, body) = (
            format!("tarsy.timeline.{session}"),
            format!(r#"{{"alertname": "Forged{number}"}}"#),
        );
        producer
            .publish_with_reply_and_headers("tarsy.alerts.normal", reply, headers, body.into())
            .await
            .unwrap();
    }
    producer.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_acknowledgements_in_timelines_stop_no_investigation() {
    use NatsRole::{Administrator, Producer, Watcher, Worker};
    let system = Guarded::start().await;
    system.run(Administrator, &["migrate"]).await.exits(0);
    forge_acknowledgements(&system.nats, 60).await;
    let (worker, _) = system.role(Worker, &["worker"]).await;
    let submitted = system
        .run(Producer, &["submit", "-", "--priority", "normal"])
        .await
        .exits(0);
    let session = uuid_in(&submitted.out);
    worker.logged(&session).await;
    system
        .run(Watcher, &["watch", &session, "--timeout", "60s"])
        .await
        .exits(0);
    let settled = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL";
    eventually("every session is settled", async || {
        system.database.number(settled) == 61
    })
    .await;
    assert!(
        !worker.log().contains("Permissions Violation"),
        "{}",
        worker.log()
    );
    worker.terminate();
}

async fn post(address: &str, path: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {PASSWORD}\r\ncontent-length: {length}\r\n\r\n"
    );
    http::send(address, format!("{head}{body}").as_bytes()).await
}

fn uuid_in(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut words = text.split(|c: char| !is_part(c));
    words
        .find(|word| word.len() == 36)
        .unwrap_or_else(|| panic!("no session: {text}"))
        .to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_names_the_role_that_credentials_fit_and_what_they_permit_beyond() {
    let system = Guarded::start().await;
    for role in NatsRole::ALL {
        let ran = system
            .run(role, &["doctor", "--permissions", "--json"])
            .await;
        let fits: Vec<String> = ran
            .json()
            .iter()
            .filter(|check| {
                check["verdict"] == "ok" && check["detail"].as_str().unwrap().starts_with("fits")
            })
            .map(|check| check["check"].as_str().unwrap().to_owned())
            .collect();
        assert!(
            fits.contains(&format!("nats {}", role.as_str())),
            "{ran:#?}"
        );
        let checks = ran.json();
        let other = if role == NatsRole::Worker {
            "nats watcher"
        } else {
            "nats worker"
        };
        let other = checks.iter().find(|check| check["check"] == other).unwrap();
        assert_eq!(other["verdict"], "info", "{ran:#?}");
        assert!(
            other["detail"]
                .as_str()
                .unwrap()
                .starts_with("does not fit: lacks publish on "),
            "{ran:#?}"
        );
    }
    // Nothing was made: there is no schema and no stream.
    let schema = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public'";
    assert_eq!(system.database.number(schema), 0);
    let url = system
        .nats
        .url()
        .replace("nats://", &format!("nats://root:{PASSWORD}@"));
    let ran = run_with(
        &[("NATS_URL", &url)],
        &["doctor", "--permissions", "--json"],
        b"",
    )
    .await
    .exits(0);
    assert!(
        ran.out.contains("it may do everything in its account"),
        "{ran:#?}"
    );
    let unknown = run_with(
        &[("NATS_URL", "nats://127.0.0.1:1")],
        &["doctor", "--permissions"],
        b"",
    )
    .await
    .exits(1);
    assert!(unknown.out.contains("FAIL  nats"), "{unknown:#?}");
}
