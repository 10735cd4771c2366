//! The drill as a command: what it leaves behind, and what it makes of what others left.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::{TARSY, Tarsy};

#[tokio::test]
async fn a_part_of_a_drill_ends_with_its_input() {
    let mut command = Command::new(TARSY);
    command.args(["llm-service", "--with-parent", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut service = command.spawn().unwrap();
    let input = service.stdin.take().unwrap();
    let mut said = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut said).await.unwrap();
    assert!(said.starts_with("ready "), "{said}");
    assert_eq!(service.try_wait().unwrap(), None, "its input is still open");
    drop(input);
    let ended = tokio::time::timeout(Duration::from_secs(20), service.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drill_shows_its_own_investigation_also_after_one_that_was_killed() {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let env = [("NATS_URL", nats_url.as_str()), ("DATABASE_URL", database_url)];
    let mut killed = Tarsy::spawn("killed drill", &["drill"], &env);
    killed.line_with("drill.query_range").await;
    killed.kill().await;

    let mut next = Tarsy::spawn("next drill", &["drill"], &env);
    let (code, shown) = next.finished().await;
    assert_eq!(code, 0, "{}", next.log());
    assert!(shown.contains("revision 43") && !shown.contains("resumed"), "{shown}");
}
