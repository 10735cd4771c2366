//! Pools of connections. Each new connection reads the files of the address again.

use std::time::Duration;

use deadpool::managed::{self, Hook, HookError, Metrics, RecycleResult};
use deadpool_diesel::Runtime;
use deadpool_diesel::postgres;
use diesel::connection::SimpleConnection;

use super::error::Error;

/// Sent on every new connection. A confirmed commit has to survive a crash of the server, whatever the server's default
/// is. A server without lz4 keeps its own compression and then stores large texts at half the rate.
const SETTINGS: &str = "SELECT set_config('synchronous_commit', 'on', false) \
                        WHERE current_setting('synchronous_commit') = 'off'; \
                        SELECT set_config(name, 'lz4', false) FROM pg_settings \
                        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)";

pub(super) type Pool = managed::Pool<Connector>;
pub(super) type Object = managed::Object<Connector>;

/// Opens the connections of a pool, and tests them before they are used again.
pub(super) struct Connector(Box<dyn Fn() -> Result<String, Error> + Send + Sync>);

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl managed::Manager for Connector {
    type Type = <postgres::Manager as managed::Manager>::Type;
    type Error = Error;

    async fn create(&self) -> Result<Self::Type, Error> {
        let address = (self.0)()?;
        manager(address).create().await.map_err(of_driver)
    }

    async fn recycle(&self, connection: &mut Self::Type, metrics: &Metrics) -> RecycleResult<Error> {
        let recycled = manager(String::new()).recycle(connection, metrics).await;
        recycled.map_err(|error| managed::RecycleError::message(error.to_string()))
    }
}

fn manager(address: String) -> postgres::Manager {
    postgres::Manager::new(address, Runtime::Tokio1)
}

fn of_driver(error: deadpool_diesel::Error) -> Error {
    if let deadpool_diesel::Error::Connection(error) = error { error.into() } else { Error::Pool(error.to_string()) }
}

/// A pool of at most `size` connections, each opened with what `address` returns at that time. A call waits for a
/// connection, a new one or an old one, for `timeout`.
pub(super) fn build(
    size: usize,
    timeout: Duration,
    address: impl Fn() -> Result<String, Error> + Send + Sync + 'static,
) -> Result<Pool, Error> {
    let prepare = Hook::async_fn(move |connection: &mut <Connector as managed::Manager>::Type, _| {
        Box::pin(async move {
            match connection.interact(|connection| connection.batch_execute(SETTINGS)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(HookError::message(error.to_string())),
                Err(error) => Err(HookError::message(error.to_string())),
            }
        })
    });
    let pool = Pool::builder(Connector(Box::new(address)))
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(timeout))
        .create_timeout(Some(timeout))
        .recycle_timeout(Some(timeout))
        .post_create(prepare)
        .build()?;
    Ok(pool)
}
