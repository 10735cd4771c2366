//! The input of expressions for one alert: the body, the element of its list, and the captures of the regex.

use serde_json::Value;

use super::pointer::{Base, Pointer};

/// The values that pointers and names lead to.
#[derive(Clone, Debug)]
pub struct View<'v> {
    body: &'v Value,
    /// The element that is read; only a source with `each` has one.
    element: Option<&'v Value>,
    captures: Vec<(String, String)>,
}

impl<'v> View<'v> {
    pub fn new(body: &'v Value, element: Option<&'v Value>) -> Self {
        Self {
            body,
            element,
            captures: Vec::new(),
        }
    }

    pub(super) fn with_captures(self, captures: Vec<(String, String)>) -> Self {
        Self { captures, ..self }
    }

    /// The value that a pointer leads to.
    pub fn find(&self, pointer: &Pointer) -> Option<&'v Value> {
        match pointer.base() {
            Base::Body => pointer.find(self.body),
            Base::Element => pointer.find(self.element?),
        }
    }

    /// The text of a pointer, if it is not empty.
    pub(super) fn text(&self, pointer: &Pointer) -> Option<String> {
        scalar(self.find(pointer)?)
    }

    pub(super) fn captured(&self, name: &str) -> Option<String> {
        let (_, text) = self.captures.iter().find(|(known, _)| known == name)?;
        Some(text.trim())
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

/// The text of a text that is not empty, of a number or of a bool.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim())
            .filter(|text| !text.is_empty())
            .map(str::to_owned),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
