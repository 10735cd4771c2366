//! A lenient parser of braces and brackets: JSON with comments, trailing or missing commas, single quotes, line breaks
//! in strings or bare words, Python literals, YAML flow style.

use serde_json::{Map, Value};

use super::scalar;

/// Deeper nesting is rejected, because the parser is recursive.
const MAX_DEPTH: usize = 48;

/// The mapping or list that the whole text consists of; `None` for any other text.
pub(super) fn value(text: &str) -> Option<Value> {
    prefix(text.trim())
        .filter(|(_, behind)| behind.trim().is_empty())
        .map(|(value, _)| value)
}

/// The mapping or list at the beginning of a text, and the text after it.
pub(super) fn prefix(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    if let Some(read) = super::strict(text) {
        return Some(read);
    }
    let mut reader = FlowParser { rest: text };
    let value = reader.item(0)?;
    Some((value, reader.rest))
}

struct FlowParser<'a> {
    rest: &'a str,
}

impl<'a> FlowParser<'a> {
    fn item(&mut self, depth: usize) -> Option<Value> {
        self.skip_space();
        match self.rest.chars().next()? {
            _ if depth > MAX_DEPTH => None,
            '{' => self.map(depth),
            '[' => self.list(depth),
            '"' | '\'' => self.text().map(Value::String),
            _ => self.word(&[',', '}', ']']).map(scalar::value),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.take('{')?;
        let mut map = Map::new();
        while self.take('}').is_none() {
            let key = self.key()?;
            self.take(':')?;
            map.insert(key, self.item(depth + 1)?);
            self.separator('}')?;
        }
        Some(Value::Object(map))
    }

    fn key(&mut self) -> Option<String> {
        self.skip_space();
        if self.rest.starts_with(['"', '\'']) {
            return self.text();
        }
        self.word(&[':', ',', '}']).map(|key| key.trim().to_owned())
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

    /// A separator: a comma, a line break, the quote of the next string, or the end of the container, which is not
    /// consumed.
    fn separator(&mut self, end: char) -> Option<()> {
        let before = self.rest;
        self.skip_space();
        let skipped = before.get(..before.len() - self.rest.len())?;
        let is_there =
            self.take(',').is_some() || self.rest.starts_with([end, '"']) || skipped.contains('\n');
        is_there.then_some(())
    }

    /// A string in quotes. With more text after it, `"a" or "b"`, the whole text unchanged.
    fn text(&mut self) -> Option<String> {
        let (quoted, rest) = split_quoted(self.rest)?;
        let next = rest.trim_start_matches([' ', '\t', '\r']);
        let is_all = next.is_empty()
            || next.starts_with([',', '}', ']', ':', '\n', '#', '"'])
            || next.starts_with("//");
        match scalar::quoted(quoted) {
            Some(text) if is_all => {
                self.rest = rest;
                Some(text)
            }
            Some(_) | None => self
                .word(&[',', '}', ']'])
                .map(|word| word.trim().to_owned()),
        }
    }

    /// A bare word, up to one of `ends`, a line break or a comment that is not within quotes or brackets of the word.
    fn word(&mut self, ends: &[char]) -> Option<&'a str> {
        let mut quote = None;
        let mut escaped = false;
        let mut depth = 0_usize;
        let mut last = ' ';
        for (at, c) in self.rest.char_indices() {
            let is_end = depth == 0 && (c == '\n' || ends.contains(&c));
            match (quote, c) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(open), _) if open == c => quote = None,
                (Some(_), _) => {}
                (None, '"') => quote = Some(c),
                // A quote within a word is an apostrophe.
                (None, '\'') if at == 0 => quote = Some(c),
                (None, _) if is_end || last.is_whitespace() && self.is_comment(at) => {
                    let (word, rest) = self.rest.split_at_checked(at)?;
                    self.rest = rest;
                    return (!word.is_empty()).then_some(word);
                }
                (None, '{' | '[' | '(') => depth += 1,
                (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
                (None, _) => {}
            }
            last = c;
        }
        None
    }

    fn is_comment(&self, at: usize) -> bool {
        let rest = self.rest.get(at..).unwrap_or_default();
        ["//", "# ", "/*"].iter().any(|sign| rest.starts_with(sign))
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let behind = if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.rest.split_once('\n')
            } else if self.rest.starts_with("/*") {
                self.rest.split_once("*/")
            } else {
                None
            };
            let Some((_, rest)) = behind else { return };
            self.rest = rest;
        }
    }
}

/// A text in single or triple quotes, and the text after it.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    if let Some(inside) = text.strip_prefix("\"\"\"") {
        let end = inside.find("\"\"\"")?;
        return text.split_at_checked(end + 6);
    }
    let open = text.chars().next()?;
    let mut escaped = false;
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // YAML doubles a single quote.
            '\'' if open == '\'' && chars.next_if(|(_, next)| *next == '\'').is_some() => {}
            c if c == open => return text.split_at_checked(at + 1),
            _ => {}
        }
    }
    None
}
