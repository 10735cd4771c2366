//! Connections: how they are made and what is set on each of them.

use std::time::Duration;

use deadpool_diesel::postgres::{Hook, HookError, Manager, Pool, Runtime};
use diesel::connection::SimpleConnection;

use super::address;
use super::error::Error;
use crate::investigation::mask::Mask;

/// What every connection begins with. A confirmed commit outlives a crash of the server, whatever its default is. A server
/// without lz4 keeps its own compression: large texts are then stored at half the rate.
const SETTINGS: &str = "SELECT set_config('synchronous_commit', 'on', false) \
                        WHERE current_setting('synchronous_commit') = 'off'; \
                        SELECT set_config(name, 'lz4', false) FROM pg_settings \
                        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)";
/// Rows that probes write to.
const PROBE_SLOTS: i16 = 64;

/// How to reach the database and how long to wait for it. Its `Debug` form leaves the address out, which may hold a
/// password.
#[derive(Clone)]
pub struct ConnectOptions {
    /// A libpq connection string, as a URL or as keywords.
    pub url: String,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// Connections for everything but renewals, which have one of their own.
    pub pool_size: usize,
    /// Until the server gives up a statement. The client waits 10 s longer.
    pub statement_timeout: Duration,
    /// Until the server gives up waiting for a row.
    pub lock_timeout: Duration,
    /// Until a new or a free connection is had, and until the kernel gives up unanswered bytes.
    pub connect_timeout: Duration,
    /// How long a call whose outcome is unknown is sent again.
    pub retry_for: Duration,
    /// A server that takes no writes will do, unless the address names several. Else a connection to one is refused
    /// (`target_session_attrs=read-write`), unless the address says otherwise.
    pub may_be_read_only: bool,
}

impl std::fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("application_name", &self.application_name)
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}

impl ConnectOptions {
    /// The defaults for a worker.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            application_name: "tarsy".to_owned(),
            pool_size: 8,
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(8),
            connect_timeout: Duration::from_secs(5),
            retry_for: Duration::from_secs(20),
            may_be_read_only: false,
        }
    }

    /// The connection string with everything that holds from the first moment of a connection. A pooler that shares
    /// connections refuses `options`, where it would lose what SET says or hand it on to others.
    pub(super) fn connection_string(&self) -> String {
        let mut parameters = vec![
            ("connect_timeout", self.connect_timeout.as_secs().max(2).to_string()),
            ("tcp_user_timeout", self.connect_timeout.as_millis().to_string()),
            ("keepalives", "1".to_owned()),
            ("keepalives_idle", "10".to_owned()),
            ("keepalives_interval", "5".to_owned()),
            ("keepalives_count", "3".to_owned()),
            ("application_name", self.application_name.clone()),
        ];
        let needs_primary = !self.may_be_read_only || address::names_several_servers(&self.url);
        if needs_primary && !address::names_a_kind_of_server(&self.url) {
            parameters.push(("target_session_attrs", "read-write".to_owned()));
        }
        let settings = format!(
            "-c statement_timeout={statement} -c lock_timeout={} -c idle_in_transaction_session_timeout={statement}",
            self.lock_timeout.as_millis(),
            statement = self.statement_timeout.as_millis(),
        );
        address::with(&self.url, &parameters, &settings)
    }

    fn pool(&self, size: usize) -> Result<Pool, Error> {
        let prepare = Hook::async_fn(move |connection, _| {
            Box::pin(async move {
                match connection.interact(|connection| connection.batch_execute(SETTINGS)).await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(error)) => Err(HookError::message(error.to_string())),
                    Err(error) => Err(HookError::message(error.to_string())),
                }
            })
        });
        let pool = Pool::builder(Manager::new(self.connection_string(), Runtime::Tokio1))
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(self.connect_timeout))
            .create_timeout(Some(self.connect_timeout))
            .recycle_timeout(Some(self.connect_timeout))
            .post_create(prepare)
            .build()?;
        Ok(pool)
    }
}

/// The database, as the engine's ports see it. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) pool: Pool,
    pub(super) renewals: Pool,
    pub(super) bound: Duration,
    pub(super) retry_for: Duration,
    /// Where this process writes to see that the database takes writes.
    pub(super) probe_slot: i16,
    pub(super) mask: Mask,
}

impl Store {
    /// Sets the pools up. Connects to nothing yet: a worker starts while the database is unavailable.
    ///
    /// # Errors
    /// When the options make no pool.
    pub fn new(options: &ConnectOptions) -> Result<Self, Error> {
        Ok(Self {
            pool: options.pool(options.pool_size)?,
            renewals: options.pool(1)?,
            bound: options.statement_timeout + Duration::from_secs(10),
            retry_for: options.retry_for,
            probe_slot: fastrand::i16(0..PROBE_SLOTS),
            mask: Mask::default(),
        })
    }

    /// The same store with this mask over what is kept of a message: its headers and its subject once it is settled, and
    /// why it was given up.
    #[must_use]
    pub fn masking(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }
}

/// How busy the pool is that sessions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// Connections that run a statement.
    pub in_use: usize,
    /// Statements that wait for a connection.
    pub waiting: usize,
}

impl Store {
    /// How busy the pool is now.
    pub fn pool_use(&self) -> PoolUse {
        let status = self.pool.status();
        PoolUse { in_use: status.size.saturating_sub(status.available), waiting: status.waiting }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: [&str; 7] = [
        "connect_timeout=5",
        "tcp_user_timeout=5000",
        "keepalives=1",
        "keepalives_idle=10",
        "keepalives_interval=5",
        "keepalives_count=3",
        "application_name=tarsy",
    ];
    const OPTIONS: &str = "options=-c%20statement_timeout%3D10000%20-c%20lock_timeout%3D8000%20-c%20idle_in_transaction_session_timeout%3D10000";

    #[test]
    fn options_show_no_password() {
        let shown = format!("{:?}", ConnectOptions::new("postgres://u:s3cret@h/db"));
        assert_eq!(shown, r#"ConnectOptions { application_name: "tarsy", pool_size: 8, .. }"#);
    }

    #[test]
    fn timeouts_are_added_to_the_connection_string_and_a_server_that_takes_writes_is_asked_for() {
        let rest = REST.join("&");
        let made = |url: &str, may_be_read_only| {
            ConnectOptions { may_be_read_only, ..ConnectOptions::new(url) }.connection_string()
        };
        let primary = "target_session_attrs=read-write";
        assert_eq!(made("postgres://h/db", false), format!("postgres://h/db?{rest}&{primary}&{OPTIONS}"));
        assert_eq!(made("postgres://h/db", true), format!("postgres://h/db?{rest}&{OPTIONS}"));
        assert_eq!(made("postgres://h,i/db", true), format!("postgres://h,i/db?{rest}&{primary}&{OPTIONS}"));
        let url = "postgres://h,i/db?target_session_attrs=any";
        assert_eq!(made(url, false), format!("{url}&{rest}&{OPTIONS}"));
        let words = made("host=h dbname=db", false);
        assert!(
            words.starts_with("host=h dbname=db connect_timeout='5' ") && words.contains(" options='-c "),
            "{words}"
        );
    }
}
