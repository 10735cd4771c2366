//! The mask: replaces secrets in a text by `[masked]`.
//!
//! Every text from outside passes the mask before anything stores, logs, sends or shows it. Finders (`find`) mark
//! secret spans, each in time linear in the text, and the marked spans are replaced in the original text. Structure is
//! read first: JSON and YAML wherever they occur in a text; a value whose key or position is secret is masked with
//! all that is nested in it. Then follow keys with values in plain text, tokens of a known format, credentials in URLs,
//! private keys, encoded text, and the secrets that the process knows. A doubtful value is masked, but not one that
//! obviously is no secret (`null`, `${DB_PASSWORD}`, `<set to the key …>`): an investigation needs to see that a
//! password is missing.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod bytes;
mod decoded_view;
mod spans;
mod prefilter;
mod known_secrets;
mod shared_secrets;
mod own_rules;
mod names;
mod prose;
mod values;
mod find;
mod line_prefixes;
mod search;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::iter::repeat_n;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

pub use own_rules::{Emails, OwnPattern, OwnRules, PatternFault};
pub use spans::MASKED;
pub use stream::StreamMask;

use search::Search;
use shared_secrets::SharedSecrets;
use spans::{Grain, TextForm};

/// Replaces a whole text that could not be searched for secrets.
pub const HIDDEN: &str = "[hidden: the text could not be searched for secrets]";

/// A longer text is replaced by [`HIDDEN`]; no port accepts one.
const MAX_BYTES: usize = 64 << 20;
/// A masked text is masked again until nothing changes, so that a later masking changes nothing either. A text that
/// does not settle loses the words around its secrets, and then their lines.
const ROUNDS: [(Grain, usize); 3] = [(Grain::Exact, 5), (Grain::Word, 2), (Grain::Line, 3)];

/// The built-in rules, those of the operator, and the secrets that the process knows. Clones share these secrets.
#[derive(Clone, Default)]
pub struct Mask {
    secrets: Arc<SharedSecrets>,
    rules: Arc<OwnRules>,
    #[cfg(test)]
    broken: bool,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask")
            .field("secrets", &self.secrets.current().count())
            .finish()
    }
}

impl Mask {
    /// Masks these values, too, also in their encoded forms. Values of less than six bytes are ignored: they would
    /// match ordinary words.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self {
            secrets: Arc::new(SharedSecrets::new(secrets.into_iter())),
            ..Self::default()
        }
    }

    /// The same mask with the rules of an operator.
    #[must_use]
    pub fn with_rules(self, rules: OwnRules) -> Self {
        Self {
            rules: Arc::new(rules),
            ..self
        }
    }

    /// Masks these values, too, from now on and in all clones: a file of a token has a new content. Earlier values stay
    /// masked, of those that were added here the newest 512.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        self.secrets.add(secrets.into_iter());
    }

    /// The text without its secrets. A JSON text stays JSON of the same shape; a masked number becomes the text
    /// `"[masked]"`. Masking a masked text changes nothing. [`HIDDEN`] when the search fails.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Unwind safety: a finder that panics has only changed values that are dropped here.
        catch_unwind(AssertUnwindSafe(|| self.searched(text)))
            .ok()
            .flatten()
            .unwrap_or(Cow::Borrowed(HIDDEN))
    }

    fn searched<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        #[cfg(test)]
        assert!(!self.broken, "a finder fails");
        let secrets = self.secrets.current();
        if text.len() > MAX_BYTES || !secrets.works() {
            return None;
        }
        let search = Search {
            secrets: &secrets,
            rules: &self.rules,
        };
        let mut masked = Cow::Borrowed(text);
        let mut form = TextForm::Other;
        let rounds = ROUNDS.iter();
        for grain in rounds.flat_map(|(grain, rounds)| repeat_n(*grain, *rounds)) {
            let round = search.round(&masked, grain);
            if form == TextForm::Json && round.form != form {
                return None;
            }
            form = round.form;
            let Cow::Owned(again) = round.masked else {
                return Some(masked);
            };
            masked = Cow::Owned(again);
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

    /// The value with each of its strings masked separately; the keys are not considered.
    pub fn each_text(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.apply(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.each_text(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key, self.each_text(value)))
                    .collect(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}
