//! `tarsy sessions list --search` uses the index of words and reads no text.

use std::time::Duration;

use tarsy_store::SessionFilter;

use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn a_search_uses_the_index_of_words() {
    let database = TestDatabase::create().await;
    let name = database.text("SELECT current_database()::text");
    // The planner would scan an empty table.
    database.execute(&format!("ALTER DATABASE {name} SET enable_seqscan = off"));
    let store = database.store();
    let filter = SessionFilter {
        limit: 5,
        search: Some("disk -full".to_owned()),
        ..SessionFilter::default()
    };
    assert_eq!(store.list_sessions(filter).await.unwrap(), []);
    // Statistics are sent when a connection ends.
    drop(store);
    let used = "SELECT count(*) FROM pg_stat_user_indexes WHERE idx_scan > 0 \
                AND indexrelname = 'session_words_words'";
    let used = async {
        while database.number(used) < 1 {
            tokio::time::sleep(Duration::from_millis(50)).await; // pacing of looks: statistics have no signal
        }
    };
    tokio::time::timeout(super::COMMAND_TIMEOUT, used)
        .await
        .expect("a search reads a whole table");
}
