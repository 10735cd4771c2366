//! Masking: takes secrets out of texts that come from outside before anything else sees them.
//!
//! Structure comes first: JSON and YAML are read wherever they stand in a text, and what has a secret name or place is
//! masked with all that is below it. Then come words with their values, tokens of a known shape, addresses, keys, what
//! is encoded, and the values that the process knows. Each finder is linear in the text and only marks; the marked spans
//! are replaced in the text as it came. What is in doubt is masked, except where the value plainly is none (`null`,
//! `${DB_PASSWORD}`, `<set to the key …>`): an investigation needs to see that a password is missing.

mod bytes;
mod each;
mod find;
mod literals;
mod marks;
mod names;
mod search;
mod starts;
mod stream;
#[cfg(test)]
mod tests;
mod values;
mod views;

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

pub use stream::StreamMask;

use literals::Literals;
use search::Search;

/// What stands in place of a secret.
pub const MASKED: &str = "[masked]";
/// What stands in place of a whole text when the search for secrets in it failed.
pub const HIDDEN: &str = "[hidden: the text could not be searched for secrets]";

/// Longer texts are hidden: no port lets them in.
const MAX_BYTES: usize = 64 << 20;
/// A masked text is masked again until nothing changes, so that masking it later changes nothing either.
const ROUNDS: usize = 8;

/// Knows what to mask.
#[derive(Clone, Default)]
pub struct Mask {
    literals: Arc<Literals>,
    #[cfg(test)]
    broken: bool,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("literals", &self.literals.count()).finish()
    }
}

impl Mask {
    /// The built-in patterns and these values, in their encoded forms too. Values of less than six bytes are left out.
    pub fn new(literals: impl IntoIterator<Item = String>) -> Self {
        let literals = Arc::new(Literals::new(literals.into_iter()));
        Self {
            literals,
            #[cfg(test)]
            broken: false,
        }
    }

    /// The text without its secrets. A JSON text stays JSON of the same shape; a masked number becomes the text
    /// `"[masked]"`. Masking a masked text changes nothing. [`HIDDEN`] when the search fails.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // A panic of a finder leaves nothing behind: all that it changes is dropped.
        catch_unwind(AssertUnwindSafe(|| self.searched(text))).ok().flatten().unwrap_or(Cow::Borrowed(HIDDEN))
    }

    fn searched<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        #[cfg(test)]
        assert!(!self.broken, "a finder fails");
        if text.len() > MAX_BYTES || !self.literals.works() {
            return None;
        }
        let search = Search::new(&self.literals);
        let first = search.round(text);
        let (json, mut masked) = match first.masked {
            Cow::Borrowed(_) => return Some(Cow::Borrowed(text)),
            Cow::Owned(masked) => (first.json, masked),
        };
        for _ in 1..ROUNDS {
            let round = search.round(&masked);
            if json && !round.json {
                return None;
            }
            match round.masked {
                Cow::Borrowed(_) => return Some(Cow::Owned(masked)),
                Cow::Owned(again) => masked = again,
            }
        }
        None
    }

    /// The value without its secrets, in the same shape; a masked number becomes the text `[masked]`. The text
    /// [`HIDDEN`] when the search fails.
    pub fn json(&self, value: &Value) -> Value {
        match self.apply(&value.to_string()) {
            Cow::Borrowed(HIDDEN) => HIDDEN.into(),
            Cow::Borrowed(_) => value.clone(),
            Cow::Owned(masked) => serde_json::from_str(&masked).unwrap_or_else(|_| HIDDEN.into()),
        }
    }
}
