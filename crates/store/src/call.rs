//! Calls to the database: each has a time limit, and is repeated with the same bytes while its outcome is unknown.
//!
//! A call cannot be cancelled: a statement that was sent may take effect after its caller has gone. So an error or a
//! time-out never means "not written", and every write can be sent twice.
//!
//! The time of each call at the database is measured by its [`Operation`].

use std::sync::Arc;
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::result::QueryResult;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument as _;

use super::connect::Store;
use super::error::Error;
use super::pool::{Object, Pool};
use tarsy_engine::backoff::Backoff;

/// Declares the operations with the words that name them in metrics.
macro_rules! operations {
    ($($variant:ident $word:literal),+ $(,)?) => {
        /// The purpose of a call to the database.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Operation {
            $($variant,)+
            /// A read or write of a command for people: it runs in a process without metrics.
            Command,
        }

        impl Operation {
            fn word(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($word),)+
                    Self::Command => None,
                }
            }
        }

        /// The operations of a worker, as the metric `tarsy_db_query_duration_seconds` names them.
        pub const OPERATIONS: &[&str] = &[$($word),+];
    };
}

operations! {
    Receive "receive",
    Open "open",
    Join "join",
    Waited "waited",
    AlertUpdates "alert_updates",
    GiveUp "give_up",
    Claim "claim",
    Inherited "inherited",
    Renew "renew",
    RenewOne "renew_one",
    Release "release",
    Session "session",
    Entries "entries",
    Attempts "attempts",
    Result "result",
    Thread "thread",
    Past "past",
    Checkpoint "checkpoint",
    Step "step",
    Finish "finish",
    History "history",
    EventKey "event_key",
    SettlementStatus "settlement_status",
    Settle "settle",
    RefundAttempt "refund_attempt",
    Cancel "cancel",
    Sweep "sweep",
    Requeued "requeued",
    Recover "recover",
    Prune "prune",
    Words "words",
    Skills "skills",
    Probe "probe",
    Approvals "approvals",
    Vote "vote",
    NotifyClaim "notify_claim",
    NotifyRecord "notify_record",
    NotifyBacklog "notify_backlog",
}

const RETRY: Backoff = Backoff {
    first: Duration::from_millis(50),
    max: Duration::from_secs(2),
};

impl Store {
    /// Runs `work`. While its outcome is unknown, runs it again on another connection, for `retry_for` at most.
    pub(super) async fn run<T, F>(&self, operation: Operation, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let until = Instant::now() + self.retry_for;
        let mut failures = 0;
        loop {
            let work = Arc::clone(&work);
            let call = once(
                &self.pool,
                self.call_timeout,
                operation,
                move |connection| work(connection),
            );
            let error = match call.await {
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

/// Runs `work` once on a connection of `pool`; after `limit` the outcome is unknown. If the connection was dead, `work`
/// runs on another one at once.
///
/// It runs in a separate task: a caller that is dropped costs the pool no connection.
pub(super) async fn once<T, F>(
    pool: &Pool,
    limit: Duration,
    operation: Operation,
    work: F,
) -> Result<T, Error>
where
    T: Send + 'static,
    F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
{
    let pool = pool.clone();
    let work = Arc::new(work);
    let call = async move {
        match attempt(&pool, limit, operation, &work).await {
            Attempted::OnDeadConnection(error) => {
                tracing::debug!(%error, "database call sent again: its connection was dead");
                attempt(&pool, limit, operation, &work).await.result()
            }
            attempted @ Attempted::Done(_) => attempted.result(),
        }
    };
    match tokio::spawn(call.in_current_span()).await {
        Ok(result) => result,
        Err(error) => Err(Error::Broken(error.to_string())),
    }
}

/// The outcome of one attempt.
enum Attempted<T> {
    Done(Result<T, Error>),
    /// The connection had been used before, and was lost since or by this statement.
    OnDeadConnection(Error),
}

impl<T> Attempted<T> {
    fn result(self) -> Result<T, Error> {
        match self {
            Self::Done(result) => result,
            Self::OnDeadConnection(error) => Err(error),
        }
    }
}

async fn attempt<T, F>(
    pool: &Pool,
    limit: Duration,
    operation: Operation,
    work: &Arc<F>,
) -> Attempted<T>
where
    T: Send + 'static,
    F: Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
{
    let connection = match pool.get().await {
        Ok(connection) => connection,
        Err(error) => return Attempted::Done(Err(error.into())),
    };
    let work = Arc::clone(work);
    let statement_timeout = pool.manager().statement_timeout;
    let call = connection.interact(move |connection| {
        let start = Instant::now();
        let result = work(connection);
        let took = start.elapsed();
        if let Some(word) = operation.word() {
            metrics::histogram!("tarsy_db_query_duration_seconds", "operation" => word)
                .record(took);
        }
        result.map_err(|error| Error::from(error).after(took, statement_timeout))
    });
    let result = match timeout(limit, call).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => Err(Error::Broken(error.to_string())),
        Err(_) => Err(Error::NoAnswer(limit)),
    };
    let Err(error) = result else {
        return Attempted::Done(result);
    };
    if !error.may_succeed_later() {
        return Attempted::Done(Err(error));
    }
    let was_used_before = Object::metrics(&connection).recycle_count > 0;
    // The next try must not wait for, or run on, a connection that may be stuck.
    pool.manager().connection_failed();
    drop(Object::take(connection));
    if was_used_before && error.is_lost_connection() {
        return Attempted::OnDeadConnection(error);
    }
    Attempted::Done(Err(error))
}
