//! JSON as it is written: values keep their texts, so no number is rounded.

use serde::de::IgnoredAny;

/// A value of a JSON text. Scalars and keys are as written, strings with their quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node<'a> {
    Scalar(&'a str),
    Array(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) key: &'a str,
    pub(super) value: Node<'a>,
}

/// A text with more values stays as it is.
const MAX_NODES: usize = 200_000;
const MAX_DEPTH: usize = 48;

/// The value of a whole text; `None` when it is no JSON, or is too large or too deep.
pub(super) fn parse(text: &str) -> Option<Node<'_>> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || !text.ends_with(['}', ']']) {
        return None;
    }
    let mut reader = Reader {
        text,
        at: 0,
        nodes: 0,
    };
    let node = reader.node(0)?;
    reader.blank();
    let is_whole = reader.at == text.len();
    (is_whole && serde_json::from_str::<IgnoredAny>(text).is_ok()).then_some(node)
}

/// Finds the values of a text; whether the text is valid is checked elsewhere.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.blank();
        let is_here = self.peek() == Some(byte);
        if is_here {
            self.at += 1;
        }
        is_here
    }

    fn node(&mut self, depth: usize) -> Option<Node<'a>> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return None;
        }
        self.blank();
        match self.peek()? {
            b'[' => self.array(depth),
            b'{' => self.object(depth),
            b'"' => self.string().map(Node::Scalar),
            _ => self.word().map(Node::Scalar),
        }
    }

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.eat(b']') {
            return Some(Node::Array(items));
        }
        loop {
            items.push(self.node(depth + 1)?);
            if self.eat(b']') {
                return Some(Node::Array(items));
            }
            self.eat(b',').then_some(())?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut members = Vec::new();
        if self.eat(b'}') {
            return Some(Node::Object(members));
        }
        loop {
            self.blank();
            let key = self.string()?;
            self.eat(b':').then_some(())?;
            let value = self.node(depth + 1)?;
            members.push(Member { key, value });
            if self.eat(b'}') {
                return Some(Node::Object(members));
            }
            self.eat(b',').then_some(())?;
        }
    }

    fn string(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return self.text.get(start..self.at);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// A number, or `true`, `false`, `null`.
    fn word(&mut self) -> Option<&'a str> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.at += 1;
        }
        self.text
            .get(start..self.at)
            .filter(|word| !word.is_empty())
    }
}

impl<'a> Node<'a> {
    pub(super) fn scalar(&self) -> Option<&'a str> {
        match self {
            Self::Scalar(text) => Some(text),
            Self::Array(_) | Self::Object(_) => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Node<'a>]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Scalar(_) | Self::Object(_) => None,
        }
    }

    pub(super) fn members(&self) -> Option<&[Member<'a>]> {
        match self {
            Self::Object(members) => Some(members),
            Self::Scalar(_) | Self::Array(_) => None,
        }
    }

    /// The value of a key, which is given with its quotation marks.
    pub(super) fn get(&self, key: &str) -> Option<&Node<'a>> {
        let member = self.members()?.iter().find(|member| member.key == key)?;
        Some(&member.value)
    }

    pub(super) fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, member) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(member.key);
                    out.push(':');
                    member.value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// The text within the quotation marks of a string that needs no escapes; `None` for any other value.
pub(super) fn plain_string(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let breaks = ['\\', '\u{85}', '\u{2028}', '\u{2029}'];
    (!inner.contains(breaks)).then_some(inner)
}
