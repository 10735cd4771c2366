//! Servers that cannot be used: `doctor` and the commands distinguish the causes, and name what mends each of them.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use crate::adapters::store::database::rights::Role;
use crate::interfaces::commands::{Ran, run_with};
use crate::interfaces::receive::metrics_of;
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::process::Tarsy;
use crate::support::wait::eventually_within;

const NOWHERE: &str = "127.0.0.1:1";
const READY_WITHIN: Duration = Duration::from_secs(180);

async fn commands(nats: &str, database: &str, args: &[&str]) -> Ran {
    let env = [
        ("NATS_URL", nats),
        ("DATABASE_URL", database),
        ("TARSY_LLM_ADDR", NOWHERE),
        ("TARSY_LOG", "warn"),
    ];
    let ran = run_with(&env, args, b"disk full").await;
    assert!(!format!("{ran:?}").contains("hidden-word"), "{ran:#?}");
    ran
}

/// The checks of `doctor` with this name: verdict, finding and fix of each.
async fn checks(nats: &str, database: &str, name: &str) -> Vec<[String; 3]> {
    let ran = commands(nats, database, &["doctor", "--json"])
        .await
        .exits(1);
    assert_eq!(ran.err, "", "no line of a log stands between the checks");
    let word = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let found = ran
        .json()
        .into_iter()
        .filter(|check| check["check"] == name);
    found
        .map(|check| ["verdict", "detail", "fix"].map(|key| word(&check, key)))
        .collect()
}

