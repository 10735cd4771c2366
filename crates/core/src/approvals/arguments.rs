//! Arguments that a person can read as the tool will.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::visible::is_invisible;

/// The longest arguments that a person is asked about, in bytes.
pub const MAX_ARGUMENTS_BYTES: usize = 16 * 1024;

/// Whether arguments are empty, or one JSON object of at most [`MAX_ARGUMENTS_BYTES`], in which no key stands twice and
/// no key has a character that is not shown. Of two equal keys a person may see one and the tool may take the other.
pub fn is_readable(arguments: &str) -> bool {
    if arguments.is_empty() {
        return true;
    }
    arguments.len() <= MAX_ARGUMENTS_BYTES
        && arguments.trim_start().starts_with('{')
        && serde_json::from_str::<Readable>(arguments).is_ok()
}

/// A JSON value whose keys are unambiguous. Its parser refuses any other.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keys)
    }
}

/// A truth value of JSON.
type Flag = bool;

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Readable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: Flag) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_unit<E: Error>(self) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Readable, A::Error> {
        while items.next_element::<Readable>()?.is_some() {}
        Ok(Readable)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Readable, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if key.chars().any(|c| c.is_control() || is_hidden(c)) {
                return Err(Error::custom("a key with a character that is not shown"));
            }
            if !seen.insert(key) {
                return Err(Error::custom("a key twice"));
            }
            members.next_value::<Readable>()?;
        }
        Ok(Readable)
    }
}

/// Whether a character has no width, a direction, or the effect of a line break.
fn is_hidden(c: char) -> bool {
    is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_one_object_as_its_tool_does() {
        for readable in [
            "",
            "{}",
            " {\"pod\": \"a\", \"n\": [1, 2.5, -3, null, true, {\"pod\": \"b\"}]}\n",
            "{\"ключ\": \"\\u202e values may have what is escaped when it is shown\"}",
        ] {
            assert!(is_readable(readable), "{readable}");
        }
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_ARGUMENTS_BYTES));
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
        for unreadable in [
            " ",
            "null",
            "[]",
            "\"{}\"",
            "{} {}",
            "{\"a\": 1",
            "{\"a\": 1, \"a\": 1}",
            "{\"b\": [{\"a\": 1, \"c\": {}, \"\\u0061\": 2}]}",
            "{\"\\u202egnp\": 1}",
            "{\"a\\nb\": 1}",
            "{\"a\u{200b}\": 1, \"a\": 2}",
            "{\"a\\u2028b\": 1}",
            &long,
            &deep,
        ] {
            assert!(!is_readable(unreadable), "{unreadable:.40}");
        }
    }
}
