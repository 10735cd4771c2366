//! The backup and restore drill: a backup during running investigations, the loss of the database, with or without the
//! broker, and new workers on the restored data.

use std::time::Instant;

use diesel::prelude::*;
use serde_json::json;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::Outbox;

use super::{ASKED, CALLED, TOOL, arrivals, losses, publish, setup, transcripts};
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const NAME: &str = "drill";
/// Sessions whose call is in flight at the time of the backup.
const CALLING: usize = 3;
/// Sessions that wait for their first answer at the time of the backup, and send their call after it.
const ASKING: usize = 3;
/// Alerts that are published after the backup.
const LATER: usize = 1;
const ALL: usize = CALLING + ASKING + LATER;
const LEFT: &str = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";

#[derive(Clone, Copy, Debug)]
enum Backup {
    /// `pg_dump` and `pg_restore`.
    Dump,
    /// `pg_basebackup`.
    Base,
}

/// A system whose database was destroyed and restored. No worker runs.
struct Drill {
    system: TestSystem,
    /// In the order of the recordings.
    sessions: Vec<SessionId>,
    /// Those whose call was in flight at the time of the backup, as text.
    calling: String,
    /// An alert of which the end was committed after the backup.
    ended: SessionId,
    _server: PostgresServer,
}

/// Runs investigations, makes a backup, continues, destroys the database and restores the backup.
async fn destroyed_and_restored(backup: Backup) -> Option<Drill> {
    let mut server = PostgresServer::start().await;
    if !server.can_back_up() {
        return None;
    }
    create(&server);
    let recordings = transcripts(ALL);
    let recordings: Vec<&str> = recordings.iter().map(String::as_str).collect();
    let database = TestDatabase::kept(server.url_of(NAME));
    let mut system = TestSystem::start_with(Setup {
        watched: &[ASKED],
        ..setup(&recordings, database)
    })
    .await;
    let mut workers = [system.worker("w1").await.0, system.worker("w2").await.0];
    let mut sessions = Vec::new();
    for number in 0..CALLING + ASKING {
        sessions.push(publish(&system, number).await);
    }
    let mut asked = arrivals(&mut system, CALLING + ASKING).await;
    system.gates.open_all();
    system.gates.watch(CALLED);
    for call in asked.drain(..CALLING) {
        call.open().await;
    }
    let mut called = arrivals(&mut system, CALLING).await;
    let calling = system
        .database
        .text("SELECT string_agg(session_id::text, ' ') FROM entries WHERE kind = 'started'");

    let began = Instant::now();
    let (dump, copy) = match backup {
        Backup::Dump => (server.dump(NAME), None),
        Backup::Base => (Vec::new(), Some(server.base_backup())),
    };
    println!(
        "{backup:?}: backup of {} sessions in {:.1?}, {} bytes",
        sessions.len(),
        began.elapsed(),
        dump.len()
    );

    for call in asked {
        call.open().await;
    }
    sessions.push(publish(&system, ALL - LATER).await);
    let later = arrivals(&mut system, ASKING + LATER).await;
    called.pop().unwrap().open().await;
    eventually("a session ends after the backup", async || {
        system.database.number(LEFT) == ALL as i64 - 1
    })
    .await;
    let ended = system
        .database
        .text("SELECT alert_id::text FROM alerts WHERE settled_at IS NOT NULL");
    for session in &sessions {
        system
            .follow(*session)
            .await
            .until(EventType::LlmToolCall)
            .await;
    }

    for worker in &mut workers {
        worker.kill().await;
    }
    server.kill().await;
    drop((server, called, later));
    let began = Instant::now();
    let restored = match copy {
        Some(mut copy) => {
            copy.restart().await;
            copy
        }
        None => {
            let server = PostgresServer::start().await;
            create(&server);
            server.restore_dump(NAME, &dump);
            server
        }
    };
    println!("{backup:?}: restored in {:.1?}", began.elapsed());
    system.database = TestDatabase::kept(restored.url_of(NAME));
    system.gates.open_all();
    Some(Drill {
        system,
        sessions,
        calling,
        ended: SessionId(ended.parse().unwrap()),
        _server: restored,
    })
}

