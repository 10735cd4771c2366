//! Routing: matchers in the syntax of Alertmanager, and the facts of an alert that they compare.
//!
//! `config/sections/routes/` has the routes with what they do. The worker and the receiver ask them.

mod facts;
mod matcher;
mod written;

pub use facts::{Facts, MAX_LABEL_BYTES, MAX_LABELS, OWN_NAMES};
pub use matcher::{Matcher, MatcherFault};
