//! Checks which roles of tarsy a database role can act as: owner (`tarsy migrate`), worker, or reader (commands that
//! show).

use diesel::deserialize::QueryableByName;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Text};

use super::compatibility::{MIGRATIONS_TABLE, lacking_rights};
use super::connect::ConnectOptions;
use super::error::Error;

/// The rights of a connection's role. Each `…_lacks` is `None` if it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseFit {
    pub role: String,
    pub is_superuser: bool,
    /// Whether it may change a row of any table of tarsy.
    pub may_write: bool,
    pub owner_lacks: Option<String>,
    pub worker_lacks: Option<String>,
    pub reader_lacks: Option<String>,
}

#[derive(QueryableByName)]
struct RoleRow {
    #[diesel(sql_type = Text)]
    role: String,
    #[diesel(sql_type = Bool)]
    is_superuser: bool,
    #[diesel(sql_type = Bool)]
    may_write: bool,
    #[diesel(sql_type = Nullable<Text>)]
    not_owned: Option<String>,
    #[diesel(sql_type = Bool)]
    may_create: bool,
    #[diesel(sql_type = Nullable<Text>)]
    not_readable: Option<String>,
}

/// Reads the rights of the role of a connection. Changes nothing.
///
/// # Errors
/// When the database cannot be reached, or has no schema yet ([`Error::SchemaBehind`]).
pub async fn database_fit(options: &ConnectOptions) -> Result<DatabaseFit, Error> {
    options.with_connection(read).await
}

fn read(connection: &mut PgConnection) -> Result<DatabaseFit, Error> {
    let is_migrated = "SELECT count(*) > 0 AS is_there FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
                       WHERE relname = $1";
    let is_migrated: IsThere = diesel::sql_query(is_migrated)
        .bind::<Text, _>(MIGRATIONS_TABLE)
        .get_result(connection)?;
    if !is_migrated.is_there {
        return Err(Error::SchemaBehind("00000000000000".to_owned()));
    }
    let row: RoleRow = diesel::sql_query(
        "WITH tables AS (SELECT c.oid, c.relname, c.relowner FROM pg_class c JOIN pg_class m ON \
         m.relnamespace = c.relnamespace WHERE m.relname = $1 AND m.relkind = 'r' AND c.relkind = 'r') \
         SELECT current_user::text AS role, \
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser, \
         coalesce(bool_or(has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), false) AS may_write, \
         string_agg(relname, ', ' ORDER BY relname) FILTER (WHERE NOT pg_has_role(relowner, 'USAGE')) AS not_owned, \
         coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create, \
         string_agg(relname, ', ' ORDER BY relname) FILTER (WHERE NOT has_table_privilege(oid, 'SELECT')) \
         AS not_readable FROM tables",
    )
    .bind::<Text, _>(MIGRATIONS_TABLE)
    .get_result(connection)?;
    let create = (!row.may_create).then(|| "CREATE on the schema".to_owned());
    Ok(DatabaseFit {
        role: row.role,
        is_superuser: row.is_superuser,
        may_write: row.may_write,
        owner_lacks: row
            .not_owned
            .map(|tables| format!("the ownership of {tables}"))
            .or(create),
        worker_lacks: lacking_rights(connection)?,
        reader_lacks: row.not_readable.map(|tables| format!("SELECT on {tables}")),
    })
}

#[derive(QueryableByName)]
struct IsThere {
    #[diesel(sql_type = Bool)]
    is_there: bool,
}
