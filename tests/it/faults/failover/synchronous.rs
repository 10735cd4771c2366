//! Synchronous replication: a failover loses nothing.

use tarsy_core::timeline::{EventType, TimelineEvent};

use super::{CALLED, Pair, arrivals, losses};

const SESSIONS: usize = 6;
/// Sessions that end before the primary dies.
const ENDED: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_synchronous_standby_loses_no_commit() {
    let Some(mut pair) = Pair::start(SESSIONS, &[CALLED]).await else {
        return;
    };
    pair.primary.require_synchronous_replication().await;
    let _workers = [pair.worker("w1").await, pair.worker("w2").await];
    let sessions = pair.publish_many(0..SESSIONS).await;
    let mut called = arrivals(&mut pair.system, SESSIONS).await;
    for call in called.drain(..ENDED) {
        call.open().await;
    }
    for session in sessions.iter().take(ENDED) {
        pair.system
            .follow(*session)
            .await
            .until(EventType::LlmToolCall)
            .await;
    }

    let began = pair.fail_over().await;
    for call in called {
        call.open().await;
    }
    pair.all_settled().await;
    println!(
        "all sessions are settled {:.1?} after the kill -9",
        began.elapsed()
    );
    let timelines = pair.system.assert_all_invariants().await;
    assert_eq!(timelines.len(), SESSIONS);
    pair.assert_calls_sent_once(SESSIONS);
    for (session, events) in &timelines {
        assert_eq!(
            events.last().unwrap().event_type,
            EventType::SessionCompleted,
            "{session}"
        );
        assert_eq!(losses(events), Vec::<&TimelineEvent>::new(), "{session}");
    }
}