fn create(server: &PostgresServer) {
    let mut admin = PgConnection::establish(&server.url()).unwrap();
    diesel::sql_query(format!("CREATE DATABASE {NAME}"))
        .execute(&mut admin)
        .unwrap();
}

impl Drill {
    /// Starts workers and waits until this many alerts are settled.
    async fn settled(&self, count: usize) -> [Tarsy; 2] {
        let began = Instant::now();
        self.system.migrate().await;
        let workers = [
            self.system.worker("w3").await.0,
            self.system.worker("w4").await.0,
        ];
        let settled =
            format!("SELECT count(*) = {count} AND bool_and(settled_at IS NOT NULL) FROM alerts");
        eventually("every alert is settled", async || {
            self.system.database.holds(&settled)
        })
        .await;
        self.system.queue_is_empty().await;
        println!(
            "{count} sessions are settled {:.1?} after the start of tarsy migrate",
            began.elapsed()
        );
        workers
    }

    fn was_calling(&self, session: SessionId) -> bool {
        self.calling.contains(&session.to_string())
    }

    /// The number of times that the call of each recording was sent.
    fn sent(&self) -> Vec<u32> {
        let calls = self.system.tool_calls();
        let of = |number: usize| {
            calls
                .iter()
                .find(|(call, _)| call.contains(&format!("\"run\":{number}}}")))
                .map(|(_, sent)| *sent)
        };
        (0..ALL)
            .map(|number| of(number).unwrap_or_default())
            .collect()
    }
}

/// With the stream, a restored database continues like one that has failed over.
async fn assert_continued(drill: &Drill) {
    let _workers = drill.settled(ALL).await;
    assert_eq!(drill.sent(), [1; ALL], "no call is sent twice");
    let timelines = drill.system.timelines().await;
    let store = drill.system.database.store();
    let mut reported = Vec::new();
    for session in &drill.sessions {
        let events = &timelines[session];
        assert_eq!(
            &Outbox::events(&store, *session, 0, 1000).await.unwrap(),
            events,
            "the table equals the stream"
        );
        let ends = events
            .iter()
            .filter(|event| event.event_type.is_end())
            .count();
        assert_eq!(
            (ends, &events.last().unwrap().event_type),
            (1, &EventType::SessionCompleted),
            "{events:#?}"
        );
        for loss in losses(events) {
            assert_eq!(
                loss.metadata["calls_not_sent_again"],
                json!([format!("drill.{TOOL}")])
            );
            reported.push(*session);
        }
    }
    // The backup has all steps of the others but for one end, which was restored.
    let others = drill
        .sessions
        .iter()
        .copied()
        .filter(|session| !drill.was_calling(*session));
    assert_eq!(
        reported,
        others.collect::<Vec<_>>(),
        "the sessions that went on after the backup"
    );
    drill
        .system
        .assert_row_invariants(&format!("session_id <> '{}'", drill.ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn investigations_continue_on_a_restored_dump() {
    let Some(drill) = destroyed_and_restored(Backup::Dump).await else {
        return;
    };
    assert_continued(&drill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn investigations_continue_on_a_restored_base_backup() {
    let Some(drill) = destroyed_and_restored(Backup::Base).await else {
        return;
    };
    assert_continued(&drill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_database_queues_its_alerts_again_when_the_broker_is_lost_too() {
    let Some(mut drill) = destroyed_and_restored(Backup::Dump).await else {
        return;
    };
    drill.system.nats = NatsServer::start().await;
    let known = CALLING + ASKING;
    let _workers = drill.settled(known).await;
    let timelines = drill.system.assert_all_invariants().await;
    assert_eq!(
        timelines.keys().copied().collect::<Vec<_>>(),
        drill.sessions[..known]
    );
    // Only the stream could have shown that these calls were sent after the backup.
    let sent = drill.sessions[..known]
        .iter()
        .map(|session| if drill.was_calling(*session) { 1 } else { 2 });
    assert_eq!(drill.sent(), sent.chain([1; LATER]).collect::<Vec<u32>>());
    // The last alert was neither in the backup nor in the new queue: its producer has to publish it again.
    let again = publish(&drill.system, ALL - LATER).await;
    drill.system.follow(again).await.finish().await;
}
