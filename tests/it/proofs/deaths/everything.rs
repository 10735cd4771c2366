//! All parts at once.

use chrono::Utc;

use super::bed::Bed;
use super::{Measured, Pace};
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::system::Setup;

pub(super) async fn killed(pace: Pace) -> Vec<Measured> {
    let mut postgres = PostgresServer::start().await;
    let database = Some(TestDatabase::empty_on(postgres.url()));
    let mut bed = Bed::start(
        pace,
        Setup {
            database,
            ..Setup::default()
        },
    )
    .await;
    let address = bed.system.llm_addr().to_owned();
    for worker in &mut bed.workers {
        worker.kill().await;
    }
    bed.system.nats.kill();
    postgres.kill().await;
    bed.system.llm.kill().await;
    tokio::time::sleep(pace.outage).await; // the outage itself
    let at = Utc::now();
    bed.system.nats.restart().await;
    postgres.restart().await;
    bed.system.start_llm_service(&address).await;
    bed.add_worker("w3").await;
    bed.add_worker("w4").await;
    bed.end(2).await;
    vec![Measured::new(
        "all sessions are resumed, after everything was started",
        bed.resumed_after(at),
    )]
}
