//! One call to the database: bounded, and sent again with the same bytes while its outcome is unknown.
//!
//! Nothing here can be cancelled: a statement that was sent may take effect after its caller has gone. So an error or
//! a time-out never means "not written"; every write is made to be sent twice.

use std::sync::Arc;
use std::time::Duration;

use deadpool_diesel::postgres::{Object, Pool};
use diesel::pg::PgConnection;
use diesel::result::QueryResult;
use tokio::time::{Instant, sleep, timeout};

use super::connect::Store;
use super::error::Error;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

impl Store {
    /// Runs `work`, again on another connection while its outcome is unknown, for as long as the store is patient.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let until = Instant::now() + self.retry_for;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match once(&self.pool, self.bound, Arc::clone(&work)).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let jittered = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
            if !error.is_worth_another_try() || Instant::now() + jittered > until {
                return Err(error);
            }
            tracing::debug!(%error, "sent again: the outcome is unknown");
            sleep(jittered).await;
            pause = MAX_PAUSE.min(pause * 2);
        }
    }
}

/// Runs `work` once on a connection of `pool`; after `bound` the outcome is unknown.
pub(super) async fn once<T, F>(pool: &Pool, bound: Duration, work: Arc<F>) -> Result<T, Error>
where
    T: Send + 'static,
    F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
{
    let connection = pool.get().await?;
    let result = match timeout(bound, connection.interact(move |connection| work(connection))).await {
        Ok(Ok(result)) => result.map_err(Error::from),
        Ok(Err(error)) => Err(Error::Broken(error.to_string())),
        Err(_) => Err(Error::NoAnswer(bound)),
    };
    if result.as_ref().is_err_and(Error::is_worth_another_try) {
        // The next try must not wait for, or run on, a connection that may be stuck.
        drop(Object::take(connection));
    }
    result
}
