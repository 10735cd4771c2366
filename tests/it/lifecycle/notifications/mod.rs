//! Notifications of real workers to small endpoints of the test.

mod email;
mod ends;
mod kills;
mod outages;
mod slack;
mod webhook;

use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// An alert with this text fails.
const FAILING: &str = "FailingDrill";
/// The recording of such an alert.
const FAILURE: &str = "name: failing\nmatch: FailingDrill\nanswers:\n  \
                       - {chunks: [{text: never}], fail: {code: invalid_request, message: refused}}\n";

/// A system with these routes, and pages to which its messages lead.
async fn system(routes: &str) -> TestSystem {
    with_routes(
        routes,
        Setup {
            transcripts: &[FAILURE],
            ..Setup::default()
        },
    )
    .await
}

async fn with_routes(routes: &str, setup: Setup<'_>) -> TestSystem {
    let sections =
        format!("web: {{public_url: 'https://tarsy.example.com'}}\nnotifications:\n{routes}");
    TestSystem::start_with(Setup {
        sections: &sections,
        ..setup
    })
    .await
}

/// Publishes a text as an alert of this priority.
async fn publish(system: &TestSystem, priority: Priority, body: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority,
        suffix: None,
        body: body.as_bytes().to_vec(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// Waits until as many rows of notifications exist and all of them are closed; returns the number of each outcome.
async fn closed(system: &TestSystem, rows: usize) -> String {
    let sql =
        format!("SELECT count(*) = {rows} AND count(*) = count(closed_at) FROM notifications");
    eventually(&format!("{rows} notifications are closed"), async || {
        system.database.holds(&sql)
    })
    .await;
    outcomes(system)
}

/// The closed rows by their outcome: `filtered 1, sent 2`.
fn outcomes(system: &TestSystem) -> String {
    system.database.text(
        "SELECT coalesce(string_agg(outcome || ' ' || count, ', ' ORDER BY outcome), '') FROM \
         (SELECT outcome, count(*) FROM notifications WHERE closed_at IS NOT NULL GROUP BY outcome) AS counted",
    )
}
