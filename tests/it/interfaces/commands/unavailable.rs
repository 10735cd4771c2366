//! Commands while database or broker are unavailable: they say so within seconds, what to do, and no password.

use std::time::Duration;

use tokio::net::TcpListener;

use super::{Ran, run_with};
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;

const SESSION: &str = "0198b2c4-5d6e-7f80-9a1b-2c3da41c9e02";
/// A second more for a busy machine.
const BOUND: Duration = Duration::from_secs(7);

fn assert_gives_up(ran: &Ran, words: &str) {
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.took < BOUND, "{ran:#?}");
    assert!(ran.err.contains(words), "{words}: {ran:#?}");
    assert!(!format!("{ran:?}").contains("hidden-word"), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_long_for_a_database_that_is_away_or_silent() {
    let nats = NatsServer::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = ["127.0.0.1:1".to_owned(), silent.local_addr().unwrap().to_string()];
    for address in addresses {
        let url = format!("postgres://user:hidden-word@{address}/tarsy");
        let nats_url = nats.url();
        let env = [("NATS_URL", nats_url.as_str()), ("DATABASE_URL", url.as_str())];
        let commands: [&[&str]; 5] = [
            &["sessions", "list"],
            &["sessions", "show", SESSION],
            &["sessions", "rerun", SESSION],
            &["watch", "a41c9e02"],
            &["migrate"],
        ];
        let runs = commands.map(|args| run_with(&env, args, b""));
        for (args, ran) in commands.iter().zip(futures_util::future::join_all(runs).await) {
            let words = if args[0] == "migrate" { "database" } else { "DATABASE_URL or --database-url" };
            assert_gives_up(&ran, words);
        }
    }
    let nats_url = nats.url();
    let unset = run_with(&[("NATS_URL", nats_url.as_str())], &["sessions", "list"], b"").await;
    assert!(unset.err.contains("no database: set DATABASE_URL"), "{unset:#?}");
    assert_eq!(unset.code, 78, "no waiting mends that");
    for args in [&["sessions", "list"][..], &["watch", "a41c9e02"], &["migrate"]] {
        let env = [("NATS_URL", nats_url.as_str()), ("DATABASE_URL", "hidden-word")];
        let ran = run_with(&env, args, b"").await.exits(78);
        assert!(ran.err.contains("DATABASE_URL") && !ran.err.contains("hidden-word"), "{ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_long_for_a_broker_that_is_away_or_silent() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = ["127.0.0.1:1".to_owned(), silent.local_addr().unwrap().to_string()];
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
async fn a_database_without_a_schema_is_told_with_what_makes_one() {
    let database = TestDatabase::empty();
    let env = [("DATABASE_URL", database.url())];
    for args in [&["sessions", "list"][..], &["sessions", "show", SESSION]] {
        let ran = run_with(&env, args, b"").await;
        assert_gives_up(&ran, "run tarsy migrate");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_streams_is_told_with_what_makes_them() {
    let nats = NatsServer::start().await;
    let url = nats.url();
    for args in [&["submit", "-"][..], &["dead-letters", "list"], &["dead-letters", "drop", "@1"], &["watch", "--all"]]
    {
        let ran = run_with(&[("NATS_URL", url.as_str())], args, b"disk full").await;
        assert_gives_up(&ran, "tarsy migrate");
    }
}
