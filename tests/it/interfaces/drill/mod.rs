//! `tarsy drill`: every built-in drill, with and without a kill of its worker.

mod approvals;
mod long;
mod sub_agents;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::{TARSY, Tarsy};

#[tokio::test]
async fn a_process_of_a_drill_ends_with_its_standard_input() {
    let mut command = Command::new(TARSY);
    command.args(["llm-service", "--with-parent", "--listen", "127.0.0.1:0"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut service = command.spawn().unwrap();
    let input = service.stdin.take().unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.take().unwrap())
        .read_line(&mut line)
        .await
        .unwrap();
    assert!(line.starts_with("ready "), "{line}");
    assert_eq!(service.try_wait().unwrap(), None, "its input is still open");
    drop(input);
    let ended = tokio::time::timeout(Duration::from_secs(20), service.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drill_shows_its_own_session_after_an_earlier_drill_was_killed() {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let env = [
        ("NATS_URL", nats_url.as_str()),
        ("DATABASE_URL", database_url),
    ];
    let mut killed = Tarsy::spawn("killed drill", &["drill"], &env);
    killed.line_with("drill.query_range").await;
    killed.kill().await;

    let mut next = Tarsy::spawn("next drill", &["drill"], &env);
    let (code, shown) = next.finished().await;
    assert_eq!(code, 0, "{}", next.log());
    assert!(
        shown.contains("revision 43") && !shown.contains("resumed"),
        "{shown}"
    );
    assert!(
        !shown.contains("  ok  ") && next.log().contains("  ok  llm-service"),
        "progress belongs on standard error: {shown}"
    );
}

/// Runs a drill to its end and returns its output. The drill itself compares the timeline with its expected result.
async fn run_drill(arguments: &[&str]) -> String {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let env = [
        ("NATS_URL", nats_url.as_str()),
        ("DATABASE_URL", database_url),
    ];
    let mut drill = Tarsy::spawn("drill", &[&["drill"], arguments].concat(), &env);
    let (code, shown) = drill.finished().await;
    let log = drill.log();
    assert_eq!(code, 0, "{shown}\n{log}");
    assert_summary(&log, arguments.contains(&"--kill"));
    shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drill_again_shows_the_first_investigation_to_the_second_one() {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let mut drill = Tarsy::spawn(
        "drill",
        &["drill", "--again"],
        &[("NATS_URL", &nats_url), ("DATABASE_URL", database_url)],
    );
    let (code, shown) = drill.finished().await;
    let log = drill.log();
    assert_eq!(code, 0, "{shown}\n{log}");
    for text in [
        "  This alert was investigated before. Between the fences is data",
        "  Once in 30 days:\n",
        "\"Seen before\": 1 time in the 30 days before, in session ",
    ] {
        assert!(log.contains(text), "{text} in\n{log}");
    }
    let past = "SELECT metadata ->> 'past' || ' in ' || (metadata ->> 'past_days') FROM timeline_events \
                WHERE event_type = 'session_started' AND metadata ? 'past'";
    assert_eq!(database.text(past), "1 in 30");
    let id = database
        .text("SELECT session_id::text FROM alert_sessions ORDER BY created_at DESC LIMIT 1");
    let command = async |arguments: &[&str]| {
        let mut command = Tarsy::spawn("tarsy", arguments, &[("DATABASE_URL", database_url)]);
        let (code, shown) = command.finished().await;
        assert_eq!(code, 0, "{}", command.log());
        shown
    };
    let report = command(&["sessions", "show", &id, "--report"]).await;
    assert!(
        report.contains("## Seen before\n\n1 time in the 30 days before.\n\n- "),
        "{report}"
    );
    let listed = command(&["sessions", "past", &id, "--json"]).await;
    let listed: Value = serde_json::from_str(listed.trim()).unwrap();
    assert!(
        listed["cause"]
            .as_str()
            .is_some_and(|cause| !cause.is_empty()),
        "{listed}"
    );
    let table = command(&["sessions", "past", &id, "--days", "1"]).await;
    assert!(table.starts_with("session "), "{table}");
    let whole = command(&["sessions", "show", &id]).await;
    assert!(
        whole.contains("1 time in the 30 days before (tarsy sessions past"),
        "{whole}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_of_a_drill_is_shown_the_time_of_its_evidence() {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let mut drill = Tarsy::spawn(
        "drill",
        &["drill", "oom-killed"],
        &[("NATS_URL", &nats_url), ("DATABASE_URL", database_url)],
    );
    assert_eq!(drill.finished().await.0, 0, "{}", drill.log());
    let behind = database.number(
        "SELECT extract(epoch FROM e.created_at)::bigint + (p.plan #>> '{stages,0,agents,0,clock,offset_s}')::bigint \
         FROM session_plans p JOIN entries e USING (session_id) WHERE e.entry_no = 1",
    );
    let recorded = tarsy_drill::builtin("oom-killed")
        .unwrap()
        .evidence()
        .unwrap()
        .now
        .unwrap()
        .timestamp();
    assert!(
        (recorded..recorded + 120).contains(&behind),
        "{behind} instead of {recorded}"
    );
}

/// A drill in a folder of its own: that of a full disk, about another host.
fn folder_of_a_drill() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/drills/disk-full");
    std::fs::create_dir(folder.path().join("evidence")).unwrap();
    for part in ["", "evidence"] {
        for entry in std::fs::read_dir(source.join(part))
            .unwrap()
            .map(Result::unwrap)
        {
            if entry.path().is_file() {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let text = text
                    .replace("HostDiskSpaceRunsOut", "OwnDiskAlert")
                    .replace("debezium_orders", "own_slot");
                std::fs::write(folder.path().join(part).join(entry.file_name()), text).unwrap();
            }
        }
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drill_in_a_folder_of_ones_own_survives_a_kill_as_well() {
    let folder = folder_of_a_drill();
    let shown = run_drill(&[folder.path().to_str().unwrap(), "--kill"]).await;
    assert!(
        shown.contains("own_slot")
            && shown.contains("resumed")
            && !shown.contains("debezium_orders"),
        "{shown}"
    );
}

#[tokio::test]
async fn what_a_folder_lacks_is_named_before_anything_is_started() {
    let folder = folder_of_a_drill();
    let path = folder.path().to_str().unwrap();
    std::fs::remove_file(folder.path().join("rubric.yaml")).unwrap();
    for (arguments, words) in [
        (
            &["drill", path, "--provider", "ollama"][..],
            "has no rubric.yaml: what the report of a real model has to say",
        ),
        (
            &["drill", "./no-such-folder"],
            "there is no folder ./no-such-folder",
        ),
    ] {
        let mut drill = Tarsy::spawn("drill", arguments, &[]);
        let (code, _) = drill.finished().await;
        assert_eq!(code, 78, "{}", drill.log());
        assert!(drill.log().contains(words), "{}", drill.log());
    }
}

/// Asserts that the drill ends with what it measured.
fn assert_summary(log: &str, kill: bool) {
    let line = |what: &str| {
        log.lines()
            .find_map(|line| line.trim().strip_prefix(what))
            .map(str::trim)
    };
    let (killed, taken_over) = (line("killed  "), line("taken over  "));
    assert_eq!(
        (killed.is_some(), taken_over.is_some()),
        (kill, kill),
        "{log}"
    );
    if let (Some(killed), Some(taken_over)) = (killed, taken_over) {
        let (worker, other) = if killed.contains("worker w1") {
            ("w1", "w2")
        } else {
            ("w2", "w1")
        };
        assert!(
            killed.starts_with(&format!("worker {worker} with SIGKILL after event ")),
            "{log}"
        );
        assert!(
            taken_over.starts_with(&format!("by {other} after ")),
            "{log}"
        );
        // A worker may die between two calls.
        let sent_again = line("sent again  ").unwrap();
        assert!(
            sent_again.contains("read-only: drill.") || sent_again.starts_with("0 of "),
            "{log}"
        );
    } else {
        let sent_again = line("sent again  ").unwrap();
        assert!(
            sent_again.starts_with("0 of ") && sent_again.contains("; 0 of "),
            "{log}"
        );
    }
    assert_eq!(
        line("changes  "),
        Some("0 calls sent that may change something"),
        "{log}"
    );
    assert!(
        line("timeline  ")
            .unwrap()
            .ends_with(" events, numbered without a gap, 1 end"),
        "{log}"
    );
}

/// Asserts that the output has what every run of the drill on a full disk shows.
fn assert_disk_full(shown: &str) {
    let marks = [
        "react",
        "directory_sizes",
        "malformed",
        "debezium_orders",
        "completed",
    ];
    assert!(marks.iter().all(|mark| shown.contains(mark)), "{shown}");
    assert!(
        !shown.contains("Action Input"),
        "the raw text is hidden: {shown}"
    );
}

/// Asserts that the output has what every run of the drill on a bad deploy shows.
fn assert_bad_deploy(shown: &str) {
    let marks = [
        "native-thinking",
        "rollout_history",
        "products.tax_class",
        "catalog-migrate-5-8-0",
        "completed",
    ];
    assert!(marks.iter().all(|mark| shown.contains(mark)), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_investigated_by_a_react_agent() {
    let shown = run_drill(&["disk-full"]).await;
    assert_disk_full(&shown);
    assert!(!shown.contains("resumed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_has_the_same_result_when_the_worker_is_killed() {
    let shown = run_drill(&["disk-full", "--kill"]).await;
    assert_disk_full(&shown);
    assert!(shown.contains("resumed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_deploy_has_a_forced_conclusion_at_the_iteration_limit() {
    let shown = run_drill(&["bad-deploy"]).await;
    assert_bad_deploy(&shown);
    assert!(!shown.contains("resumed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_deploy_has_a_forced_conclusion_also_when_the_worker_is_killed() {
    let shown = run_drill(&["bad-deploy", "--kill"]).await;
    assert_bad_deploy(&shown);
    assert!(shown.contains("resumed"), "{shown}");
}

/// Asserts that the output has what every run of the drill on transaction ids shows.
fn assert_xid_wraparound(shown: &str) {
    let marks = [
        "ImportError",
        "1,440.5 ids a second",
        "Google Search",
        "URL Context",
        "wraparound.[^1]",
        "[^2] PostgreSQL 16",
    ];
    assert!(marks.iter().all(|mark| shown.contains(mark)), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_ids_are_investigated_with_code_and_a_cited_search() {
    let shown = run_drill(&["xid-wraparound"]).await;
    assert_xid_wraparound(&shown);
    assert!(!shown.contains("resumed"), "{shown}");
}

/// Asserts that the output has what every run of the drill with two agents shows.
fn assert_team(shown: &str) {
    let marks = [
        "investigation started: changes, runtime",
        "investigation synthesis started",
        "revision_diff",
        "deployment_logs",
        "14 × 40 = 560",
        "completed",
    ];
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(marks.iter().all(|mark| words.contains(mark)), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_findings_of_two_agents_on_a_bad_deploy_are_synthesised() {
    let shown = run_drill(&["bad-deploy-team"]).await;
    assert_team(&shown);
    assert!(!shown.contains("resumed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_ids_have_the_same_result_when_the_worker_is_killed() {
    let shown = run_drill(&["xid-wraparound", "--kill"]).await;
    assert_xid_wraparound(&shown);
    assert!(shown.contains("resumed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_findings_of_two_agents_are_synthesised_when_their_worker_is_killed() {
    let shown = run_drill(&["bad-deploy-team", "--kill"]).await;
    assert_team(&shown);
    assert!(shown.contains("resumed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_iterations_fit_a_window_of_a_tenth_of_their_results() {
    long::assert_fits().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_about_an_ended_drill_is_answered() {
    let question = "Would 768Mi be enough?";
    let shown = run_drill(&["--kill", "--ask", question]).await;
    let answered = shown
        .split_once(question)
        .map(|(_, answered)| answered)
        .unwrap_or_default();
    assert!(
        shown.contains("resumed") && answered.contains("drill.query_range"),
        "{shown}"
    );
    assert!(
        answered.contains("768Mi") && answered.contains("completed"),
        "{shown}"
    );
}

#[tokio::test]
async fn drills_are_listed_and_an_unknown_name_is_refused_with_the_list() {
    let mut list = Tarsy::spawn("list", &["drill", "--list"], &[]);
    let (code, shown) = list.finished().await;
    let names: Vec<_> = shown
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        (code, names),
        (
            0,
            vec![
                "approve-restart",
                "bad-deploy",
                "bad-deploy-team",
                "disk-full",
                "log-trail",
                "oom-killed",
                "sub-agents",
                "xid-wraparound"
            ]
        ),
        "{shown}"
    );
    let mut list = Tarsy::spawn("list", &["drill", "--list", "--json"], &[]);
    let (code, shown) = list.finished().await;
    let listed: Vec<Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (code, listed.len(), &listed[2]["name"]),
        (0, 8, &json!("bad-deploy-team")),
        "{shown}"
    );
    let mut unknown = Tarsy::spawn("unknown", &["drill", "disk-ful"], &[]);
    let (code, _) = unknown.finished().await;
    assert_eq!(code, 2, "wrong usage");
    assert!(
        unknown.log().contains(
            "no drill \"disk-ful\"; there are: approve-restart, bad-deploy, bad-deploy-team, disk-full, log-trail, oom-killed, sub-agents, xid-wraparound"
        ),
        "{}",
        unknown.log()
    );
}
