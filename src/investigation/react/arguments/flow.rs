//! Braces and brackets, read with patience: JSON with trailing commas, single quotes or bare words, YAML's flow style.

use serde_json::{Map, Value};

use super::scalar;

/// Deeper nesting is not read: what calls itself has to end.
const DEEPEST: usize = 48;

/// The mapping or list that a text is, from its first character to its last; `None` for any other.
pub(super) fn value(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.trim() };
    if !reader.rest.starts_with(['{', '[']) {
        return None;
    }
    let value = reader.item(0)?;
    reader.rest.trim().is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn item(&mut self, depth: usize) -> Option<Value> {
        self.skip_space();
        match self.rest.chars().next()? {
            _ if depth > DEEPEST => None,
            '{' => self.map(depth),
            '[' => self.list(depth),
            _ => Some(scalar::value(self.word(&[',', '}', ']'])?)),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.take('{')?;
        let mut map = Map::new();
        while self.take('}').is_none() {
            let key = self.word(&[':', ',', '}'])?.trim();
            let key = scalar::quoted(key).unwrap_or_else(|| key.to_owned());
            self.take(':')?;
            map.insert(key, self.item(depth + 1)?);
            self.separator('}')?;
        }
        Some(Value::Object(map))
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.take('[')?;
        let mut list = Vec::new();
        while self.take(']').is_none() {
            list.push(self.item(depth + 1)?);
            self.separator(']')?;
        }
        Some(Value::Array(list))
    }

    /// A comma, or the end that is then still to be read.
    fn separator(&mut self, end: char) -> Option<()> {
        if self.take(',').is_some() {
            return Some(());
        }
        self.rest.starts_with(end).then_some(())
    }

    /// Up to one of `ends` outside of quotes and of brackets that open in the word.
    fn word(&mut self, ends: &[char]) -> Option<&'a str> {
        self.skip_space();
        let mut quote = None;
        let mut escaped = false;
        let mut depth = 0_usize;
        for (at, c) in self.rest.char_indices() {
            match (quote, c) {
                (Some(_), _) if escaped => escaped = false,
                (Some('"'), '\\') => escaped = true,
                (Some(open), _) if open == c => quote = None,
                (Some(_), _) => {}
                (None, '"') => quote = Some(c),
                // An apostrophe inside of a word is one.
                (None, '\'') if at == 0 => quote = Some(c),
                (None, _) if depth == 0 && ends.contains(&c) => {
                    let (word, rest) = self.rest.split_at_checked(at)?;
                    self.rest = rest;
                    return (!word.is_empty()).then_some(word);
                }
                (None, '{' | '[' | '(') => depth += 1,
                (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
                (None, _) => {}
            }
        }
        None
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}
