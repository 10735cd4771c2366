//! Pointers of RFC 6901 into a body (`/a/b/0`) or into one element of its list (`@/a`).

use std::fmt;

use serde_json::Value;

/// The base of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Base {
    Body,
    /// The element of `each` that is read.
    Element,
}

/// A parsed pointer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer {
    base: Base,
    tokens: Vec<String>,
}

/// The reason why a text is no pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerFault {
    #[error("a pointer begins with /, as in /alert/id")]
    Start,
    #[error("\"~\" in a pointer is written ~0, and \"/\" in a key is written ~1")]
    Escape,
    #[error("a pointer has at most 32 steps")]
    Long,
}

const MAX_STEPS: usize = 32;

impl Pointer {
    /// Parses `/a/b`, `@/a` or `@`.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(text: &str) -> Result<Self, PointerFault> {
        let (base, path) = match text.strip_prefix('@') {
            Some(path) => (Base::Element, path),
            None if text.is_empty() => return Err(PointerFault::Start),
            None => (Base::Body, text),
        };
        if path.is_empty() {
            return Ok(Self {
                base,
                tokens: Vec::new(),
            });
        }
        let path = path.strip_prefix('/').ok_or(PointerFault::Start)?;
        let tokens = path.split('/').map(token).collect::<Result<Vec<_>, _>>()?;
        if tokens.len() > MAX_STEPS {
            Err(PointerFault::Long)
        } else {
            Ok(Self { base, tokens })
        }
    }

    /// The pointer to the whole body.
    pub fn body() -> Self {
        Self {
            base: Base::Body,
            tokens: Vec::new(),
        }
    }

    pub fn base(&self) -> Base {
        self.base
    }

    /// The last key, which names the value for people; `body` for the whole body.
    pub fn name(&self) -> &str {
        let whole = match self.base {
            Base::Body => "body",
            Base::Element => "element",
        };
        self.tokens.last().map_or(whole, String::as_str)
    }

    /// The value below `start`, which is that of the base.
    pub fn find<'v>(&self, start: &'v Value) -> Option<&'v Value> {
        walk(start, &self.tokens)
    }

    /// The same, to change it.
    pub(crate) fn find_mut<'v>(&self, start: &'v mut Value) -> Option<&'v mut Value> {
        self.tokens
            .iter()
            .try_fold(start, |value, token| match value {
                Value::Object(fields) => fields.get_mut(token),
                Value::Array(items) => items.get_mut(index(token)?),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            })
    }

    /// The pointer from `above` to this one; `None` unless this one leads below `above`.
    pub(super) fn below(&self, above: &Self) -> Option<&[String]> {
        if self.base == above.base {
            self.tokens.strip_prefix(above.tokens.as_slice())
        } else {
            None
        }
    }
}

/// Follows the keys of a pointer.
pub(super) fn walk<'v>(start: &'v Value, tokens: &[String]) -> Option<&'v Value> {
    tokens.iter().try_fold(start, |value, token| match value {
        Value::Object(fields) => fields.get(token),
        Value::Array(items) => items.get(index(token)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// RFC 6901 permits no leading zero and no sign.
fn index(token: &str) -> Option<usize> {
    let plain =
        token == "0" || !token.starts_with('0') && token.chars().all(|c| c.is_ascii_digit());
    if plain { token.parse().ok() } else { None }
}

fn token(escaped: &str) -> Result<String, PointerFault> {
    let mut out = String::with_capacity(escaped.len());
    let mut chars = escaped.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '~' { chars.next() } else { None }) {
            ('~', Some('0')) => out.push('~'),
            ('~', Some('1')) => out.push('/'),
            ('~', _) => return Err(PointerFault::Escape),
            (c, _) => out.push(c),
        }
    }
    Ok(out)
}

/// The key of a field as a token of a pointer.
pub(crate) fn escaped_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.base == Base::Element {
            f.write_str("@")?;
        }
        self.tokens
            .iter()
            .try_for_each(|token| write!(f, "/{}", escaped_key(token)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_follows_rfc_6901() {
        let body = json!({"a/b": {"m~n": [10, 20]}, "": 1, "01": 2});
        for (pointer, expected) in [
            ("/a~1b/m~0n/1", Some(json!(20))),
            ("/a~1b/m~0n/01", None),
            ("/a~1b/m~0n/+1", None),
            ("/a~1b/m~0n/-", None),
            ("/", Some(json!(1))),
            ("/01", Some(json!(2))),
            ("/a~1b/m~0n/1/x", None),
        ] {
            let parsed = Pointer::parse(pointer).unwrap();
            assert_eq!(parsed.find(&body).cloned(), expected, "{pointer}");
            assert_eq!(
                parsed.find_mut(&mut body.clone()).cloned(),
                expected,
                "{pointer}"
            );
            assert_eq!(parsed.to_string(), pointer);
        }
        assert_eq!(Pointer::body().find(&body), Some(&body));
    }

    #[test]
    fn another_text_is_no_pointer() {
        for (text, fault) in [
            ("", PointerFault::Start),
            ("a/b", PointerFault::Start),
            ("@a", PointerFault::Start),
            ("/a~", PointerFault::Escape),
            ("/a~2", PointerFault::Escape),
            (&"/a".repeat(33), PointerFault::Long),
        ] {
            assert_eq!(Pointer::parse(text), Err(fault), "{text}");
        }
        assert_eq!(Pointer::parse("@").unwrap().to_string(), "@");
        assert_eq!(Pointer::parse("@/a").unwrap().base(), Base::Element);
    }
}
