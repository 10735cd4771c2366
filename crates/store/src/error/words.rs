//! Texts of a server for errors of statements whose code is out of reach.
//!
//! libpq has the SQLSTATE of every error, but Diesel turns a few codes into kinds and drops all others, and the text of
//! an error is in the language of the server (`lc_messages`). A new connection therefore asks for English, which the
//! role has to be allowed (`pool/mod.rs`). Where it is not, a refused value counts as an outage, which ends at the
//! session's deadline, and a missing right is shown without the command that grants it.

/// Values that Postgres cannot store: SQLSTATE classes 22 and 54.
const REFUSED_VALUES: [&str; 12] = [
    "value too long for type",
    "invalid byte sequence for encoding",
    "unsupported Unicode escape sequence",
    "invalid input syntax for type",
    "invalid escape string",
    " out of range",
    "string is too long for tsvector",
    "index row size",
    "index row requires",
    "row is too big",
    "array size exceeds the maximum allowed",
    "invalid memory alloc request size",
];

/// Whether the server cannot store a value of the statement.
pub(super) fn refuse_a_value(message: &str) -> bool {
    REFUSED_VALUES.iter().any(|words| message.contains(words))
}

/// A requirement of a statement that its role does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    RightOnSchema,
    Right,
    Ownership,
}

/// The right that the server says is missing: SQLSTATE 42501.
pub(super) fn missing(message: &str) -> Option<Missing> {
    const MISSING: [(&str, Missing); 3] = [
        ("permission denied for schema", Missing::RightOnSchema),
        ("permission denied for", Missing::Right),
        ("must be owner of", Missing::Ownership),
    ];
    let found = MISSING.iter().find(|(words, _)| message.contains(words));
    found.map(|(_, missing)| *missing)
}
