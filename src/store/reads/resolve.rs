//! From a part of an id to what has it.

use diesel::prelude::*;
use diesel::sql_types::{Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::investigation::ids::SessionId;

use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::statement::statement;

/// Shorter parts of an id say too little.
const MIN_PART: usize = 6;
/// Digits of an id.
const DIGITS: usize = 32;
/// Of these, at the end, that are in an index, last digit first.
const INDEXED: usize = 12;

/// What a part of an id belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdMatch {
    /// This one.
    One(SessionId),
    /// Nothing.
    None,
    /// More than one; at most ten of them.
    Many(Vec<SessionId>),
    /// The part is shorter than six characters, or holds others than hexadecimal digits.
    Invalid,
}

pub(crate) struct Resolve {
    end_from: String,
    end_before: String,
    end: String,
    first: Uuid,
    last: Uuid,
}

statement!(Resolve, "resolve.sql", SqlUuid, [
    Text: end_from,
    Text: end_before,
    Text: end,
    SqlUuid: first,
    SqlUuid: last,
]);

impl Resolve {
    /// Of hexadecimal digits; `None` for more of them than an id has.
    fn new(digits: &str) -> Option<Self> {
        let padded = |with: &str| {
            let rest = DIGITS.checked_sub(digits.len())?;
            Uuid::parse_str(&format!("{digits}{}", with.repeat(rest))).ok()
        };
        let end_from: String = digits.chars().rev().take(INDEXED).collect();
        Some(Self {
            // No digit is greater than f.
            end_before: format!("{end_from}g"),
            end_from,
            end: format!("%{digits}"),
            first: padded("0")?,
            last: padded("f")?,
        })
    }
}

impl Store {
    /// The alert or session whose id begins or ends with `part` (dashes do not matter).
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn resolve(&self, part: &str) -> Result<IdMatch, Error> {
        let digits = part.trim().replace('-', "").to_ascii_lowercase();
        if digits.len() < MIN_PART || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Ok(IdMatch::Invalid);
        }
        let Some(read) = Resolve::new(&digits) else { return Ok(IdMatch::None) };
        let ids: Vec<Uuid> = self.run(move |connection| (&read).get_results(connection)).await?;
        let ids: Vec<SessionId> = ids.into_iter().map(SessionId).collect();
        Ok(match ids.as_slice() {
            [] => IdMatch::None,
            [only] => IdMatch::One(*only),
            _ => IdMatch::Many(ids),
        })
    }
}
