//! Limits of what a producer can cause: permissions of the broker, headers and fingerprints of webhooks.

mod permissions;
mod webhooks;

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use crate::support::system::TestSystem;

/// A tool of the drill that changes something.
const RESTART: &str = "drill.restart_deployment";

/// A completed investigation of the drill.
async fn investigated(system: &TestSystem) -> SessionId {
    let session = system.publish().await;
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    session
}

/// The names of the tools that the agents of a session have.
fn offered(system: &TestSystem, session: SessionId) -> Vec<String> {
    let names = "SELECT jsonb_path_query(plan, '$.stages[*].agents[*].tools[*].name') #>> '{}' AS name FROM session_plans";
    let sql =
        format!("SELECT string_agg(name, ' ') FROM ({names} WHERE session_id = '{session}') t");
    system
        .database
        .text(&sql)
        .split(' ')
        .map(str::to_owned)
        .collect()
}
