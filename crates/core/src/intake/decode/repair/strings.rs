//! Repairs quoted strings: finds their ends, and escapes their content.

use super::cursor::{begins_with_key, is_gap};
use super::{Kind, Repairer, StringRole};
use crate::sources::Repair;

/// The replacement of half a character.
const REPLACEMENT: &str = "\\ufffd";

/// The escape after a backslash.
enum Escape {
    /// An escape of JSON, with the number of bytes after its backslash.
    Valid(usize),
    /// A character in another spelling, with so many bytes after the backslash.
    Means(char, usize),
    /// Half a character, in so many bytes.
    Half(usize),
    /// A backslash that represents itself.
    Literal,
    /// The same in front of the quote that ends the text, as in `"C:\"`.
    LiteralAtEnd,
}

impl Repairer<'_> {
    /// Writes the text in quotes that is next.
    pub(super) fn string(&mut self, quote: u8, role: StringRole) {
        self.cursor.skip(1);
        self.out.push('"');
        if quote != b'"' {
            self.repairs.insert(Repair::Quotes);
        } else if role != StringRole::Key {
            self.nested();
        }
        loop {
            let plain = self
                .cursor
                .take_until(|byte| byte == quote || byte < 0x20 || matches!(byte, b'\\' | b'"'));
            self.out.push_str(plain);
            match self.cursor.peek() {
                None => {
                    // A word that is cut is another word: `"ok` may have been `"ok, but slow"`.
                    self.repairs.insert(Repair::CutJson);
                    self.out.push('…');
                    break;
                }
                Some(b'\\') => self.escape(quote, role),
                Some(byte) if byte == quote => {
                    self.cursor.skip(1);
                    if self.ends(self.cursor.rest(), role) {
                        break;
                    }
                    self.repairs.insert(Repair::Quotes);
                    self.out.push_str(if quote == b'"' { "\\\"" } else { "'" });
                }
                Some(b'"') => {
                    self.cursor.skip(1);
                    self.out.push_str("\\\"");
                }
                Some(control) => {
                    self.cursor.skip(1);
                    self.repairs.insert(Repair::Controls);
                    self.out.push_str(&format!("\\u{control:04x}"));
                }
            }
        }
        self.out.push('"');
    }

    /// JSON in quotes whose own quotes have no backslash: `"{"disk":"sda","used":94}"`. It is a text as a whole.
    fn nested(&mut self) {
        let rest = self.cursor.rest();
        let inner = rest
            .strip_prefix("[{")
            .or_else(|| rest.strip_prefix('{'))
            .unwrap_or_default();
        let key = inner.strip_prefix('"').unwrap_or_default();
        if !key.starts_with(|c: char| c.is_alphanumeric() || c == '_') || !begins_with_key(inner) {
            return;
        }
        let mut depth = 0_usize;
        let mut is_text = false;
        let end = rest.bytes().take(self.nested_bytes).position(|byte| {
            match byte {
                b'"' => is_text = !is_text,
                b'{' | b'[' if !is_text => depth += 1,
                b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        let length = end.map_or(0, |end| end + 1);
        let is_whole = rest.as_bytes().get(length) == Some(&b'"')
            && self.ends(
                rest.get(length + 1..).unwrap_or_default(),
                StringRole::Value,
            );
        self.nested_bytes -= end.map_or(self.nested_bytes, |end| end.min(self.nested_bytes));
        if let Some(text) = rest.get(..length)
            && is_whole
            && length > 0
        {
            let json = serde_json::Value::from(text).to_string();
            self.out
                .push_str(json.get(1..json.len() - 1).unwrap_or_default());
            self.cursor.skip(length);
            self.repairs.insert(Repair::Quotes);
        }
    }

    fn escape(&mut self, quote: u8, role: StringRole) {
        let behind = self.cursor.rest().get(1..).unwrap_or_default();
        match self.escaped(behind, quote, role) {
            Escape::Valid(length) => {
                self.out.push('\\');
                self.out.push_str(behind.get(..length).unwrap_or_default());
                self.cursor.skip(1 + length);
            }
            Escape::Means(c, length) => {
                self.repairs.insert(Repair::Escapes);
                let json = serde_json::Value::from(c.to_string()).to_string();
                self.out.push_str(
                    json.trim_start_matches('"')
                        .strip_suffix('"')
                        .unwrap_or_default(),
                );
                self.cursor.skip(1 + length);
            }
            Escape::Half(length) => {
                self.repairs.insert(Repair::Surrogates);
                self.out.push_str(REPLACEMENT);
                self.cursor.skip(1 + length);
            }
            Escape::Literal | Escape::LiteralAtEnd => {
                self.repairs.insert(Repair::Escapes);
                self.out.push_str("\\\\");
                self.cursor.skip(1);
            }
        }
    }

    fn escaped(&self, behind: &str, quote: u8, role: StringRole) -> Escape {
        let rest = behind.get(1..).unwrap_or_default();
        match behind.bytes().next() {
            Some(b'"') if quote == b'"' && role != StringRole::Key && self.is_end_of_path(rest) => {
                Escape::LiteralAtEnd
            }
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::Valid(1),
            Some(b'\'') => Escape::Means('\'', 1),
            Some(b'u') => unicode(rest),
            Some(_) | None => Escape::Literal,
        }
    }

    /// Whether a quote after a backslash ends its text nevertheless: a key follows, or the end of the body. In valid
    /// JSON neither is possible.
    fn is_end_of_path(&self, behind: &str) -> bool {
        let next = behind.trim_start_matches(is_gap);
        match next.as_bytes().first() {
            Some(b',') => {
                let next = next.get(1..).unwrap_or_default().trim_start_matches(is_gap);
                let key = next.strip_prefix('"').unwrap_or_default();
                key.starts_with(|c: char| c.is_alphanumeric() || c == '_') && begins_with_key(next)
            }
            Some(b'}') => next
                .trim_start_matches(|c: char| matches!(c, '}' | ']') || is_gap(c))
                .is_empty(),
            Some(_) | None => false,
        }
    }

    /// Whether the quote in front of this text ends the text of this role, by what follows.
    fn ends(&self, behind: &str, role: StringRole) -> bool {
        let next = behind.trim_start_matches(is_gap);
        let Some(byte) = next.bytes().next() else {
            return true;
        };
        let after = || next.get(1..).unwrap_or_default().trim_start_matches(is_gap);
        match (byte, role) {
            (b':' | b'=' | b',' | b'}', StringRole::Key) => true,
            (b',', StringRole::Value) => {
                let after = after();
                after.is_empty()
                    || after.starts_with([',', '}', ']', '/'])
                    || begins_with_key(after)
            }
            (b',', StringRole::Item) => {
                let after = after();
                after.is_empty()
                    || after
                        .starts_with(|c: char| c.is_ascii_digit() || "\"'{[]},-/tfnNIu".contains(c))
            }
            (b'}', StringRole::Value) => is_outside(after()),
            (b']', StringRole::Item) => is_outside(after()),
            (b']', StringRole::Value) => self.is_in(Kind::List) && is_outside(after()),
            (b'}', StringRole::Item) => self.is_in(Kind::Object) && is_outside(after()),
            (b'"' | b'\'', StringRole::Value) => begins_with_key(next),
            (b'"' | b'\'', StringRole::Item) => behind.len() > next.len(),
            (b'/', _) => next.starts_with("//") || next.starts_with("/*"),
            (_, StringRole::Value) => has_line_break(behind, next) && begins_with_key(next),
            (_, StringRole::Key | StringRole::Item) => false,
        }
    }

    fn is_in(&self, kind: Kind) -> bool {
        self.frames.iter().any(|frame| frame.kind == kind)
    }
}

/// Whether a text can follow a closing bracket.
fn is_outside(text: &str) -> bool {
    text.is_empty() || text.starts_with(['}', ']', ',', '{', ';', '/', ')'])
}

/// Whether a line break is in the gap in front of `next`, which is the end of `behind`.
fn has_line_break(behind: &str, next: &str) -> bool {
    behind
        .get(..behind.len() - next.len())
        .unwrap_or_default()
        .contains('\n')
}

/// Decodes the digits after `\u`.
fn unicode(digits: &str) -> Escape {
    if let Some((code, _)) = digits
        .strip_prefix('{')
        .and_then(|digits| digits.get(..8.min(digits.len()))?.split_once('}'))
        && let Some(c) = u32::from_str_radix(code, 16).ok().and_then(char::from_u32)
    {
        return Escape::Means(c, 1 + code.len() + 2);
    }
    let Some(unit) = unit(digits) else {
        return Escape::Literal;
    };
    match unit {
        0xd800..=0xdbff => {
            let low = digits
                .get(4..)
                .and_then(|rest| self::unit(rest.strip_prefix("\\u")?));
            if low.is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) {
                Escape::Valid(11)
            } else {
                Escape::Half(5)
            }
        }
        0xdc00..=0xdfff => Escape::Half(5),
        _ => Escape::Valid(5),
    }
}

fn unit(digits: &str) -> Option<u16> {
    let digits = digits
        .get(..4)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}
