//! A body during recognition, when many sources ask for the JSON in its texts: each such text is parsed once.

use std::cell::OnceCell;

use serde_json::Value;

use super::pointer::{Pointer, walk};

/// A longer text is not read as JSON.
const MAX_EMBEDDED_BYTES: usize = 256 * 1024;

/// A body with the texts in it that are JSON, parsed on demand.
#[derive(Debug)]
pub(super) struct Document<'v> {
    body: &'v Value,
    embedded: Vec<(&'v Pointer, OnceCell<Option<Value>>)>,
}

impl<'v> Document<'v> {
    /// `embedded` are the pointers to texts that a source reads as JSON.
    pub(super) fn new(body: &'v Value, embedded: &'v [Pointer]) -> Self {
        let embedded = embedded.iter().map(|at| (at, OnceCell::new())).collect();
        Self { body, embedded }
    }

    /// The value of a pointer for a source that reads the texts at `parse` as JSON.
    pub(super) fn find(&self, pointer: &Pointer, parse: &[Pointer]) -> Option<&Value> {
        for (at, value) in self.embedded.iter().filter(|(at, _)| parse.contains(at)) {
            if let Some(rest) = pointer.below(at)
                && let Some(value) = value.get_or_init(|| read(at.find(self.body)?))
            {
                return walk(value, rest);
            }
        }
        pointer.find(self.body)
    }
}

/// The JSON of a text: an object or a list.
pub(super) fn read(value: &Value) -> Option<Value> {
    let text = value.as_str()?.trim_start();
    if !text.starts_with(['{', '[']) || text.len() > MAX_EMBEDDED_BYTES {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Reads the texts at the pointers in place.
pub(super) fn embed(value: &mut Value, parse: &[Pointer]) {
    for pointer in parse {
        if let Some(text) = pointer.find_mut(value)
            && let Some(mut parsed) = read(text)
        {
            parsed.sort_all_objects();
            *text = parsed;
        }
    }
}
