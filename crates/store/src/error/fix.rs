//! The command or setting that mends an error.

use diesel::result::DatabaseErrorKind;
use diesel::result::Error::DatabaseError;

use super::Error;
use super::refusal::{
    NO_AUTHORITIES, NO_CONNECT, NO_DATABASE, NO_LOGIN, NO_PASSWORD, NO_ROLE, NO_TLS, OTHER_HOST,
    POOLER, UNKNOWN_CERTIFICATE, WRONG_PASSWORD, name_after,
};
use super::words::{self, Missing};

const USE_POSTGRES: &str = "set pool_mode = session, without options in ignore_startup_parameters, or set DATABASE_URL to Postgres itself";
const OWNER: &str = "run tarsy migrate as the owner of the tables";
const TABLE_RIGHTS: &str = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO";

impl Error {
    /// The command or setting that mends the cause; `None` where the text of the error has it, or waiting helps.
    pub fn fix(&self) -> Option<String> {
        match self {
            Self::BadUrl(_) => Some(
                "set DATABASE_URL or --database-url to postgres://user@host:5432/database"
                    .to_owned(),
            ),
            Self::Connect(_) | Self::Pool(_) | Self::NoAnswer(_) => {
                Some("start Postgres there, or set DATABASE_URL or --database-url".to_owned())
            }
            Self::Refused { reason, message } => Some(of_refusal(reason, message)),
            Self::NotAllowed { role, rights } if rights.ends_with("schema") => Some(format!(
                "GRANT USAGE ON SCHEMA public TO {}",
                identifier(role)
            )),
            Self::NotAllowed { role, rights } if rights.split(", ").all(is_of_reader) => {
                Some(to_read(&identifier(role)))
            }
            Self::NotAllowed { role, .. } => Some(format!("{TABLE_RIGHTS} {}", identifier(role))),
            Self::SettingsLost => Some(USE_POSTGRES.to_owned()),
            Self::Statement(DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _)) => {
                Some("set DATABASE_URL to the primary server".to_owned())
            }
            Self::Statement(error) | Self::TimedOut(error) => of_statement(&error.to_string()),
            Self::Migration(error) => of_migration(&error.to_string()),
            Self::NotOwner { .. } => Some(OWNER.to_owned()),
            Self::Secret(_) => Some("correct the file, or set another one".to_owned()),
            Self::Build(_)
            | Self::OldPrimary { .. }
            | Self::Broken(_)
            | Self::MigrationBlocked { .. }
            | Self::MigrationBusy(_)
            | Self::NoMigrations
            | Self::SchemaBehind(_)
            | Self::SchemaTooNew(_)
            | Self::Unreadable(_) => None,
        }
    }

    /// Whether only a change of the address or of the login helps.
    pub fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::BadUrl(_) | Self::Refused { .. } | Self::Secret(_) | Self::SettingsLost
        )
    }
}

fn of_refusal(reason: &str, message: &str) -> String {
    let role = name_after(message, "user").or_else(|| name_after(message, "role"));
    let role = identifier(role.unwrap_or("the_role"));
    let database = identifier(name_after(message, "database").unwrap_or("the_database"));
    match reason {
        POOLER => USE_POSTGRES.to_owned(),
        WRONG_PASSWORD => format!(
            "set user and password of DATABASE_URL as the server has them; there, CREATE ROLE {role} LOGIN makes a \
             missing user, and \\password {role} in psql sets the password"
        ),
        NO_PASSWORD => {
            // An address as an example would be masked in a log.
            "set DATABASE_PASSWORD, or write the password into DATABASE_URL".to_owned()
        }
        NO_LOGIN => format!("ALTER ROLE {role} LOGIN"),
        NO_CONNECT => {
            format!("GRANT CONNECT ON DATABASE {database} TO the user of DATABASE_URL")
        }
        NO_ROLE => format!(
            "CREATE ROLE {role} LOGIN, then \\password {role} in psql; or set another user in DATABASE_URL"
        ),
        NO_DATABASE => format!(
            "CREATE DATABASE {database}, then tarsy migrate; or set another one in DATABASE_URL"
        ),
        NO_TLS => "ssl = on on the server, or another sslmode in DATABASE_URL".to_owned(),
        UNKNOWN_CERTIFICATE | NO_AUTHORITIES => {
            "set DATABASE_CA_FILE to a file with the authority of the server's certificate"
                .to_owned()
        }
        OTHER_HOST => "set the host of DATABASE_URL to the name in its certificate".to_owned(),
        _ => {
            "add a line for user, database and machine to pg_hba.conf, then SELECT pg_reload_conf()"
                .to_owned()
        }
    }
}

