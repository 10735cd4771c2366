//! Commands with an unavailable database or broker fail within seconds, name the remedy and print no password.

use std::time::Duration;

use tokio::net::TcpListener;

use super::{Ran, run_with};
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;

const SESSION: &str = "0198b2c4-5d6e-7f80-9a1b-2c3da41c9e02";
/// The time limit of commands and some seconds for a busy machine.
const MAX_TIME: Duration = Duration::from_secs(7);

fn assert_gives_up(ran: &Ran, words: &str) {
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.took < MAX_TIME, "{ran:#?}");
    assert!(ran.err.contains(words), "{words}: {ran:#?}");
    assert!(!format!("{ran:?}").contains("hidden-word"), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_fail_in_time_without_an_answer_from_the_database() {
    let nats = NatsServer::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [
        "127.0.0.1:1".to_owned(),
        silent.local_addr().unwrap().to_string(),
    ];
    for address in addresses {
        let url = format!("postgres://user:hidden-word@{address}/tarsy");
        let nats_url = nats.url();
        let env = [
            ("NATS_URL", nats_url.as_str()),
            ("DATABASE_URL", url.as_str()),
        ];
        let commands: [&[&str]; 5] = [
            &["sessions", "list"],
            &["sessions", "show", SESSION],
            &["sessions", "rerun", SESSION],
            &["watch", "a41c9e02"],
            &["migrate"],
        ];
        let runs = commands.map(|args| run_with(&env, args, b""));
        for (args, ran) in commands
            .iter()
            .zip(futures_util::future::join_all(runs).await)
        {
            let words = if args[0] == "migrate" {
                "database"
            } else {
                "DATABASE_URL or --database-url"
            };
            assert_gives_up(&ran, words);
            assert!(!ran.err.contains("Is the server running"), "{ran:#?}");
        }
    }
    let nats_url = nats.url();
    let unset = run_with(
        &[("NATS_URL", nats_url.as_str())],
        &["sessions", "list"],
        b"",
    )
    .await;
    assert!(
        unset.err.contains("no database: set DATABASE_URL"),
        "{unset:#?}"
    );
    assert_eq!(unset.code, 78, "retrying cannot help");
    for args in [
        &["watch"][..],
        &["watch", "a41c9e02"],
        &["watch", SESSION, "--thread"],
    ] {
        let unset = run_with(&[("NATS_URL", nats_url.as_str())], args, b"")
            .await
            .exits(78);
        assert!(
            unset
                .err
                .contains("no database: set DATABASE_URL or --database-url"),
            "{unset:#?}"
        );
    }
    for args in [
        &["sessions", "list"][..],
        &["watch", "a41c9e02"],
        &["migrate"],
    ] {
        let env = [
            ("NATS_URL", nats_url.as_str()),
            ("DATABASE_URL", "hidden-word"),
        ];
        let ran = run_with(&env, args, b"").await.exits(78);
        assert!(
            ran.err.contains("DATABASE_URL") && !ran.err.contains("hidden-word"),
            "{ran:#?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_fail_in_time_without_an_answer_from_the_broker() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [
        "127.0.0.1:1".to_owned(),
        silent.local_addr().unwrap().to_string(),
    ];
    for address in addresses {
        let url = format!("nats://user:hidden-word@{address}");
        let env = [("NATS_URL", url.as_str())];
        let commands: [&[&str]; 5] = [
            &["submit", "-"],
            &["watch", SESSION],
            &["watch", "--all"],
            &["dead-letters", "list"],
            &["dead-letters", "drop", "@1"],
        ];
        let runs = commands.map(|args| run_with(&env, args, b"disk full"));
        for ran in futures_util::future::join_all(runs).await {
            assert_gives_up(&ran, "NATS_URL or --nats-url");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_schema_is_reported_with_its_remedy() {
    let database = TestDatabase::empty();
    let env = [("DATABASE_URL", database.url())];
    for args in [&["sessions", "list"][..], &["sessions", "show", SESSION]] {
        let ran = run_with(&env, args, b"").await;
        assert_gives_up(&ran, "run tarsy migrate");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_streams_are_reported_with_their_remedy() {
    let nats = NatsServer::start().await;
    let url = nats.url();
    for args in [
        &["submit", "-"][..],
        &["dead-letters", "list"],
        &["dead-letters", "drop", "@1"],
        &["watch", "--all"],
    ] {
        let ran = run_with(&[("NATS_URL", url.as_str())], args, b"disk full").await;
        assert_gives_up(&ran, "tarsy migrate");
    }
}
