//! Finds alerts and sessions by either end of an id.

use diesel::prelude::*;
use diesel::sql_types::Uuid as SqlUuid;
use uuid::Uuid;

use tarsy_core::ids::SessionId;
use tarsy_reports::IdMatch;

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::statement::statement;

/// Shorter parts would match too many ids.
const MIN_DIGITS: usize = 6;
/// Hexadecimal digits of a whole id.
const ID_DIGITS: usize = 32;
/// The last digits of an id, which an index holds in reverse order.
const INDEXED_DIGITS: usize = 12;

pub(crate) struct Resolve {
    end_from: String,
    end_before: String,
    end: String,
    first: Uuid,
    last: Uuid,
}

statement!(Resolve, "resolve.sql" -> SqlUuid, [end_from, end_before, end, first, last]);

impl Resolve {
    /// `None` when there are more digits than an id has.
    fn new(digits: &str) -> Option<Self> {
        let padded = |with: &str| {
            let rest = ID_DIGITS.checked_sub(digits.len())?;
            Uuid::parse_str(&format!("{digits}{}", with.repeat(rest))).ok()
        };
        let end_from: String = digits.chars().rev().take(INDEXED_DIGITS).collect();
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
        if digits.len() < MIN_DIGITS || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Ok(IdMatch::Invalid);
        }
        let Some(read) = Resolve::new(&digits) else {
            return Ok(IdMatch::None);
        };
        let ids: Vec<Uuid> = self
            .run(Operation::Command, move |connection| {
                (&read).get_results(connection)
            })
            .await?;
        let ids: Vec<SessionId> = ids.into_iter().map(SessionId).collect();
        Ok(match ids.as_slice() {
            [] => IdMatch::None,
            [only] => IdMatch::One(*only),
            _ => IdMatch::Many(ids),
        })
    }
}
