//! The result of a search for an id.

use tarsy_core::ids::SessionId;

/// The ids that a part of an id matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdMatch {
    One(SessionId),
    None,
    /// More than one id; at most ten of them.
    Many(Vec<SessionId>),
    /// The part has fewer than six characters, or a character that is no hexadecimal digit.
    Invalid,
}
