//! Start and stop of a worker: unavailable services, invalid addresses, refused schemas and signals.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::adapters::store::database::rights::Role;
use crate::support::nats::NatsServer;
use crate::support::process::Tarsy;
use crate::support::process::ports::free_address;
use crate::support::system::{TestSystem, follow_on, publish_on};

const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// No process listens on this address.
const NOWHERE: &str = "127.0.0.1:1";

/// Status and body of a probe; `None` while no process listens.
async fn probe(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: tarsy\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((
        head.split(' ').nth(1)?.parse().ok()?,
        body.trim().to_owned(),
    ))
}

/// Returns when `/readyz` answers with this status and text.
pub(crate) async fn is_ready(address: &str, expected: (u16, &str)) {
    let mut last = None;
    let mut asked = async || {
        last = probe(address, "/readyz").await;
        last.as_ref()
            .is_some_and(|(status, body)| (*status, body.as_str()) == expected)
    };
    let limit = Instant::now() + TIMEOUT;
    while !asked().await {
        assert!(
            Instant::now() < limit,
            "/readyz does not answer {expected:?}, but {last:?}"
        );
        tokio::time::sleep(POLL_INTERVAL).await; // pacing of the looks
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_address_ends_a_worker_at_once_and_shows_no_secret() {
    let nats = format!("nats://{NOWHERE}");
    let database = format!("postgres://tarsy:s3cret@{NOWHERE}/tarsy");
    let cases = [
        ("DATABASE_URL", "postgres//tarsy:s3cret@db/tarsy"),
        ("DATABASE_URL", "http://tarsy:s3cret@db/tarsy"),
        ("DATABASE_URL", "postgres://tarsy:s3cret@db:port/tarsy"),
        (
            "DATABASE_URL",
            "postgres://tarsy:s3cret@db/tarsy?sslmod=require",
        ),
        (
            "DATABASE_URL",
            "postgres://tarsy:s3cret@db/tarsy?sslmode=s3cret",
        ),
        ("DATABASE_URL", ""),
        ("NATS_URL", "nats://tarsy:s3cret@nats:port"),
        ("TARSY_LLM_ADDR", "grpc://llm:443"),
    ];
    for (name, value) in cases {
        let mut env = vec![
            ("NATS_URL", nats.as_str()),
            ("DATABASE_URL", database.as_str()),
        ];
        env.retain(|(other, _)| *other != name);
        env.push((name, value));
        let began = Instant::now();
        let mut worker = Tarsy::spawn("w1", &["worker"], &env);
        let (code, _) = worker.finished().await;
        let log = worker.log();
        assert_eq!(code, 78, "{name}={value}\n{log}");
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{name}={value} took {:?}",
            began.elapsed()
        );
        let about = if name == "TARSY_LLM_ADDR" {
            "llm service address"
        } else {
            name
        };
        assert!(
            log.contains(about) && !log.contains("s3cret"),
            "{name}={value}\n{log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_refuses_a_worker_ends_it_with_a_message_without_a_secret() {
    let system = TestSystem::start(&[]).await;
    let (server, _) = system.database.url().rsplit_once('/').unwrap();
    let (_, host) = server.split_once('@').unwrap();
    let role = Role::create(&system.database, "SELECT");
    let nowhere = format!("postgres://tarsy:s3cret@{host}/tarsy_nowhere");
    let cases = [
        (
            nowhere.as_str(),
            78,
            "database refuses the connection: there is no such role",
        ),
        (role.url.as_str(), 1, " lacks INSERT on agent_executions"),
    ];
    for (url, expected, message) in cases {
        let mut worker = Tarsy::spawn("w1", &["worker"], &system.env(url).each());
        let (code, _) = worker.finished().await;
        let log = worker.log();
        assert_eq!(code, expected, "{log}");
        assert!(log.contains(message) && !log.contains("s3cret"), "{log}");
    }
    assert_role_without_create_works(&system).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_starts_on_a_newer_schema_only_if_that_permits_its_version() {
    let system = TestSystem::start(&[]).await;
    system
        .database
        .execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('20991231000000')");
    let (mut worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
    let mut migrate = system.tarsy("migrate", &["migrate"]);
    let (code, out) = migrate.finished().await;
    assert!(
        code == 0 && out.contains("0 migrations applied (its schema 20991231000000 is newer"),
        "{out}"
    );
    let mut doctor = system.tarsy("doctor", &["doctor"]);
    let (_, out) = doctor.finished().await;
    let line = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        line.contains("schema 20991231000000 (newer, and may be used with this tarsy)"),
        "{out}"
    );

    system
        .database
        .execute("UPDATE schema_compatibility SET oldest_program = '20991231000000'");
    for command in ["worker", "migrate"] {
        let mut refused = system.tarsy(command, &[command]);
        let (code, _) = refused.finished().await;
        assert_eq!(code, 1, "{}", refused.log());
        assert!(
            refused
                .log()
                .contains("has migration 20991231000000, which this version does not know"),
            "{}",
            refused.log()
        );
    }
}

async fn assert_role_without_create_works(system: &TestSystem) {
    let role = Role::create(&system.database, "SELECT, INSERT, UPDATE, DELETE");
    let (mut worker, _) = system.worker_on("least", &role.url).await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_waits_for_unavailable_services_and_names_them() {
    let mut system = TestSystem::start(&[]).await;
    system.nats.kill();
    let (listen, nats, llm) = (
        free_address(),
        system.nats.url(),
        system.llm_addr().to_owned(),
    );
    let nowhere = format!("postgres://tarsy:s3cret@{NOWHERE}/tarsy");
    let alone = [
        ("NATS_URL", nats.as_str()),
        ("DATABASE_URL", nowhere.as_str()),
    ];
    let mut waiting = Tarsy::spawn("waiting", &["worker", "--listen", &listen], &alone);
    is_ready(&listen, (503, "waiting for nats, database")).await;
    assert_eq!(
        probe(&listen, "/healthz").await,
        Some((200, "ok".to_owned()))
    );
    waiting.logged("waiting for nats").await;
    waiting.logged("database unavailable").await;
    assert!(!waiting.log().contains("s3cret"), "{}", waiting.log());
    waiting.terminate();
    assert_eq!(waiting.finished().await.0, 0, "{}", waiting.log());

    let (listen, url) = (free_address(), system.database.url().to_owned());
    let config = system.file("tarsy.yaml").display().to_string();
    let env = [
        ("NATS_URL", nats.as_str()),
        ("DATABASE_URL", url.as_str()),
        ("TARSY_LLM_ADDR", llm.as_str()),
        ("TARSY_CONFIG", config.as_str()),
    ];
    let mut worker = Tarsy::spawn("w1", &["worker", "--listen", &listen], &env);
    is_ready(&listen, (503, "waiting for nats")).await;
    system.nats.restart().await;
    assert_eq!(worker.ready().await, listen);
    is_ready(&listen, (200, "ok")).await;
    system.nats.kill();
    is_ready(&listen, (503, "nats unavailable")).await;
    system.nats.restart().await;
    is_ready(&listen, (200, "ok")).await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_releases_during_a_call_and_the_exit_code_is_0() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (mut first, probes) = system.worker("w1").await;
    let session = system.publish().await;
    let waiting = system.gates.next().await;
    let (_second, _) = system.worker("w2").await;
    first.terminate();
    is_ready(&probes, (503, "draining")).await;
    // The call of the first worker stays open.
    system.gates.open_all();
    let began = Instant::now();
    first.terminate();
    let (code, _) = first.finished().await;
    assert_eq!(code, 0, "{}", first.log());
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "the drain timeout is 45 s: {:?}",
        began.elapsed()
    );
    assert!(
        first.log().contains("session released: draining"),
        "{}",
        first.log()
    );
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    waiting.open().await;
    system.assert_invariants(session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_goes_to_the_servers_that_its_file_names_meanwhile() {
    let mut system = TestSystem::start(&[]).await;
    let (second, directory) = (NatsServer::start().await, tempfile::tempdir().unwrap());
    let file = directory.path().join("servers").display().to_string();
    std::fs::write(&file, system.nats.url()).unwrap();
    let (env, second_url) = (system.env(system.database.url()), second.url());
    let with =
        |variable: &'static str, value| [&env.each()[1..], &[(variable, value)][..]].concat();
    let mut migrate = Tarsy::spawn("migrate", &["migrate"], &with("NATS_URL", &second_url));
    assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());
    let mut worker = Tarsy::spawn(
        "w1",
        &["worker", "--listen", "127.0.0.1:0"],
        &with("NATS_URL_FILE", &file),
    );
    worker.ready().await;

    std::fs::write(&file, "nats://a,,b").unwrap();
    worker
        .logged("nats servers not replaced: the file is faulty")
        .await;
    std::fs::write(&file, format!("{second_url}\n")).unwrap();
    worker.logged("nats servers reloaded").await;
    system.nats.kill();
    let session = publish_on(&second_url).await;
    follow_on(&second_url, session).await.finish().await;
    assert!(worker.log().contains("nats is unavailable"));
}