#[track_caller]
fn assert_one_fails(checks: &[[String; 3]], detail: &str, fix: &str) {
    let [[verdict, found, mends]] = checks else {
        panic!("not one check: {checks:#?}")
    };
    assert_eq!(verdict, "fail", "{checks:#?}");
    assert!(found.contains(detail), "{detail}: {checks:#?}");
    assert!(mends.contains(fix), "{fix}: {checks:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_jetstream_is_one_fault_with_its_fix_everywhere() {
    let (server, database) = (
        NatsServer::start_without_jetstream().await,
        TestDatabase::create().await,
    );
    let url = server.url();
    let with_account = "accounts { A { users: [{user: a, password: a}] } }";
    let account = NatsServer::start_with(with_account).await;
    let account = account.url().replace("nats://", "nats://a:a@");
    let cases = [
        (
            server.url(),
            "has no JetStream: it is switched off in nats-server",
            "start nats-server with -js",
        ),
        (
            account,
            "has no JetStream: it is switched off for the account",
            "set jetstream: enabled in this account",
        ),
    ];
    // The commands mostly wait, so they run in parallel.
    join_all(cases.iter().map(async |(url, detail, fix)| {
        assert_one_fails(&checks(url, database.url(), "streams").await, detail, fix);
        for args in [
            &["migrate"][..],
            &["queue", "--wait", "1s"],
            &["dead-letters", "list"],
        ] {
            let ran = commands(url, database.url(), args).await.exits(1);
            assert!(
                ran.err.contains(detail) && ran.err.contains(fix),
                "{ran:#?}"
            );
        }
    }))
    .await;
    let id = "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa";
    let others: [(&[&str], i32); 6] = [
        (&["submit", "-"], 1),
        (&["queue", "--wait", "1s"], 1),
        (&["dead-letters", "list"], 1),
        (&["watch", "--all", "--timeout", "3s"], 1),
        (&["watch", id, "--timeout", "3s"], 3),
        (&["sessions", "cancel", id], 1),
    ];
    let ran = join_all(
        others
            .iter()
            .map(|(args, _)| commands(&url, database.url(), args)),
    )
    .await;
    for (ran, (args, code)) in ran.into_iter().zip(others) {
        let ran = ran.exits(code);
        assert!(ran.err.contains("has no JetStream"), "{args:?}: {ran:#?}");
        assert!(
            ran.err.contains("Fix: start nats-server with -js"),
            "{args:?}: {ran:#?}"
        );
        for wrong in ["broker is unavailable", "cannot read", "still queued"] {
            assert!(!ran.err.contains(wrong), "{args:?}: {ran:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refused_or_malformed_address_of_the_broker_has_its_own_sentence() {
    let database = TestDatabase::create().await;
    let server = NatsServer::start_with("authorization { user: tarsy, password: right }").await;
    let login = |login: &str| server.url().replace("nats://", &format!("nats://{login}@"));
    let cases = [
        (
            login("tarsy:hidden-word"),
            78,
            "refused the connection: user or password is wrong",
            "set NATS_USER and NATS_PASSWORD",
        ),
        (
            login("hidden-word"),
            78,
            "refused the connection: the token is wrong",
            "NATS_USER and NATS_PASSWORD",
        ),
        (
            server.url(),
            78,
            "refused the connection: it asks for a login, and none is set",
            "set NATS_USER and NATS_PASSWORD",
        ),
        (
            server.url().replace("nats:", "http:"),
            78,
            "invalid scheme",
            "set NATS_URL or --nats-url to nats://host:4222",
        ),
        (
            format!("nats://{NOWHERE}"),
            1,
            "Connection refused",
            "start nats-server -js there, or set NATS_URL",
        ),
    ];
    join_all(cases.iter().map(async |(url, code, detail, fix)| {
        assert_one_fails(&checks(url, database.url(), "nats").await, detail, fix);
        for args in [&["submit", "-"][..], &["migrate"]] {
            let ran = commands(url, database.url(), args).await.exits(*code);
            assert!(
                ran.err.contains(detail) && ran.err.contains(fix),
                "{ran:#?}"
            );
            assert_eq!(ran.err.lines().count(), 1, "{ran:#?}");
            assert!(!ran.err.contains("authorization violation"), "{ran:#?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_of_the_database_has_its_own_sentence_and_fix() {
    let nats = NatsServer::start().await;
    let (database, empty) = (TestDatabase::create().await, TestDatabase::empty());
    let role = Role::create(&database, "");
    let (server, name) = role.url.rsplit_once('/').unwrap();
    let (_, host) = server.split_once('@').unwrap();
    let cases = [
        (
            format!("{server}/tarsy_nowhere"),
            78,
            "there is no such database",
            "CREATE DATABASE tarsy_nowhere",
        ),
        (
            format!("postgres://tarsy_stranger:hidden-word@{host}/{name}"),
            78,
            "there is no such role",
            "CREATE ROLE tarsy_stranger LOGIN",
        ),
        (
            role.url.clone(),
            1,
            "lacks SELECT on __diesel_schema_migrations",
            "GRANT SELECT ON ALL TABLES",
        ),
        (empty.url().to_owned(), 1, "", "tarsy migrate"),
        (
            format!("postgres://u:hidden-word@{NOWHERE}/d"),
            1,
            "Connection refused",
            "start Postgres there, or set DATABASE_URL",
        ),
    ];
    let broker = nats.url();
    // No command waits long, so they run one after the other, before the checks, which wait for workers.
    for (url, code, detail, fix) in &cases {
        let ran = commands(&broker, url, &["sessions", "list"])
            .await
            .exits(*code);
        assert!(
            ran.err.contains(detail) && ran.err.contains(fix),
            "{ran:#?}"
        );
        assert!(ran.took < Duration::from_secs(5), "{ran:#?}");
    }
    join_all(cases.iter().map(async |(url, _, detail, fix)| {
        let found = checks(&broker, url, "postgres").await;
        assert_one_fails(&found, detail, fix);
        assert!(!found[0][1].contains("Is the server running"), "{found:#?}");
    }))
    .await;
    let ran = commands(&nats.url(), &role.url, &["migrate"])
        .await
        .exits(1);
    assert!(
        ran.err
            .contains("which lacks SELECT on __diesel_schema_migrations"),
        "{ran:#?}"
    );
    assert!(
        ran.err
            .ends_with("Fix: run tarsy migrate as the owner of the tables\n"),
        "{ran:#?}"
    );
    database.execute(&format!(
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}",
        role.name
    ));
    commands(&nats.url(), &role.url, &["sessions", "list"])
        .await
        .exits(0);
    let found = checks(&nats.url(), &role.url, "postgres").await;
    assert!(found.len() == 1 && found[0][0] == "warn", "{found:#?}");
    assert!(
        found[0][1].contains("it suffices to read, but no worker starts with it"),
        "{found:#?}"
    );
    assert!(found[0][1].ends_with(" more rights"), "{found:#?}");
    database.execute(&format!(
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC; REVOKE CONNECT ON DATABASE {name} FROM PUBLIC"
    ));
    let found = checks(&nats.url(), &role.url, "postgres").await;
    assert_one_fails(
        &found,
        "this role may not connect to the database",
        &format!("GRANT CONNECT ON DATABASE {name}"),
    );
    empty.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let url = format!("{server}/{}", empty.url().rsplit_once('/').unwrap().1);
    let ran = commands(&nats.url(), &url, &["migrate"]).await.exits(1);
    assert!(
        ran.err.contains("permission denied for schema public"),
        "{ran:#?}"
    );
    assert!(
        ran.err.contains("GRANT USAGE, CREATE ON SCHEMA public"),
        "{ran:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_a_missing_one_and_missing_tls_have_their_own_fixes() {
    let (nats, server) = (NatsServer::start().await, PostgresServer::start().await);
    server.require_passwords("tarsy").await;
    let with = |login: &str| server.url().replace("postgres@", login);
    let fix = "\\password tarsy in psql sets the password";
    let cases = [
        (with("tarsy:hidden-word@"), "user or password is wrong", fix),
        (
            with("tarsy@"),
            "a password is missing",
            "set DATABASE_PASSWORD",
        ),
        (
            format!("{}?sslmode=require", server.url()),
            "the server has no TLS, and this address requires it",
            "ssl = on on the server, or another sslmode in DATABASE_URL",
        ),
    ];
    let broker = nats.url();
    join_all(cases.iter().map(async |(url, detail, fix)| {
        let found = checks(&broker, url, "postgres").await;
        assert_one_fails(&found, detail, fix);
        let ran = commands(&broker, url, &["sessions", "list"])
            .await
            .exits(78);
        assert!(
            ran.err.contains(detail) && ran.err.contains(fix),
            "{ran:#?}"
        );
    }))
    .await;
}

async fn readyz(address: &str) -> (u16, String) {
    let answer = http::get(address, "/readyz").await;
    (answer.status, answer.body.trim().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_is_not_ready_until_the_queue_takes_alerts_and_says_why() {
    let mut server = NatsServer::start_without_jetstream().await;
    let url = server.url();
    let args = [
        "receive",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
    ];
    let mut receiver = Tarsy::spawn("receive", &args, &[("NATS_URL", url.as_str())]);
    let address = receiver.ready().await;
    let metrics = metrics_of(&mut receiver).await;
    let is = async |status: u16, words: &str| {
        eventually_within(READY_WITHIN, words, async || {
            let (found, text) = readyz(&metrics).await;
            found == status && text.contains(words)
        })
        .await;
    };
    is(
        503,
        "has no JetStream: it is switched off in nats-server. Fix: start nats-server with -js",
    )
    .await;
    receiver
        .logged("every alert is answered with 503: nats at ")
        .await;
    let refused = http::post(&address, "/alert", &[], b"disk full").await;
    assert_eq!(
        (refused.status, refused.json()["error"].as_str()),
        (
            503,
            Some("the queue has no JetStream: start nats-server with -js")
        )
    );
    server.restart_with_jetstream().await;
    is(
        503,
        "no stream stores tarsy.alerts.low: run `tarsy migrate`",
    )
    .await;
    let database = TestDatabase::empty();
    commands(&url, database.url(), &["migrate"]).await.exits(0);
    is(200, "ok").await;
    assert!(
        receiver.log().contains("nats connected: alerts are queued"),
        "{}",
        receiver.log()
    );
    server
        .restart_with("authorization { user: tarsy, password: right }")
        .await;
    let mut refused = Tarsy::spawn("refused", &args, &[("NATS_URL", url.as_str())]);
    refused.ready().await;
    let metrics = metrics_of(&mut refused).await;
    let text = "refused the connection: it asks for a login, and none is set. Fix: set NATS_USER and NATS_PASSWORD";
    eventually_within(READY_WITHIN, text, async || {
        readyz(&metrics).await.1.contains(text)
    })
    .await;
    assert!(!refused.log().contains("async_nats"), "{}", refused.log());
}
