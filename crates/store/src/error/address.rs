//! The faults of an address, by the words of libpq: it has no codes for them. They are always English, because this
//! program sets no locale.

use diesel::ConnectionError;

/// Texts of libpq for an invalid address, each with the text that tarsy shows instead, because libpq quotes the
/// address. A password with a `%` is the most frequent cause.
const BAD_ADDRESSES: [(&str, &str); 14] = [
    (
        "invalid percent-encoded token",
        "a % that begins no character code: write %25 for the % of a password",
    ),
    ("in percent-encoded value", "%00 is no character"),
    ("use percent-encoded spaces", "a space: write %20"),
    (
        "in connection info string",
        "neither a postgres:// URL nor key=value words",
    ),
    (
        "invalid connection option",
        "neither a postgres:// URL nor key=value words that libpq knows",
    ),
    (
        "invalid URI query parameter",
        "a parameter after the ? that libpq does not know",
    ),
    (
        "separator \"=\" in URI query parameter",
        "a parameter after the ? that is not key=value",
    ),
    (
        "in URI",
        "not a URL of the form postgres://user:password@host:port/database",
    ),
    (
        "for connection option",
        "an option with a value that is not a number",
    ),
    ("invalid port number", "a port that is no port"),
    (
        "value: \"",
        "an option with a value that libpq does not know",
    ),
    ("could not match", "not as many ports as hosts"),
    (
        "definition of service",
        "a service that the service file does not define",
    ),
    (
        "invalid require_auth",
        "a require_auth that libpq does not know",
    ),
];

pub(super) fn fault(error: &ConnectionError) -> Option<&'static str> {
    if matches!(error, ConnectionError::InvalidCString(_)) {
        return Some("a NUL byte");
    }
    let ConnectionError::BadConnection(text) = error else {
        return None;
    };
    if text.starts_with("connection to server") {
        // The text of a server may contain any words.
        return None;
    }
    BAD_ADDRESSES
        .iter()
        .find(|(libpq, _)| text.contains(libpq))
        .map(|(_, reason)| *reason)
}
