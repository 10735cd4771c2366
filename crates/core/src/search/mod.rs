//! Full-text search: the words of a session, and the queries that find it.
//!
//! The words are made here and not by the text parser of the database, which needs quadratic time for some texts.
//! Every function reads at most [`MAX_TEXT_BYTES`] of a text, once, and its result has a bound. Words of a text and
//! words of a query are made alike: what is left out of one is left out of the other.

mod labels;
mod literal;
mod query;
mod words;
#[cfg(test)]
mod tests;

pub use self::labels::label_query;
pub use self::literal::{Literal, MAX_LITERAL_BYTES, Piece, TooLong};
pub use self::query::{all_of, query};
pub use self::words::{Searchable, alert_words, analysis_words};

/// Bytes of a text that are read.
pub const MAX_TEXT_BYTES: usize = 150_000;
/// Words of an alert, and of an analysis.
const MAX_WORDS: usize = 250;
/// Labels of an alert.
const MAX_LABELS: usize = 500;
/// Words of a query: further ones are left out.
const MAX_QUERY_WORDS: usize = 32;
