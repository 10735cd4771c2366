//! Checks whether this program may use the database: its schema, the rights of the role, and poolers in between.
//!
//! The checks only read, because a worker may lack the right to create anything. They query rights instead of parsing
//! the error of a refused statement, because the server reports errors in its own language.

use std::collections::BTreeSet;
use std::time::Duration;

use diesel::dsl::{select, sql};
use diesel::migration::{Migration, MigrationSource};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use super::connect::ConnectOptions;
use super::error::Error;

/// Every migration that this program knows.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// The rights that a worker needs on each table. A worker that prunes also needs DELETE.
const RIGHTS: [(&str, &str); 23] = [
    ("agent_executions", "SELECT INSERT UPDATE"),
    ("alert_sessions", "SELECT INSERT UPDATE"),
    ("alert_updates", "SELECT INSERT"),
    ("alerts", "SELECT INSERT UPDATE"),
    ("approval_freezes", "SELECT INSERT UPDATE"),
    ("approval_votes", "SELECT INSERT"),
    ("approvals", "SELECT INSERT UPDATE"),
    ("entries", "SELECT INSERT UPDATE"),
    ("event_key", "SELECT"),
    ("llm_interactions", "INSERT"),
    ("notifications", "SELECT INSERT UPDATE"),
    ("route_turns", "SELECT INSERT UPDATE"),
    ("schema_compatibility", "SELECT"),
    ("session_plans", "SELECT INSERT"),
    ("session_recoveries", "SELECT INSERT"),
    ("session_words", "SELECT INSERT UPDATE"),
    ("skill_texts", "SELECT INSERT UPDATE"),
    ("stages", "SELECT INSERT UPDATE"),
    ("store_probes", "SELECT INSERT UPDATE"),
    ("timeline_events", "SELECT INSERT UPDATE DELETE"),
    ("tool_interactions", "SELECT INSERT"),
    ("verdicts", "SELECT INSERT"),
    (MIGRATIONS_TABLE, "SELECT"),
];

pub(super) const MIGRATIONS_TABLE: &str = "__diesel_schema_migrations";

/// The relation of a usable schema to this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The schema of this program.
    Current,
    /// A newer schema, which allows this program; with its last migration.
    Newer(String),
}

/// Checks whether this program may use the schema.
///
/// # Errors
/// [`Error::SchemaBehind`], [`Error::SchemaTooNew`], [`Error::NotAllowed`], or when the database cannot be reached.
pub async fn check_schema(options: &ConnectOptions) -> Result<Schema, Error> {
    options
        .with_connection(|connection| {
            let applied = applied(connection)?;
            match known()?
                .into_iter()
                .find(|version| !applied.contains(version))
            {
                Some(missing) => Err(Error::SchemaBehind(missing)),
                None => fit(connection, &applied),
            }
        })
        .await
}

/// Checks before a worker starts whether it can use the database: the schema, the rights of its role, and whether a
/// connection keeps its settings.
///
/// # Errors
/// The errors of [`check_schema`]; [`Error::NotAllowed`] for a right that is missing, [`Error::SettingsLost`].
pub async fn check_for_worker(options: &ConnectOptions) -> Result<Schema, Error> {
    let schema = check_schema(options).await?;
    let statement_timeout = options.statement_timeout;
    options
        .with_connection(move |connection| {
            keeps_settings(connection, statement_timeout)?;
            has_rights(connection)
        })
        .await?;
    Ok(schema)
}

/// The last migration of the database; `None` for a database without a schema.
///
/// # Errors
/// When the database cannot be reached, or hides its migrations.
pub async fn schema_version(options: &ConnectOptions) -> Result<Option<String>, Error> {
    options
        .with_connection(|connection| Ok(applied(connection)?.into_iter().next_back()))
        .await
}

/// The versions that this program has migrations for, in their order.
fn known() -> Result<Vec<String>, Error> {
    Ok(sorted(&MIGRATIONS)?
        .iter()
        .map(|migration| migration.name().version().to_string())
        .collect())
}

/// The migrations in the order of their versions; never empty.
pub(super) fn sorted(
    migrations: &EmbeddedMigrations,
) -> Result<Vec<Box<dyn Migration<Pg>>>, Error> {
    let mut all = MigrationSource::<Pg>::migrations(migrations).map_err(Error::Migration)?;
    all.sort_unstable_by_key(|migration| migration.name().version().as_owned());
    if all.is_empty() {
        Err(Error::NoMigrations)
    } else {
        Ok(all)
    }
}

