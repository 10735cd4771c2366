//! Connections through a pooler, such as `PgBouncer`. It refuses settings in a connection string, so they are set after
//! connecting. That holds only where a client keeps its server connection (`pool_mode = session`): a pooler that shares
//! server connections between transactions would lose the settings, and pass them on to other clients.

use diesel::connection::SimpleConnection as _;
use diesel::result::DatabaseErrorKind;
use diesel::result::Error::DatabaseError;
use diesel::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::error::Error;

/// Rounds of the comparison. One finds a pooler that hands out the connection that was used last, as most do.
const ROUNDS: usize = 3;

/// The ways to one database.
#[derive(Clone)]
pub(crate) struct Addresses {
    /// The connection string with all settings.
    pub(crate) direct: String,
    /// The same without the settings of statements.
    pub plain: String,
    /// Statements that make these settings.
    pub settings: String,
}

/// Leaves out the addresses, which may contain a password.
impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Addresses {
    /// Connects, through a pooler if one is there.
    ///
    /// # Errors
    /// The refusal of the server; [`Error::SettingsLost`] for a pooler that shares connections.
    pub(crate) fn establish(&self) -> Result<PgConnection, Error> {
        match PgConnection::establish(&self.direct).map_err(Error::from) {
            Err(error) if error.is_of_pooler() => {
                let mut connection = PgConnection::establish(&self.plain)?;
                self.prepare(&mut connection)?;
                Ok(connection)
            }
            established => established,
        }
    }

    /// Makes the settings on a connection of [`Self::plain`].
    ///
    /// # Errors
    /// [`Error::SettingsLost`] when other clients use its server connection as well.
    pub(crate) fn prepare(&self, connection: &mut PgConnection) -> Result<(), Error> {
        has_own_server_connection(connection, &self.plain)?;
        Ok(connection.batch_execute(&self.settings)?)
    }
}

/// Compares the session with that of a second client, which holds a transaction meanwhile. No statement is prepared: a
/// prepared one breaks where connections are shared.
fn has_own_server_connection(connection: &mut PgConnection, address: &str) -> Result<(), Error> {
    let mark = Uuid::new_v4();
    connection.batch_execute(&format!("SET tarsy.session = '{mark}'"))?;
    let mut other = match begun(address) {
        // A pooler that shares even statements closes a connection that begins a transaction: twice is no chance.
        Err(error) if error.is_lost_connection() => {
            begun(address).map_err(|_| Error::SettingsLost)?
        }
        begun => begun?,
    };
    let raise = |condition: &str| {
        format!(
            "DO $$BEGIN IF coalesce(current_setting('tarsy.session', true), '') {condition} '{mark}' \
             THEN RAISE restrict_violation; END IF; END$$"
        )
    };
    for _ in 0..ROUNDS {
        other.batch_execute(&raise("=")).map_err(of_comparison)?;
        connection
            .batch_execute(&raise("<>"))
            .map_err(of_comparison)?;
        other.batch_execute("COMMIT; BEGIN")?;
    }
    Ok(())
}

/// A connection with an open transaction.
fn begun(address: &str) -> Result<PgConnection, Error> {
    let mut connection = PgConnection::establish(address)?;
    connection.batch_execute("BEGIN")?;
    Ok(connection)
}

fn of_comparison(error: diesel::result::Error) -> Error {
    if let DatabaseError(DatabaseErrorKind::RestrictViolation, _) = error {
        Error::SettingsLost
    } else {
        error.into()
    }
}
