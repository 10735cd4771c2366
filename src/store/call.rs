//! Calls to the database: each has a time limit and is sent again with the same bytes while its outcome is unknown.
//!
//! A call cannot be cancelled: a statement that was sent may take effect after its caller has gone. So an error or a
//! time-out never means "not written", and every write can be sent twice.

use std::sync::Arc;
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::result::QueryResult;
use tokio::time::{Instant, sleep, timeout};

use super::connect::Store;
use super::error::Error;
use super::pool::{Object, Pool};
use crate::engine::backoff::Backoff;

const RETRY: Backoff = Backoff { first: Duration::from_millis(50), max: Duration::from_secs(2) };

impl Store {
    /// Runs `work`. While its outcome is unknown, runs it again on another connection, for `retry_for` at most.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let until = Instant::now() + self.retry_for;
        let mut failures = 0;
        loop {
            let work = Arc::clone(&work);
            let error = match once(&self.pool, self.call_timeout, move |connection| work(connection)).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let delay = RETRY.delay(failures);
            if !error.may_succeed_later() || Instant::now() + delay > until {
                return Err(error);
            }
            tracing::debug!(%error, "database call sent again: its outcome is unknown");
            sleep(delay).await;
            failures += 1;
        }
    }
}

/// Runs `work` once on a connection of `pool`; after `limit` the outcome is unknown.
pub(super) async fn once<T, F>(pool: &Pool, limit: Duration, work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce(&mut PgConnection) -> QueryResult<T> + Send + 'static,
{
    let connection = pool.get().await?;
    let result = match timeout(limit, connection.interact(work)).await {
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