fn of_statement(message: &str) -> Option<String> {
    match words::missing(message)? {
        Missing::RightOnSchema | Missing::Right => Some(to_read("the user of DATABASE_URL")),
        Missing::Ownership => None,
    }
}

/// Whether commands that read need the right, such as `SELECT on entries`.
fn is_of_reader(right: &str) -> bool {
    right.starts_with("SELECT on ")
}

fn to_read(role: &str) -> String {
    format!(
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}; a worker, and commands that change data, need INSERT, \
         UPDATE and DELETE, too"
    )
}

fn of_migration(message: &str) -> Option<String> {
    match words::missing(message)? {
        Missing::RightOnSchema => Some(format!(
            "{OWNER}, or GRANT USAGE, CREATE ON SCHEMA public TO the user of DATABASE_URL"
        )),
        Missing::Right | Missing::Ownership => Some(OWNER.to_owned()),
    }
}

/// A name as SQL reads it.
fn identifier(name: &str) -> String {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_a_log_leaves_the_fix_of_a_refused_login_as_it_is() {
        let mask = tarsy_mask::Mask::default();
        for reason in [NO_PASSWORD, WRONG_PASSWORD, NO_ROLE] {
            let message = "password authentication failed for user \"sre\"".to_owned();
            let fix = Error::Refused { reason, message }.fix().unwrap();
            assert_eq!(mask.apply(&fix), fix);
        }
    }

    #[test]
    fn a_fix_names_the_role_or_database_as_sql_reads_it() {
        let fix = |reason, message: &str| {
            Error::Refused {
                reason,
                message: message.to_owned(),
            }
            .fix()
            .unwrap()
        };
        assert!(
            fix(NO_DATABASE, "FATAL: database \"My db\" does not exist")
                .starts_with("CREATE DATABASE \"My db\",")
        );
        assert!(
            fix(NO_ROLE, "FATAL: role \"sre\" does not exist")
                .starts_with("CREATE ROLE sre LOGIN,")
        );
        assert!(
            fix(
                WRONG_PASSWORD,
                "password authentication failed for user \"sre\""
            )
            .contains("\\password sre in psql")
        );
        let lacks = |rights: &str| {
            Error::NotAllowed {
                role: "sre".to_owned(),
                rights: rights.to_owned(),
            }
            .fix()
            .unwrap()
        };
        assert_eq!(
            lacks("USAGE on the schema"),
            "GRANT USAGE ON SCHEMA public TO sre"
        );
        assert_eq!(lacks("INSERT on entries"), format!("{TABLE_RIGHTS} sre"));
        assert_eq!(
            lacks("SELECT on entries, INSERT on stages"),
            format!("{TABLE_RIGHTS} sre")
        );
        let reads = lacks("SELECT on entries, SELECT on stages");
        assert!(
            reads.starts_with("GRANT SELECT ON ALL TABLES IN SCHEMA public TO sre; a worker"),
            "{reads}"
        );
        let migration = |text: &str| Error::Migration(text.to_owned().into()).fix();
        assert_eq!(
            migration("must be owner of table entries").as_deref(),
            Some(OWNER)
        );
        let schema = migration("permission denied for schema public").unwrap();
        assert!(schema.contains("GRANT USAGE, CREATE ON SCHEMA"), "{schema}");
        assert_eq!(migration("syntax error"), None);
        let not_owner = Error::NotOwner {
            role: "sre".to_owned(),
            rights: "SELECT on entries".to_owned(),
        };
        assert_eq!(not_owner.fix().as_deref(), Some(OWNER));
    }
}
