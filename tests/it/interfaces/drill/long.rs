//! The long drill: many iterations with large results, of which the context window holds a tenth.
//!
//! The suite runs a fifth of it, with a fifth of its window: the same recording, alert and pages. `./dev prove` runs
//! the drill itself, with its five hundred iterations.

use std::time::{Duration, Instant};

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_drill::{Drill, builtin};
use uuid::Uuid;

use crate::support::figures::is_proof;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::{TARSY, Tarsy};
use crate::support::system::{Setup, TestSystem};

const WHOLE: Length = Length {
    iterations: 500,
    window: 64_000,
    cited: 318,
};
const FIFTH: Length = Length {
    iterations: 100,
    window: 12_800,
    cited: 18,
};

struct Length {
    iterations: u32,
    /// Tokens of the context window.
    window: u32,
    /// The result that the analysis cites, counted from 1.
    cited: u32,
}

/// A text with replacements, each of which has to be needed.
fn replaced(text: &str, replacements: &[[&str; 2]]) -> String {
    let replace = |text: String, [from, to]: &[&str; 2]| {
        assert!(text.contains(from), "the drill has no {from} any more");
        text.replace(from, to)
    };
    replacements.iter().fold(text.to_owned(), replace)
}

/// The recording with 99 pages instead of 499: the pages 301 to 399.
fn short_recording(drill: &Drill) -> String {
    let replacements = [
        ["name: log-trail", "name: short-trail"],
        ["context_window: 64000", "context_window: 12800"],
        ["times: 318", "times: 18\n    from: 301"],
        ["times: 180", "times: 80"],
        ["journal_page#318", "journal_page#18"],
        ["journal_page#317", "journal_page#17"],
        ["journal_page#319", "journal_page#19"],
        ["journal_page#499", "journal_page#99"],
    ];
    replaced(drill.transcripts[0], &replacements)
}

fn short_config(drill: &Drill) -> String {
    let replacements = [
        ["transcript: log-trail", "transcript: short-trail"],
        ["context_window: 64k", "context_window: 12800"],
        ["max_iterations: 500", "max_iterations: 100"],
    ];
    let evidence =
        json!({"command": TARSY, "args": ["evidence-server", drill.name, "--no-delays"]});
    let own = replaced(drill.config, &replacements);
    // The lease of the system's streams.
    format!("{own}mcp_servers: {{drill: {evidence}}}\nworker: {{lease: 2s, probe_models: false}}\n")
}

async fn run_short() -> TestDatabase {
    let drill = builtin("log-trail").unwrap();
    let setup = Setup {
        transcript: Some(short_recording(&drill)),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    std::fs::write(system.file("tarsy.yaml"), short_config(&drill)).unwrap();
    let (_worker, _) = system.worker("w1").await;
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: drill.alert.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let end = system.follow(session).await.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted, "{end:?}");
    system.database
}

async fn run_whole() -> TestDatabase {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url());
    let env = [
        ("NATS_URL", nats_url.as_str()),
        ("DATABASE_URL", database_url),
    ];
    let mut drill = Tarsy::spawn("drill", &["drill", "log-trail"], &env);
    let (code, shown) = drill.finished_within(Duration::from_secs(600)).await;
    assert_eq!(
        code,
        0,
        "{}\n{}",
        shown.lines().rev().take(20).collect::<Vec<_>>().join("\n"),
        drill.log()
    );
    database
}

/// Runs it and asserts that each request fits the window, and that the analysis cites a result that was removed from
/// it.
pub(super) async fn assert_fits() {
    let began = Instant::now();
    let (
        Length {
            iterations,
            window,
            cited,
        },
        database,
    ) = if is_proof() {
        (WHOLE, run_whole().await)
    } else {
        (FIFTH, run_short().await)
    };
    println!("{iterations} iterations took {:?}", began.elapsed());
    // Like a provider, the recording refuses a request that is larger than its window.
    let calls =
        format!("SELECT count(*) = {iterations} AND count(error) = 0 FROM llm_interactions");
    assert!(database.holds(&calls));
    let largest = database.number("SELECT max(input_tokens)::bigint FROM llm_interactions");
    assert!(
        (i64::from(window) * 25 / 32..=i64::from(window)).contains(&largest),
        "{largest} of {window} tokens"
    );
    assert!(database.holds("SELECT count(*) BETWEEN 10 AND 60 FROM entries WHERE kind = 'elided'"));
    let index = cited - 1;
    let cited = format!(
        "SELECT count(*) FROM entries WHERE tool_call_id = 'call_{index}_0' AND event_seq IS NOT NULL \
         AND entry_no <= (SELECT max((body ->> 'up_to')::integer) FROM entries WHERE kind = 'elided')"
    );
    assert_eq!(
        database.number(&cited),
        1,
        "the analysis cites a result that was removed from the window"
    );
}
