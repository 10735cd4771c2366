//! Connections: how they are made and what is set on each of them.

use std::time::Duration;

use deadpool_diesel::postgres::{Hook, HookError, Manager, Pool, Runtime};
use diesel::connection::SimpleConnection;

use super::error::Error;

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
    pub patience: Duration,
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
            patience: Duration::from_secs(20),
        }
    }

    /// The connection string with the timeouts that only libpq can keep.
    pub(super) fn connection_string(&self) -> String {
        let pairs = [
            ("connect_timeout", self.connect_timeout.as_secs().max(2).to_string()),
            ("tcp_user_timeout", self.connect_timeout.as_millis().to_string()),
            ("keepalives", "1".to_owned()),
            ("keepalives_idle", "10".to_owned()),
            ("keepalives_interval", "5".to_owned()),
            ("keepalives_count", "3".to_owned()),
        ];
        let is_url = self.url.contains("://");
        let mut all = self.url.clone();
        for (key, value) in pairs {
            all.push(match (is_url, all.contains('?')) {
                (true, false) => '?',
                (true, true) => '&',
                (false, _) => ' ',
            });
            all.push_str(&format!("{key}={value}"));
        }
        all
    }

    /// What every connection begins with. A server without lz4 keeps its own compression: large texts are then stored
    /// at half the rate.
    fn settings(&self) -> String {
        format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
             SET application_name = '{}'; \
             SELECT set_config(name, 'lz4', false) FROM pg_settings \
             WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)",
            self.statement_timeout.as_millis(),
            self.lock_timeout.as_millis(),
            self.statement_timeout.as_millis(),
            self.application_name.replace('\'', "''"),
        )
    }

    fn pool(&self, size: usize) -> Result<Pool, Error> {
        let settings = self.settings();
        let prepare = Hook::async_fn(move |connection, _| {
            let settings = settings.clone();
            Box::pin(async move {
                match connection.interact(move |connection| connection.batch_execute(&settings)).await {
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
    pub(super) patience: Duration,
}

impl Store {
    /// Sets the pools up. Connects to nothing yet: a worker starts while the database is away.
    ///
    /// # Errors
    /// When the options make no pool.
    pub fn new(options: &ConnectOptions) -> Result<Self, Error> {
        Ok(Self {
            pool: options.pool(options.pool_size)?,
            renewals: options.pool(1)?,
            bound: options.statement_timeout + Duration::from_secs(10),
            patience: options.patience,
        })
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

    const REST: &str = "tcp_user_timeout=5000 keepalives=1 keepalives_idle=10 keepalives_interval=5 keepalives_count=3";

    #[test]
    fn options_show_no_password() {
        let shown = format!("{:?}", ConnectOptions::new("postgres://u:s3cret@h/db"));
        assert_eq!(shown, r#"ConnectOptions { application_name: "tarsy", pool_size: 8, .. }"#);
    }

    #[test]
    fn timeouts_are_added_to_every_form_of_connection_string() {
        let rest = format!("connect_timeout=5 {REST}");
        let url_rest = rest.replace(' ', "&");
        let made = |url: &str| ConnectOptions::new(url).connection_string();
        assert_eq!(made("postgres://h/db"), format!("postgres://h/db?{url_rest}"));
        assert_eq!(made("postgres://h/db?sslmode=require"), format!("postgres://h/db?sslmode=require&{url_rest}"));
        assert_eq!(made("host=h dbname=db"), format!("host=h dbname=db {rest}"));
    }
}