/// The versions that were applied to the database.
pub(super) fn applied(connection: &mut PgConnection) -> Result<BTreeSet<String>, Error> {
    let is_hidden: bool = select(sql::<Bool>("current_schema() IS NULL")).get_result(connection)?;
    if is_hidden {
        return Err(not_allowed(connection, "USAGE on the schema".to_owned()));
    }
    let is_readable: Option<bool> = select(sql::<Nullable<Bool>>(&format!(
        "has_table_privilege(to_regclass('{MIGRATIONS_TABLE}')::oid, 'SELECT')"
    )))
    .get_result(connection)?;
    match is_readable {
        None => return Ok(BTreeSet::new()),
        Some(false) => {
            return Err(not_allowed(
                connection,
                format!("SELECT on {MIGRATIONS_TABLE}"),
            ));
        }
        Some(true) => {}
    }
    let found = diesel::sql_query(format!(
        "SELECT version::text AS word FROM {MIGRATIONS_TABLE}"
    ))
    .load::<Word>(connection)?;
    Ok(found.into_iter().map(|version| version.word).collect())
}

#[derive(QueryableByName)]
struct Word {
    #[diesel(sql_type = Text)]
    word: String,
}

/// Compares the schema with this program. A newer schema has a row that names the oldest program that may use it.
pub(super) fn fit(
    connection: &mut PgConnection,
    applied: &BTreeSet<String>,
) -> Result<Schema, Error> {
    let known = known()?;
    let Some(unknown) = applied.iter().rfind(|version| !known.contains(version)) else {
        return Ok(Schema::Current);
    };
    let is_declared: bool = select(sql::<Bool>(
        "to_regclass('schema_compatibility') IS NOT NULL",
    ))
    .get_result(connection)?;
    let oldest: Option<Word> = if is_declared {
        diesel::sql_query("SELECT oldest_program AS word FROM schema_compatibility")
            .get_result(connection)
            .optional()?
    } else {
        None
    };
    if oldest.is_some_and(|oldest| known.last().is_some_and(|newest| oldest.word <= *newest)) {
        Ok(Schema::Newer(unknown.clone()))
    } else {
        Err(Error::SchemaTooNew(unknown.clone()))
    }
}

/// Checks that a connection has the settings of its connection string. A pooler that drops them also spreads the
/// statements of one connection over several server connections, and prepared statements then break.
fn keeps_settings(connection: &mut PgConnection, statement_timeout: Duration) -> Result<(), Error> {
    let timeout: i64 = select(sql::<BigInt>(
        "(SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout')",
    ))
    .get_result(connection)?;
    if u128::from(timeout.unsigned_abs()) == statement_timeout.as_millis() {
        Ok(())
    } else {
        Err(Error::SettingsLost)
    }
}

fn has_rights(connection: &mut PgConnection) -> Result<(), Error> {
    match lacking_rights(connection)? {
        None => Ok(()),
        Some(missing) => Err(not_allowed(connection, missing)),
    }
}

/// The error for rights that the role of the connection lacks.
fn not_allowed(connection: &mut PgConnection, rights: String) -> Error {
    match select(sql::<Text>("current_user::text")).get_result(connection) {
        Ok(role) => Error::NotAllowed { role, rights },
        Err(error) => error.into(),
    }
}

/// The rights that a worker needs and the role lacks: `INSERT on entries, SELECT on event_key`.
pub(super) fn lacking_rights(connection: &mut PgConnection) -> Result<Option<String>, Error> {
    let wanted = RIGHTS
        .iter()
        .flat_map(|(table, rights)| rights.split(' ').map(move |right| (*table, right)));
    let (tables, rights): (Vec<&str>, Vec<&str>) = wanted.unzip();
    let missing: Option<String> = select(
        sql::<Nullable<Text>>(
            "(SELECT string_agg(w.name || ' on ' || w.relation, ', ' ORDER BY w.relation, w.name) FROM unnest(",
        )
        .bind::<Array<Text>, _>(&tables)
        .sql(", ")
        .bind::<Array<Text>, _>(&rights)
        .sql(
            ") AS w(relation, name) WHERE NOT coalesce(has_table_privilege(to_regclass(w.relation)::oid, w.name), false))",
        ),
    )
    .get_result(connection)?;
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_migrations_is_an_error() {
        let nothing = EmbeddedMigrations::new(&[]);
        let Err(error) = sorted(&nothing) else {
            panic!("there are migrations")
        };
        assert_eq!(
            error.to_string(),
            "this program was built without migrations"
        );
        assert!(!known().unwrap().is_empty());
    }
}
