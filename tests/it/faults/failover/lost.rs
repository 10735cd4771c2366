//! Asynchronous replication: the last commits of the primary are lost.

use std::time::Instant;

use serde_json::json;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::Outbox;

use super::{ASKED, CALLED, Pair, TOOL, arrivals, losses};
use crate::support::system::follow_on;
use crate::support::wait::eventually;

/// Sessions of which the standby has the rows up to the question to the model.
const KNOWN: usize = 6;
/// Of these, sessions that end before the primary dies. The standby has not their end.
const ENDED: usize = 2;
/// Sessions that begin when the standby receives nothing any more, and run when the primary dies.
const UNKNOWN: usize = 2;
/// A session that begins and ends meanwhile: the queue has no message of it any more.
const GONE: usize = 1;
const ALL: usize = KNOWN + UNKNOWN + GONE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_ends_once_on_a_standby_that_lacks_the_last_commits() {
    let Some(mut pair) = Pair::start(ALL, &[ASKED]).await else {
        return;
    };
    let _workers = [pair.worker("w1").await, pair.worker("w2").await];
    let mut sessions = pair.publish_many(0..KNOWN).await;
    let asked = arrivals(&mut pair.system, KNOWN).await;
    pair.standby.has_everything(&pair.primary).await;
    pair.standby.cut().await;

    // From here on every commit is on the primary only, and its events are on the stream.
    pair.system.gates.open_all();
    pair.system.gates.watch(CALLED);
    for call in asked {
        call.open().await;
    }
    let mut called = arrivals(&mut pair.system, KNOWN).await;
    let gone = pair.publish(ALL - GONE).await;
    called.extend(arrivals(&mut pair.system, GONE).await);
    for call in called.drain(KNOWN - ENDED..) {
        call.open().await;
    }
    let settled = "SELECT count(*) FROM alerts WHERE settled_at IS NOT NULL";
    eventually("some sessions are settled", async || {
        pair.system.database.number(settled) == ENDED as i64 + 1
    })
    .await;
    sessions.extend(pair.publish_many(KNOWN..KNOWN + UNKNOWN).await);
    called.extend(arrivals(&mut pair.system, UNKNOWN).await);
    for session in &sessions {
        follow_on(&pair.system.nats.url(), *session)
            .await
            .until(EventType::LlmToolCall)
            .await;
    }

    let began = pair.fail_over().await;
    let kept = "SELECT count(*) FILTER (WHERE s.status = 'running') FROM alerts LEFT JOIN alert_sessions s ON session_id = alert_id";
    assert_eq!(
        pair.system.database.number(kept),
        KNOWN as i64,
        "no session has ended on the standby, and it lacks {UNKNOWN}"
    );
    pair.system.gates.open_all();
    for call in called {
        call.open().await;
    }
    pair.all_settled().await;
    eventually("every alert is known again", async || {
        pair.system.database.number(settled) == (KNOWN + UNKNOWN) as i64
    })
    .await;
    assert_recovered(&pair, gone, began).await;
}

/// Asserts that every session but the gone one is whole in the database again.
async fn assert_recovered(pair: &Pair, gone: SessionId, began: Instant) {
    println!(
        "all sessions are settled {:.1?} after the kill -9",
        began.elapsed()
    );
    let timelines = pair.system.timelines().await;
    // Only the stream remembers a session that began and ended without the standby.
    let end = timelines[&gone].last().unwrap();
    assert_eq!(
        (end.event_type.clone(), losses(&timelines[&gone]).len()),
        (EventType::SessionCompleted, 0)
    );
    let stored = format!("SELECT count(*) FROM timeline_events WHERE session_id = '{gone}'");
    assert_eq!(pair.system.database.number(&stored), 0);
    pair.assert_calls_sent_once(ALL);
    let mut restored = vec![gone.to_string()];
    let store = pair.system.database.store();
    for (session, events) in timelines.iter().filter(|(session, _)| **session != gone) {
        let stored = Outbox::events(&store, *session, 0, 1000).await.unwrap();
        assert_eq!(&stored, events, "the table equals the stream");
        assert!(
            (1..)
                .zip(events)
                .all(|(number, event)| event.session_seq == number),
            "{events:#?}"
        );
        let ends = events
            .iter()
            .filter(|event| event.event_type.is_end())
            .count();
        assert_eq!(
            (ends, &events.last().unwrap().event_type),
            (1, &EventType::SessionCompleted)
        );
        let losses = losses(events);
        if losses.is_empty() {
            restored.push(session.to_string());
        }
        for loss in losses {
            assert_eq!(
                loss.metadata["calls_not_sent_again"],
                json!([format!("drill.{TOOL}")]),
                "{events:#?}"
            );
        }
    }
    assert_eq!(
        restored.len(),
        GONE + ENDED,
        "the end of these was restored, so no step is taken again"
    );
    let others = format!("session_id NOT IN ('{}')", restored.join("', '"));
    pair.system.assert_row_invariants(&others);
}
