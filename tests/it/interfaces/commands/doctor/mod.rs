//! `tarsy doctor` and `tarsy tools`, and what roles say of servers that cannot be used.

mod neighbours;
mod providers;

use std::time::Duration;

use serde_json::Value;

use super::{Ran, run, run_with};
use crate::support::system::TestSystem;

fn verdicts(ran: &Ran) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    ran.json()
        .iter()
        .map(|check| (word(&check["check"]), word(&check["verdict"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(check, verdict)| ((*check).to_owned(), (*verdict).to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_servers_every_check_fails_in_time_and_shows_no_password() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tarsy.yaml");
    let text = "mcp_servers:\n  none:\n    command: no-such-program\n    args: [hidden-word]\n";
    std::fs::write(&config, text).unwrap();
    let env = [
        ("NATS_URL", "nats://user:hidden-word@127.0.0.1:1"),
        (
            "DATABASE_URL",
            "postgres://user:hidden-word@127.0.0.1:1/tarsy",
        ),
        ("TARSY_LLM_ADDR", "127.0.0.1:1"),
        ("TARSY_CONFIG", config.to_str().unwrap()),
    ];
    let unreadable = [
        ("DATABASE_URL", "hidden-word"),
        ("NATS_URL", "127.0.0.1:1"),
        ("TARSY_LLM_ADDR", "127.0.0.1:1"),
    ];
    let (ran, other) = tokio::join!(
        run_with(&env, &["doctor", "--json"], b""),
        run_with(&unreadable, &["doctor", "--json"], b"")
    );
    let ran = ran.exits(1);
    let expected = [
        ("config", "ok"),
        ("nats", "fail"),
        ("streams", "warn"),
        ("postgres", "fail"),
        ("llm-service", "fail"),
        ("mcp none", "fail"),
        ("workers", "warn"),
    ];
    assert_eq!(verdicts(&ran), pairs(&expected), "{ran:#?}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    assert!(!format!("{ran:?}").contains("hidden-word"), "{ran:#?}");
    let fixes = other.exits(1).json();
    let expected = "set DATABASE_URL or --database-url to postgres://user@host:5432/database";
    assert_eq!(
        fixes[3]["fix"], expected,
        "a fix for an address is an address"
    );
    std::fs::write(&config, "worker:\n  lease: soon\n").unwrap();
    let ran = run_with(&env, &["doctor"], b"").await.exits(1);
    assert!(
        ran.out.starts_with("FAIL  config ") && ran.out.contains("4 of 6 checks failed"),
        "{}",
        ran.out
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_system_passes_every_check_and_a_changed_stream_fails_one() {
    let system = TestSystem::start(&[]).await;
    let ran = run(&system, &["doctor", "--json"]).await.exits(0);
    let mut found = verdicts(&ran);
    assert_eq!(found.pop().unwrap().0, "workers");
    let names = [
        "config",
        "nats",
        "streams",
        "postgres",
        "llm-service",
        "model scripted",
        "mcp drill",
    ];
    let expected = names.map(|check| (check, "ok"));
    assert_eq!(found, pairs(&expected), "{ran:#?}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    let postgres = ran.json()[3]["detail"].as_str().unwrap().to_owned();
    assert!(
        postgres.contains("(current)") && postgres.contains("clock skew"),
        "{postgres}"
    );
    let model = ran.json()[5]["detail"].as_str().unwrap().to_owned();
    assert!(
        model.ends_with("; replays recordings, no model is asked"),
        "{model}"
    );

    let jetstream =
        async_nats::jetstream::new(async_nats::connect(system.nats.url()).await.unwrap());
    let mut alerts = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    alerts.discard = async_nats::jetstream::stream::DiscardPolicy::Old;
    jetstream.update_stream(&alerts).await.unwrap();
    jetstream.delete_stream("TARSY_CONTROL").await.unwrap();
    system.database.execute(
        "DELETE FROM __diesel_schema_migrations WHERE version = (SELECT max(version) FROM __diesel_schema_migrations)",
    );
    let ran = run(&system, &["doctor"]).await.exits(1);
    let out = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "FAIL stream TARSY_ALERTS: discard is \"old\", must be \"new\"",
        "TARSY_CONTROL: missing. Fix: tarsy migrate",
        "(behind)",
        "checks failed",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_listed_with_the_reason_why_some_are_withheld() {
    let system = TestSystem::start(&[]).await;
    let ran = run(&system, &["tools"]).await.exits(0);
    assert!(
        ran.out.starts_with("drill: ") && ran.out.contains("yes, read-only"),
        "{}",
        ran.out
    );
    let all = run(&system, &["tools", "drill", "--json"])
        .await
        .exits(0)
        .json();
    assert!(
        all.iter()
            .any(|tool| tool["offered"] == true && tool["read_only"] == true),
        "{all:#?}"
    );
    let withheld: Vec<&Value> = all.iter().filter(|tool| tool["offered"] == false).collect();
    assert!(
        withheld
            .iter()
            .all(|tool| tool["withheld"] == "it may change something"),
        "{withheld:?}"
    );
    let unknown = run(&system, &["tools", "k8s"]).await.exits(1);
    assert!(
        unknown
            .err
            .contains("there is no MCP server \"k8s\"; defined: drill"),
        "{}",
        unknown.err
    );
    let none = run_with(&[], &["tools", "k8s"], b"").await.exits(1);
    assert!(
        none.err
            .contains("the configuration defines none (mcp_servers)"),
        "{}",
        none.err
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_tool_is_withheld_and_an_unknown_tool_name_is_reported() {
    let system = TestSystem::start(&[]).await;
    let tools = async || run(&system, &["tools", "drill", "--json"]).await.exits(0);
    let name = |tool: &Value| {
        tool["name"]
            .as_str()
            .unwrap()
            .trim_start_matches("drill.")
            .to_owned()
    };
    let before = tools().await.json();
    let read_only: Vec<String> = before
        .iter()
        .filter(|tool| tool["read_only"] == true)
        .map(name)
        .collect();
    let file = system.file("tarsy.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let keys = format!(
        "    deny: [{}, pods_exec]\n    read_only: [{}]\n    allow:",
        read_only[0], read_only[0]
    );
    std::fs::write(&file, text.replacen("    allow:", &keys, 1)).unwrap();

    let ran = tools().await;
    let denied = ran
        .json()
        .into_iter()
        .find(|tool| name(tool) == read_only[0])
        .unwrap();
    assert_eq!(
        (&denied["offered"], &denied["withheld"]),
        (&Value::Bool(false), &Value::from("deny names it"))
    );
    let offered = ran
        .json()
        .iter()
        .filter(|tool| tool["offered"] == true)
        .count();
    assert_eq!(offered, read_only.len() - 1, "nothing else has changed");
    let unknown = "the server has no tool of these names: deny: pods_exec";
    assert!(ran.err.contains(unknown), "{}", ran.err);
    let checks = run(&system, &["doctor", "--json"]).await.json();
    let check = checks
        .iter()
        .find(|check| check["check"] == "mcp drill")
        .unwrap();
    assert_eq!(check["verdict"], "warn");
    assert!(
        check["detail"].as_str().unwrap().contains(unknown),
        "{check}"
    );
}

/// The check `mcp drill` with these lines in the section of its server.
async fn drill_with(system: &TestSystem, lines: &str) -> Value {
    let file = system.file("tarsy.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replacen("    allow:", &format!("{lines}    allow:"), 1),
    )
    .unwrap();
    let checks = run(system, &["doctor", "--json"]).await.json();
    std::fs::write(&file, text).unwrap();
    checks
        .into_iter()
        .find(|check| check["check"] == "mcp drill")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_backend_is_a_fault_and_one_that_cannot_be_asked_is_named() {
    let system = TestSystem::start(&[]).await;
    let probe = |pod: &str| {
        format!(
            "    probe: {{tool: describe_pod, arguments: {{namespace: checkout, pod: {pod}}}}}\n"
        )
    };
    let answers = drill_with(&system, &probe("checkout-7d9f8b6c5-x2x9p")).await;
    assert_eq!(answers["verdict"], "ok", "{answers}");
    assert!(
        answers["detail"]
            .as_str()
            .unwrap()
            .contains("; drill.describe_pod answers in "),
        "{answers}"
    );
    let fails = drill_with(&system, &probe("none")).await;
    assert_eq!(fails["verdict"], "fail", "{fails}");
    assert!(
        fails["detail"]
            .as_str()
            .unwrap()
            .contains("the server answers, but drill.describe_pod fails: "),
        "{fails}"
    );
    let unknown = drill_with(&system, "    probe: {tool: nothing}\n").await;
    assert_eq!(unknown["verdict"], "fail", "{unknown}");
    assert!(
        unknown["detail"]
            .as_str()
            .unwrap()
            .contains("has no tool \"drill.nothing\""),
        "{unknown}"
    );
    let not_asked = drill_with(&system, "").await;
    assert_eq!(not_asked["verdict"], "ok", "{not_asked}");
    assert!(
        not_asked["detail"]
            .as_str()
            .unwrap()
            .ends_with("; backend not checked"),
        "{not_asked}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_without_tools_is_a_warning() {
    let checks = run_with(&[], &["doctor", "--json"], b"").await.json();
    let check = checks
        .iter()
        .find(|check| check["check"] == "tools")
        .unwrap();
    assert_eq!(check["verdict"], "warn");
    assert!(
        check["detail"]
            .as_str()
            .unwrap()
            .contains("its analysis is unproven"),
        "{check}"
    );
}
