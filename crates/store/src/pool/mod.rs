//! Pools of connections. Each new connection reads the files of the address again, and goes to the newest primary.

mod primary;
mod pooler;

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool::managed::{self, Hook, HookError, Metrics, QueueMode, RecycleResult};
use deadpool_diesel::Runtime;
use deadpool_diesel::postgres;
use diesel::connection::SimpleConnection;

use super::error::Error;

/// Sent on every new connection. A confirmed commit has to survive a crash of the server, whatever the server's default
/// is. A server without lz4 keeps its own compression and then stores large texts at half the rate. Errors are in
/// English where the role may ask for it, because Diesel drops the codes of most (`error/words.rs`).
const SETTINGS: &str = "SELECT set_config('synchronous_commit', 'on', false) \
                        WHERE current_setting('synchronous_commit') = 'off'; \
                        SELECT set_config(name, 'lz4', false) FROM pg_settings \
                        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals); \
                        SELECT set_config('lc_messages', 'C', false) \
                        WHERE has_parameter_privilege('lc_messages', 'SET')";

pub(super) use pooler::Addresses;
pub(super) use primary::{Newest, Primary, choose};

pub(super) type Pool = managed::Pool<Connector>;
pub(super) type Object = managed::Object<Connector>;
type Inner = <postgres::Manager as managed::Manager>::Type;

/// Opens the connections of a pool. A connection is used again without a test, which would cost a round trip for each
/// statement: an error finds a dead connection as well. After an error each connection is tested once.
pub(super) struct Connector {
    addresses: Box<dyn Fn() -> Result<Addresses, Error> + Send + Sync>,
    newest: Newest,
    /// The server ends a statement after this time.
    pub(super) statement_timeout: Duration,
    /// Connections of this pool that have failed so far.
    failures: AtomicU64,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    /// A connection of the pool has failed, so the others may be dead as well.
    pub(super) fn connection_failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Looks from time to time whether another server of the address was promoted.
    pub(super) async fn look_for_a_newer_primary(&self) {
        if let Ok(addresses) = (self.addresses)() {
            self.newest.look(&addresses.direct).await;
        }
    }
}

/// A connection of a pool, with its server.
pub(super) struct Connection {
    inner: Inner,
    primary: Option<Primary>,
    /// [`Connector::failures`] when this connection was opened, or last tested.
    tested_after: u64,
}

impl Deref for Connection {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl managed::Manager for Connector {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let tested_after = self.failures.load(Ordering::Relaxed);
        let addresses = (self.addresses)()?;
        let direct = choose(addresses.direct.clone()).await;
        let inner = match manager(direct).create().await.map_err(of_driver) {
            Err(error) if error.is_of_pooler() => through_pooler(addresses).await?,
            created => created?,
        };
        let asked = inner.interact(Primary::ask).await;
        let primary = asked.map_err(|error| Error::Broken(error.to_string()))?;
        self.newest.admit(primary)?;
        Ok(Connection {
            inner,
            primary,
            tested_after,
        })
    }

    async fn recycle(
        &self,
        connection: &mut Connection,
        metrics: &Metrics,
    ) -> RecycleResult<Error> {
        if !self.newest.is_current(connection.primary) {
            return Err(managed::RecycleError::message(
                "another server is the primary now",
            ));
        }
        if connection.inner.is_mutex_poisoned() {
            return Err(managed::RecycleError::message("a statement has panicked"));
        }
        let failures = self.failures.load(Ordering::Relaxed);
        if connection.tested_after != failures {
            let tested = manager(String::new())
                .recycle(&mut connection.inner, metrics)
                .await;
            tested.map_err(|error| managed::RecycleError::message(error.to_string()))?;
            connection.tested_after = failures;
        }
        Ok(())
    }
}

async fn through_pooler(addresses: Addresses) -> Result<Inner, Error> {
    let inner = managed::Manager::create(&manager(addresses.plain.clone()))
        .await
        .map_err(of_driver)?;
    let prepared = inner
        .interact(move |connection| addresses.prepare(connection))
        .await;
    prepared.map_err(|error| Error::Broken(error.to_string()))??;
    Ok(inner)
}

fn manager(address: String) -> postgres::Manager {
    postgres::Manager::new(address, Runtime::Tokio1)
}

fn of_driver(error: deadpool_diesel::Error) -> Error {
    if let deadpool_diesel::Error::Connection(error) = error {
        error.into()
    } else {
        Error::Pool(error.to_string())
    }
}

/// The time limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections at most.
    pub(super) size: usize,
    /// The time that a call waits for a connection that is in use, or is tested.
    pub(super) wait: Duration,
    /// The time that a call waits for a new connection.
    pub(super) create: Duration,
    /// The time after which the server ends a statement.
    pub(super) statement: Duration,
}

/// A pool whose connections are opened with what `addresses` returns at that time.
pub(super) fn build(
    limits: Limits,
    newest: Newest,
    addresses: impl Fn() -> Result<Addresses, Error> + Send + Sync + 'static,
) -> Result<Pool, Error> {
    let prepare = Hook::async_fn(move |connection: &mut Connection, _| {
        Box::pin(async move {
            match connection
                .interact(|connection| connection.batch_execute(SETTINGS))
                .await
            {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(HookError::message(error.to_string())),
                Err(error) => Err(HookError::message(error.to_string())),
            }
        })
    });
    let pool = Pool::builder(Connector {
        addresses: Box::new(addresses),
        newest,
        statement_timeout: limits.statement,
        failures: AtomicU64::new(0),
    })
    // The connection that was used last has what it needs in the server's memory.
    .queue_mode(QueueMode::Lifo)
    .max_size(limits.size)
    .runtime(Runtime::Tokio1)
    .wait_timeout(Some(limits.wait))
    .create_timeout(Some(limits.create))
    .recycle_timeout(Some(limits.wait))
    .post_create(prepare)
    .build()?;
    Ok(pool)
}
