//! Applies the versioned migrations that are embedded in the program. They are the only way to a schema.
//!
//! While a migration waits for a table, every statement on that table waits behind it. So each try waits for two
//! seconds at most, and pauses before the next try: leases are renewed in between.

use std::time::Duration;

use diesel::RunQueryDsl;
use diesel::connection::SimpleConnection;
use diesel::dsl::{select, sql};
use diesel::pg::PgConnection;
use diesel::sql_types::{BigInt, Bool, Text};
use diesel_migrations::MigrationHarness;
use tokio::time::{Instant, sleep};

use super::compatibility::{MIGRATIONS, Schema, applied, fit, sorted};
use super::connect::{ConnectOptions, blocking};
use super::error::Error;
use super::pool;

/// The time that a migration waits for tables that others use, and for other migrators.
pub const MIGRATION_TIMEOUT: Duration = Duration::from_secs(300);

/// The key of the advisory lock: any number that no other program uses. Diesel takes no lock: of four migrators that
/// start at once, three crash.
const LOCK_KEY: i64 = 7_463_517_902_114;
/// The lock time-out of one try. Renewals wait no longer than this, a tenth of a lease.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// A try that failed sooner did not fail because of a lock: Postgres detects a deadlock after a second.
const MIN_LOCK_WAIT: Duration = Duration::from_millis(900);
/// The pause between two tries: the statements that waited behind the failed one run in it.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The time between two tries to get the advisory lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The names of the migrations that were applied now.
    pub applied: Vec<String>,
    /// The relation of the schema to this program before the migration.
    pub schema: Schema,
}

/// Applies the migrations that the schema lacks. Several migrators may run at once. A newer schema that this program
/// may use is not changed.
///
/// # Errors
/// When the database cannot be reached, a migration fails, the schema is newer and says that this program may not use
/// it, or `timeout` has passed: [`Error::MigrationBlocked`], [`Error::MigrationBusy`].
pub async fn migrate(options: &ConnectOptions, timeout: Duration) -> Result<Migrated, Error> {
    let mut addresses = options.addresses()?;
    addresses.direct = pool::choose(addresses.direct).await;
    let connection = blocking(move || addresses.establish()).await?;
    let mut migrator = Migrator {
        connection: Some(connection),
        until: Instant::now() + timeout,
        timeout,
    };
    migrator
        .run(|connection| Ok(connection.batch_execute("SET statement_timeout = 0")?))
        .await?;
    migrator.lock().await?;
    let migrated = migrator.apply_pending().await;
    // Unlocks explicitly: a pooler that keeps the connection would keep its lock, too.
    let unlocked = migrator
        .run(|connection| Ok(advisory(connection, "pg_advisory_unlock")?))
        .await;
    let migrated = migrated?;
    unlocked?;
    Ok(migrated)
}

/// A role that may not read the list of migrations does not own the tables, and a right on them would not suffice.
fn needs_owner(error: Error) -> Error {
    if let Error::NotAllowed { role, rights } = &error
        && rights.starts_with("SELECT")
    {
        return Error::NotOwner {
            role: role.clone(),
            rights: rights.clone(),
        };
    }
    error
}

/// A connection that blocking tasks borrow one after another.
struct Migrator {
    connection: Option<PgConnection>,
    until: Instant,
    timeout: Duration,
}

impl Migrator {
    async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut PgConnection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let lent = self.connection.take();
        let (connection, result) = blocking(move || {
            let mut connection =
                lent.ok_or_else(|| Error::Broken("the connection is gone".to_owned()))?;
            let result = work(&mut connection);
            Ok((connection, result))
        })
        .await?;
        self.connection = Some(connection);
        result
    }

    /// Polls for the lock: CREATE INDEX CONCURRENTLY of one migrator would wait for another migrator that waits inside
    /// of a statement.
    async fn lock(&mut self) -> Result<(), Error> {
        while !self
            .run(|connection| Ok(advisory(connection, "pg_try_advisory_lock")?))
            .await?
        {
            if Instant::now() >= self.until {
                return Err(Error::MigrationBusy(self.timeout));
            }
            sleep(LOCK_POLL_INTERVAL).await; // pacing of tries
        }
        Ok(())
    }

    async fn apply_pending(&mut self) -> Result<Migrated, Error> {
        let (schema, pending) = self
            .run(|connection| {
                let applied = applied(connection).map_err(needs_owner)?;
                let schema = fit(connection, &applied)?;
                if applied.is_empty() {
                    // Creates Diesel's table in an empty database.
                    connection.applied_migrations().map_err(Error::Migration)?;
                }
                let mut pending = sorted(&MIGRATIONS)?;
                pending
                    .retain(|migration| !applied.contains(&migration.name().version().to_string()));
                let names: Vec<String> =
                    pending.iter().map(|next| next.name().to_string()).collect();
                Ok((schema, names))
            })
            .await?;
        for name in &pending {
            self.apply(name).await?;
        }
        Ok(Migrated {
            applied: pending,
            schema,
        })
    }

    /// Tries until the migration gets its locks. A failed try is rolled back.
    async fn apply(&mut self, name: &str) -> Result<(), Error> {
        loop {
            let wanted = name.to_owned();
            let began = Instant::now();
            let left = self.until - began;
            let Err(error) = self
                .run(move |connection| try_one(connection, &wanted, left))
                .await
            else {
                return Ok(());
            };
            if began.elapsed() < MIN_LOCK_WAIT {
                return Err(error);
            }
            if Instant::now() + RETRY_DELAY >= self.until {
                return Err(Error::MigrationBlocked {
                    migration: name.to_owned(),
                    timeout: self.timeout,
                    source: Box::new(error),
                });
            }
            tracing::info!(
                migration = name,
                "migration blocked by other statements: {error}"
            );
            sleep(RETRY_DELAY).await; // pacing of tries
        }
    }
}

fn try_one(connection: &mut PgConnection, name: &str, left: Duration) -> Result<(), Error> {
    let mut all = sorted(&MIGRATIONS)?.into_iter();
    let migration = all
        .find(|migration| migration.name().to_string() == name)
        .ok_or(Error::NoMigrations)?;
    let is_concurrent = !migration.metadata().run_in_transaction();
    // A migration outside of a transaction builds or drops an index, and no statement waits behind it.
    let timeout = if is_concurrent {
        left.max(LOCK_TIMEOUT)
    } else {
        LOCK_TIMEOUT
    };
    connection.batch_execute(&format!("SET lock_timeout = {}", timeout.as_millis()))?;
    if is_concurrent {
        drop_half_built(connection, name)?;
    }
    connection
        .run_migration(&migration)
        .map_err(Error::Migration)?;
    Ok(())
}

/// Drops the index that a dead migrator left half built: no query uses it, and IF NOT EXISTS would keep it. The name of
/// such a migration ends with the name of its index.
fn drop_half_built(connection: &mut PgConnection, migration: &str) -> Result<(), Error> {
    let index = migration.split_once('_').map_or("", |(_, index)| index);
    let is_half_built: bool = select(
        sql::<Bool>(
            "EXISTS (SELECT FROM pg_index WHERE NOT indisvalid AND indexrelid = to_regclass(",
        )
        .bind::<Text, _>(index)
        .sql("))"),
    )
    .get_result(connection)?;
    if is_half_built {
        connection.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {index}"))?;
    }
    Ok(())
}

fn advisory(connection: &mut PgConnection, function: &'static str) -> diesel::QueryResult<bool> {
    select(
        sql::<Bool>(&format!("{function}("))
            .bind::<BigInt, _>(LOCK_KEY)
            .sql(")"),
    )
    .get_result(connection)
}
