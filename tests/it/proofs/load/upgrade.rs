//! An upgrade and its rollback with the binary of the previous version, which `./dev upgrade` builds. Its schema and
//! streams are migrated while its workers investigate.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use std::time::Duration;

use tarsy_core::timeline::EventType;

use super::{assert_all_completed, ended, paced, publish_many};
use crate::support::postgres::TestDatabase;
use crate::support::process::{TARSY, Tarsy};
use crate::support::stream::Timelines;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const VARIABLE: &str = "TARSY_TEST_PREVIOUS";
/// Sessions that are published at each of the four steps.
const BATCH: usize = 5;
const ANSWERS: usize = 12;
const CALL: Duration = Duration::from_millis(700);
/// Every worker is ended by a signal, so no lease expires.
const LEASE: Duration = Duration::from_secs(30);
const MIGRATIONS: &str = "SELECT count(*) FROM __diesel_schema_migrations";

/// The program of the previous version; `None` after printing why the test is skipped.
fn previous() -> Option<PathBuf> {
    let program = std::env::var_os(VARIABLE).filter(|program| !program.is_empty());
    if program.is_none() {
        // This bypasses the test harness, which captures the output of tests.
        let why = format!(
            "\nSKIPPED: load::upgrade: {VARIABLE} is not set; ./dev upgrade builds the previous version\n\n"
        );
        std::io::stderr().write_all(why.as_bytes()).unwrap();
    }
    program.map(PathBuf::from)
}

struct Upgrade {
    system: TestSystem,
    /// The number of alerts that were published.
    published: usize,
}

impl Upgrade {
    /// Starts a ready worker of a version.
    async fn worker(&self, program: &Path, name: &str) -> Tarsy {
        let env = self.system.env(self.system.database.url());
        let mut worker =
            Tarsy::spawn_program(program, name, &["worker", "--name", name], &env.each());
        worker.ready().await;
        worker
    }

    /// Publishes a batch, and returns when each of its sessions has written some checkpoints.
    async fn begin_batch(&mut self) {
        publish_many(&self.system, BATCH).await;
        self.published += BATCH;
        let begun = "SELECT count(*) FROM agent_executions WHERE checkpoint > 4";
        let all = i64::try_from(self.published).unwrap();
        eventually("every session makes progress", async || {
            self.system.database.number(begun) == all
        })
        .await;
    }

    /// Replaces workers by ready ones, as a rolling update does.
    async fn replace(&self, old: Vec<Tarsy>, program: &Path, names: [&str; 2]) -> Vec<Tarsy> {
        let new = vec![
            self.worker(program, names[0]).await,
            self.worker(program, names[1]).await,
        ];
        for mut worker in old {
            worker.terminate();
            assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
        }
        new
    }
}

/// The number of sessions that went from a worker of one version to one of another. The names begin with the version.
fn handed_over(timelines: &Timelines, from: &str, to: &str) -> usize {
    let went = |metadata: &serde_json::Value| {
        let name = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        name("previous_worker").starts_with(from) && name("worker").starts_with(to)
    };
    let resumed = |event: &&tarsy_core::timeline::TimelineEvent| {
        event.event_type == EventType::SessionResumed && went(&event.metadata)
    };
    timelines
        .values()
        .filter(|events| events.iter().find(resumed).is_some())
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn investigations_survive_an_upgrade_and_its_rollback() {
    let Some(previous) = previous() else { return };
    let transcript = Some(paced(ANSWERS, CALL));
    let database = Some(TestDatabase::empty());
    let setup = Setup {
        lease: LEASE,
        slots: 20,
        transcript,
        database,
        migrator: Some(&previous),
        ..Setup::default()
    };
    let mut run = Upgrade {
        system: TestSystem::start_with(setup).await,
        published: 0,
    };
    let (old, new) = (previous.as_path(), Path::new(TARSY));
    let before = run.system.database.number(MIGRATIONS);

    let workers = vec![run.worker(old, "old1").await, run.worker(old, "old2").await];
    run.begin_batch().await;
    run.system.migrate().await;
    let after = run.system.database.number(MIGRATIONS);
    // Workers of the previous version are restarted on the new schema, and begin sessions there.
    let workers = run.replace(workers, old, ["old3", "old4"]).await;
    run.begin_batch().await;
    let workers = run.replace(workers, new, ["new1", "new2"]).await;
    run.begin_batch().await;
    // The rollback keeps the schema.
    let workers = run.replace(workers, old, ["old5", "old6"]).await;
    run.begin_batch().await;
    ended(&run.system, run.published).await;
    run.system.queue_is_empty().await;
    assert_eq!(run.system.database.number(MIGRATIONS), after);

    let timelines = run.system.assert_all_invariants().await;
    assert_all_completed(&run.system, run.published);
    let counts = [("old", "old"), ("old", "new"), ("new", "old")]
        .map(|(from, to)| handed_over(&timelines, from, to));
    println!(
        "{} sessions, {} new migrations: old to old on the new schema {}, old to new {}, new to old {}",
        run.published,
        after - before,
        counts[0],
        counts[1],
        counts[2]
    );
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    drop(workers);
}
