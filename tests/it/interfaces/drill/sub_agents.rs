//! The drill `sub-agents`: both are at work when their worker is killed, and no call is made twice.

use super::*;

/// The standard output and the log of the drill.
async fn run(arguments: &[&str]) -> [String; 2] {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let mut drill = Tarsy::spawn(
        "drill",
        &[&["drill", "sub-agents"], arguments].concat(),
        &[("NATS_URL", &nats_url), ("DATABASE_URL", database_url)],
    );
    let (code, shown) = drill.finished().await;
    let log = drill.log();
    assert_eq!(code, 0, "{shown}\n{log}");
    assert_eq!(
        database.text(
            "SELECT string_agg(agent, ' ' ORDER BY agent) FROM agent_executions WHERE parent_execution_id IS NOT NULL"
        ),
        "db logs",
        "each sub-agent has one execution"
    );
    [shown, log]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sub_agents_survive_their_worker_and_no_tool_is_called_twice() {
    let [shown, log] = run(&["--kill"]).await;
    assert_summary(&log, true);
    for text in [
        "sub-agents   dispatched: logs, db; 2 at work when the worker was killed; ended: db, logs; results: logs, db",
        "sent again   0 of 4 tool calls; ",
    ] {
        assert!(log.contains(text), "{text} in\n{log}");
    }
    assert!(
        shown.contains("dispatched logs") && shown.contains("AccessExclusiveLock"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_results_of_sub_agents_stand_in_the_order_of_their_calls() {
    let [_, log] = run(&[]).await;
    assert_summary(&log, false);
    let text = "dispatched: logs, db; ended: db, logs; results: logs, db";
    assert!(log.contains(text), "{log}");
}
