//! Refusals of a connection, by the words of the server and of libpq.
//!
//! No code is in reach: Diesel passes on the text of a failed connection, and nothing else. The texts of libpq itself
//! are always English, because this program sets no locale; those of a server before the login have its language.

use diesel::ConnectionError;

use super::Error;

pub(super) const POOLER: &str =
    "a pooler (such as PgBouncer) does not pass settings on: use Postgres itself";
pub(super) const WRONG_PASSWORD: &str = "user or password is wrong";
pub(super) const NO_PASSWORD: &str = "a password is missing";
pub(super) const NO_LOGIN: &str = "this role may not log in";
pub(super) const NO_CONNECT: &str = "this role may not connect to the database";
pub(super) const NO_ROLE: &str = "there is no such role";
const NOT_ADMITTED: &str = "the server does not admit this user or machine";
pub(super) const NO_TLS: &str = "the server has no TLS, and this address requires it";
pub(super) const UNKNOWN_CERTIFICATE: &str =
    "no authority of this machine has signed the certificate of the server";
pub(super) const OTHER_HOST: &str = "the certificate of the server has another name";
pub(super) const NO_AUTHORITIES: &str =
    "the file with the authorities of certificates cannot be used";
pub(super) const NO_DATABASE: &str = "there is no such database";

/// Texts of a server that refuses a connection until the configuration changes, each with the text that tarsy shows. A
/// text in another language than English counts as an outage.
const REFUSALS: [(&str, &str); 14] = [
    ("unsupported startup parameter", POOLER),
    ("password authentication failed", WRONG_PASSWORD),
    ("no password supplied", NO_PASSWORD),
    (
        "authentication failed for user",
        "the server does not admit this user",
    ),
    ("no pg_hba.conf entry", NOT_ADMITTED),
    ("pg_hba.conf rejects", NOT_ADMITTED),
    ("server does not support SSL, but SSL was required", NO_TLS),
    ("certificate verify failed", UNKNOWN_CERTIFICATE),
    ("does not match host name", OTHER_HOST),
    ("root certificate file", NO_AUTHORITIES),
    ("is not permitted to log in", NO_LOGIN),
    ("permission denied for database", NO_CONNECT),
    ("role \"", NO_ROLE),
    ("database \"", NO_DATABASE),
];

pub(super) fn classify(error: &ConnectionError) -> Option<Error> {
    let ConnectionError::BadConnection(text) = error else {
        return None;
    };
    let (_, reason) = REFUSALS.iter().find(|(words, _)| match *words {
        "role \"" | "database \"" => {
            text.contains(&format!("FATAL:  {words}")) && text.contains("does not exist")
        }
        words => text.contains(words),
    })?;
    Some(Error::Refused {
        reason,
        message: one_line(text),
    })
}

/// The sentences of a message, without the hint of libpq that repeats that there may be no server.
pub(super) fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("Is the server running"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The name in quotation marks after `word`, such as `database "tarsy"`.
pub(super) fn name_after<'a>(message: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(&format!("{word} \""))?;
    rest.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_of_libpq_is_kept_once_and_its_guess_is_left_out() {
        let refused = "connection to server at \"localhost\" (::1), port 1 failed: Connection refused\n\tIs the server \
                       running on that host and accepting TCP/IP connections?\nconnection to server at \"localhost\" \
                       (127.0.0.1), port 1 failed: FATAL:  no\nDETAIL:  why\n";
        assert_eq!(
            one_line(refused),
            "connection to server at \"localhost\" (::1), port 1 failed: Connection refused; connection to server at \
             \"localhost\" (127.0.0.1), port 1 failed: FATAL: no; DETAIL: why"
        );
    }

    #[test]
    fn a_refusal_stays_until_the_configuration_changes_and_an_outage_does_not() {
        let of = |text: &str| Error::from(ConnectionError::BadConnection(text.to_owned()));
        let at = "connection to server at \"db\" (10.0.0.7), port 5432 failed: ";
        for (text, fix) in [
            (
                "FATAL:  pg_hba.conf rejects connection for host \"10.0.0.9\", user \"u\", no encryption",
                "pg_hba.conf",
            ),
            (
                "FATAL:  no pg_hba.conf entry for host \"10.0.0.9\", user \"u\"",
                "to pg_hba.conf",
            ),
            (
                "server does not support SSL, but SSL was required",
                "ssl = on on the server, or another sslmode",
            ),
            ("SSL error: certificate verify failed", "DATABASE_CA_FILE"),
            (
                "server certificate for \"a\" does not match host name \"db\"",
                "the name in its certificate",
            ),
            (
                "root certificate file \"/ca.pem\" does not exist",
                "DATABASE_CA_FILE",
            ),
        ] {
            let error = of(&format!("{at}{text}\n"));
            assert!(error.is_configuration(), "{error}");
            assert!(
                error.fix().is_some_and(|found| found.contains(fix)),
                "{error}: {:?}",
                error.fix()
            );
        }
        assert!(!of(&format!("{at}Connection refused")).is_configuration());
    }

    #[test]
    fn a_name_is_read_from_a_message() {
        assert_eq!(
            name_after("FATAL: database \"my db\" does not exist", "database"),
            Some("my db")
        );
        assert_eq!(name_after("FATAL: no name", "database"), None);
    }
}
