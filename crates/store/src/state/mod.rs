//! The state that all clones of a store share. It knows no connection and no statement.

mod kept_texts;
mod outgoing;
mod positions;

pub(crate) use self::kept_texts::KeptTexts;
pub(crate) use self::outgoing::Outgoing;
pub(crate) use self::positions::{History, Positions, Reached};
