//! Calls to the database: each has a time limit and is sent again with the same bytes while its outcome is unknown.
//!
//! A call cannot be cancelled: a statement that was sent may take effect after its caller has gone. So an error or a
//! time-out never means "not written", and every write can be sent twice.

use std::sync::Arc;
use std::time::Duration;

use deadpool_diesel::postgres::{Object, Pool};
use diesel::pg::PgConnection;
use diesel::result::QueryResult;
use tokio::time::{Instant, sleep, timeout};

use super::connect::Store;
use super::error::Error;

const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

impl Store {
    /// Runs `work`. While its outcome is unknown, runs it again on another connection, for `retry_for` at most.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let until = Instant::now() + self.retry_for;
        let mut delay = MIN_RETRY_DELAY;
        loop {
            let error = match once(&self.pool, self.call_timeout, Arc::clone(&work)).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let jittered = delay.mul_f64(0.5 + fastrand::f64() / 2.0);
            if !error.may_succeed_later() || Instant::now() + jittered > until {
                return Err(error);
            }
            tracing::debug!(%error, "database call sent again: its outcome is unknown");
            sleep(jittered).await;
            delay = MAX_RETRY_DELAY.min(delay * 2);
        }
    }
}

/// Runs `work` once on a connection of `pool`; after `limit` the outcome is unknown.
pub(super) async fn once<T, F>(pool: &Pool, limit: Duration, work: Arc<F>) -> Result<T, Error>
where
    T: Send + 'static,
    F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
{
    let connection = pool.get().await?;
    let result = match timeout(limit, connection.interact(move |connection| work(connection))).await {
        Ok(Ok(result)) => result.map_err(Error::from),
        Ok(Err(error)) => Err(Error::Broken(error.to_string())),
        Err(_) => Err(Error::NoAnswer(limit)),
    };
    if result.as_ref().is_err_and(Error::may_succeed_later) {
        // The next try must not wait for, or run on, a connection that may be stuck.
        drop(Object::take(connection));
    }
    result
}
