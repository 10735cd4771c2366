//! The schema: versioned migrations, embedded in the program, are the only way to one.

use diesel::connection::SimpleConnection;
use diesel::migration::{Migration, MigrationSource, MigrationVersion};
use diesel::pg::{Pg, PgConnection};
use diesel::{Connection, RunQueryDsl, sql_query};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::connect::ConnectOptions;
use super::error::Error;

/// Every migration that this program knows.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!();

/// Diesel does not lock: of four that start at once, three crash. Any number that nobody else uses.
const LOCK: i64 = 7_463_517_902_114;

/// Brings the schema up to this program; returns the names of what was applied. Safe to run in many places at once.
///
/// # Errors
/// When the database cannot be reached, a migration fails, or the schema is newer than this program.
pub async fn migrate(options: &ConnectOptions) -> Result<Vec<String>, Error> {
    with_connection(options, |connection| {
        sql_query("SELECT pg_advisory_lock($1)").bind::<diesel::sql_types::BigInt, _>(LOCK).execute(connection)?;
        connection.batch_execute("SET lock_timeout = '60s'")?;
        if let Some(unknown) = unknown_version(connection)? {
            return Err(Error::SchemaTooNew(unknown));
        }
        // The lock ends with the connection.
        let applied = connection.run_pending_migrations(MIGRATIONS).map_err(Error::Migration)?;
        Ok(applied.iter().map(ToString::to_string).collect())
    })
    .await
}

/// The last migration of the database; `None` for a database without a schema.
///
/// # Errors
/// When the database cannot be reached.
pub async fn schema_version(options: &ConnectOptions) -> Result<Option<String>, Error> {
    with_connection(options, |connection| Ok(applied(connection)?.into_iter().max().map(|version| version.to_string())))
        .await
}

/// Whether the schema is exactly the one of this program: what a worker asks before it starts.
///
/// # Errors
/// [`Error::SchemaBehind`], [`Error::SchemaTooNew`], or when the database cannot be reached.
pub async fn check_schema(options: &ConnectOptions) -> Result<(), Error> {
    with_connection(options, |connection| {
        if let Some(unknown) = unknown_version(connection)? {
            return Err(Error::SchemaTooNew(unknown));
        }
        let applied = applied(connection)?;
        match known()?.into_iter().find(|version| !applied.contains(version)) {
            Some(missing) => Err(Error::SchemaBehind(missing.to_string())),
            None => Ok(()),
        }
    })
    .await
}

fn known() -> Result<Vec<MigrationVersion<'static>>, Error> {
    let migrations: Vec<Box<dyn Migration<Pg>>> = MIGRATIONS.migrations().map_err(Error::Migration)?;
    Ok(migrations.iter().map(|migration| migration.name().version().as_owned()).collect())
}

/// Reads only: a worker may have no right to create Diesel's table.
fn applied(connection: &mut PgConnection) -> Result<Vec<MigrationVersion<'static>>, Error> {
    let exists: bool = diesel::select(diesel::dsl::sql::<diesel::sql_types::Bool>(
        "to_regclass('__diesel_schema_migrations') IS NOT NULL",
    ))
    .get_result(connection)?;
    if !exists {
        return Ok(Vec::new());
    }
    connection.applied_migrations().map_err(Error::Migration)
}

fn unknown_version(connection: &mut PgConnection) -> Result<Option<String>, Error> {
    let known = known()?;
    Ok(applied(connection)?.into_iter().find(|version| !known.contains(version)).map(|version| version.to_string()))
}

pub(super) async fn with_connection<T: Send + 'static>(
    options: &ConnectOptions,
    work: impl FnOnce(&mut PgConnection) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let url = options.connection_string();
    tokio::task::spawn_blocking(move || work(&mut PgConnection::establish(&url)?))
        .await
        .map_err(|error| Error::Broken(error.to_string()))?
}
