//! The cooldown of an analysis with a mark.

use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::Mark;
use tarsy_engine::ports::{Journal, Opened, SessionEnd};

use super::{open, request};
use crate::adapters::store::fixture::{completed, investigated, new_id};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn a_marked_analysis_covers_no_alert_unless_it_is_the_third_in_a_row() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let marked = || SessionEnd {
        mark: Some(Mark::Incomplete),
        ..completed()
    };
    let same = || request(new_id(), Severity::High);
    investigated(&store, "fp", Severity::High, marked()).await;
    let mut last = None;
    for _ in 0..2 {
        let Opened::Session(claimed) = open(&store, same()).await else {
            panic!("not investigated")
        };
        last = Some(claimed.lease.session_id);
        store.finish(claimed.lease, marked()).await.unwrap();
    }
    assert_eq!(
        Some(open(&store, same()).await),
        last.map(Opened::CoveredByCooldown),
        "the third in a row covers"
    );
    assert_eq!(
        database.text("SELECT string_agg(DISTINCT mark, ' ') FROM alert_sessions"),
        "incomplete"
    );

    // An older one is outside of the cooldown: only two are left.
    database.execute(
        "UPDATE alert_sessions SET finished_at = finished_at - interval '61 min' \
         WHERE finished_at = (SELECT min(finished_at) FROM alert_sessions)",
    );
    let Opened::Session(claimed) = open(&store, same()).await else {
        panic!("not investigated")
    };
    store.finish(claimed.lease, completed()).await.unwrap();
    let whole = claimed.lease.session_id;
    assert_eq!(
        open(&store, same()).await,
        Opened::CoveredByCooldown(whole),
        "a whole analysis covers"
    );
}
