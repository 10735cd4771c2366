//! Refusals of a connection, by the words of the server and of libpq.

use diesel::ConnectionError;

use super::Error;

pub(super) const POOLER: &str = "a pooler (such as PgBouncer) does not pass settings on: use Postgres itself";
pub(super) const WRONG_PASSWORD: &str = "user or password is wrong";
pub(super) const NO_PASSWORD: &str = "a password is missing";
pub(super) const NO_LOGIN: &str = "this role may not log in";
pub(super) const NO_CONNECT: &str = "this role may not connect to the database";
pub(super) const NO_ROLE: &str = "there is no such role";
pub(super) const NO_DATABASE: &str = "there is no such database";

/// Texts of a server that refuses a connection until the configuration changes, each with the text that tarsy shows. A
/// text in another language than English counts as an outage.
const REFUSALS: [(&str, &str); 9] = [
    ("unsupported startup parameter", POOLER),
    ("password authentication failed", WRONG_PASSWORD),
    ("no password supplied", NO_PASSWORD),
    ("authentication failed for user", "the server does not admit this user"),
    ("no pg_hba.conf entry", "the server does not admit this user or machine"),
    ("is not permitted to log in", NO_LOGIN),
    ("permission denied for database", NO_CONNECT),
    ("role \"", NO_ROLE),
    ("database \"", NO_DATABASE),
];

pub(super) fn of(error: &ConnectionError) -> Option<Error> {
    let ConnectionError::BadConnection(text) = error else { return None };
    let is_named = |words: &str| match words {
        "role \"" | "database \"" => text.contains(&format!("FATAL:  {words}")) && text.contains("does not exist"),
        words => text.contains(words),
    };
    let (_, reason) = REFUSALS.iter().find(|(words, _)| is_named(words))?;
    Some(Error::Refused { reason, message: one_line(text) })
}

/// The sentences of a message, without the hint of libpq that repeats that there may be no server.
pub(super) fn one_line(text: &str) -> String {
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Is the server running"));
    let lines: Vec<String> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.join("; ")
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
    fn a_name_is_read_from_a_message() {
        assert_eq!(name_after("FATAL: database \"my db\" does not exist", "database"), Some("my db"));
        assert_eq!(name_after("FATAL: no name", "database"), None);
    }
}
