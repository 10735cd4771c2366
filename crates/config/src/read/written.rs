//! A value as it is in the file, for words that may be numbers, and to show it again.

use serde_json::Value;

use super::reader::Field;
use super::yaml::data_value;

impl Field<'_> {
    /// The value as JSON, with its references unresolved.
    pub(crate) fn written(&self) -> Value {
        data_value(self.data().clone())
    }
}
