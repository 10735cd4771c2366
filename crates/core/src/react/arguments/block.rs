//! Parses lines of `key: value` and `key=value`, nested by indentation, with the lists and block scalars of YAML.

use serde_json::{Map, Value};

use super::{flow, pairs, scalar};
use crate::code::offset;

/// Deeper nesting is read as text, because the parser is recursive.
const MAX_DEPTH: usize = 32;

/// The value of some lines, and the lines that were not understood.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) value: Option<Value>,
    pub(super) left_out: Vec<&'a str>,
}

/// Parses lines. The value is a mapping or a list; `None` if no line is a pair or an item, or if most lines are
/// neither.
pub(super) fn parse(text: &str) -> Block<'_> {
    let lines = lines(text);
    let mut reader = BlockParser {
        text,
        lines: &lines,
        left_out: Vec::new(),
        braces: true,
    };
    let value = reader.block(0, 0);
    // A text of which most lines fit no block is prose.
    let is_prose = reader.left_out.len() * 2 > lines.len();
    let value = if is_prose { None } else { value };
    Block {
        value,
        left_out: reader.left_out,
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
    /// Number of empty lines before it.
    empty: usize,
}

impl<'a> Line<'a> {
    /// The text of a list item.
    fn item(self) -> Option<&'a str> {
        if self.text == "-" {
            Some("")
        } else {
            self.text.strip_prefix("- ").map(str::trim_start)
        }
    }
}

/// The lines that are not blank.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut empty = 0;
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        match bare.trim_end() {
            "" => empty += 1,
            "---" | "..." if indent == 0 => {}
            text => {
                lines.push(Line {
                    indent,
                    text,
                    empty,
                });
                empty = 0;
            }
        }
    }
    lines
}

struct BlockParser<'a, 'l> {
    /// The whole text.
    text: &'a str,
    lines: &'l [Line<'a>],
    left_out: Vec<&'a str>,
    /// Whether braces may continue in the lines below; `false` after the first ones without an end.
    braces: bool,
}

impl<'a> BlockParser<'a, '_> {
    fn next_if(&mut self, wanted: impl Fn(&Line<'a>) -> bool) -> Option<Line<'a>> {
        let (first, rest) = self.lines.split_first()?;
        wanted(first).then(|| {
            self.lines = rest;
            *first
        })
    }

    fn peek(&self) -> Option<Line<'a>> {
        self.lines.first().copied()
    }

    /// The lines that are indented by `indent` or more.
    fn block(&mut self, indent: usize, depth: usize) -> Option<Value> {
        self.skip_comments(indent);
        let is_list = self.peek()?.item().is_some();
        if is_list {
            self.list(indent, depth)
        } else {
            self.map(indent, depth)
        }
    }

    fn skip_comments(&mut self, indent: usize) {
        while self
            .next_if(|line| line.indent >= indent && line.text.starts_with('#'))
            .is_some()
        {}
    }

    fn list(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(line) =
            self.next_if(|line| line.indent >= indent && (line.item().is_some() || indent == 0))
        {
            match line.item() {
                Some(item) => items.push(self.item(line, item, depth)),
                None => self.left_out.push(line.text),
            }
            self.skip_comments(indent);
        }
        Some(Value::Array(items))
    }

    /// A list item. An item that is a pair begins a mapping, which the deeper lines continue.
    fn item(&mut self, line: Line<'a>, text: &'a str, depth: usize) -> Value {
        let has_more = self.peek().is_some_and(|next| next.indent > line.indent);
        let inner = Line {
            indent: line.indent + (line.text.len() - text.len()),
            text,
            empty: 0,
        };
        match pairs::parse(text) {
            _ if depth >= MAX_DEPTH => scalar::value(text),
            Some(pairs) if pairs::is_mapping(text) => {
                let mut map = Map::new();
                self.put(&mut map, pairs, inner.indent, depth);
                if has_more && let Some(Value::Object(more)) = self.map(line.indent + 1, depth + 1)
                {
                    map.extend(more);
                }
                Value::Object(map)
            }
            Some(_) | None if text.is_empty() && has_more => self
                .block(line.indent + 1, depth + 1)
                .unwrap_or(Value::Null),
            Some(_) | None if inner.item().is_some() => self.list_inside(inner, depth + 1),
            Some(_) | None => self.inline(text, line.indent),
        }
    }

    /// `- - a`: a list that begins within an item.
    fn list_inside(&mut self, first: Line<'a>, depth: usize) -> Value {
        let mut items = vec![self.item(first, first.item().unwrap_or_default(), depth)];
        while let Some(line) =
            self.next_if(|line| line.indent >= first.indent && line.item().is_some())
        {
            items.push(self.item(line, line.item().unwrap_or_default(), depth));
        }
        Value::Array(items)
    }

    fn map(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut map = Map::new();
        while let Some(line) = self.next_if(|line| line.indent >= indent) {
            match pairs::parse(line.text) {
                Some(pairs) => self.put(&mut map, pairs, line.indent, depth),
                None if line.text.starts_with('#') => {}
                None => self.left_out.push(line.text),
            }
        }
        (!map.is_empty()).then_some(Value::Object(map))
    }

    /// Inserts the pairs of one line; the value of the last one may be in the lines below.
    fn put(
        &mut self,
        map: &mut Map<String, Value>,
        pairs: Vec<(&'a str, &'a str)>,
        indent: usize,
        depth: usize,
    ) {
        for (key, text) in pairs {
            let value = match text {
                "" => self.below(indent, depth),
                "|" | "|-" | "|+" => Value::String(self.text_below(indent, "\n")),
                ">" | ">-" | ">+" => Value::String(self.text_below(indent, " ")),
                text if text.starts_with('#')
                    && self.peek().is_some_and(|line| line.indent > indent) =>
                {
                    self.below(indent, depth)
                }
                text => self.inline(text, indent),
            };
            map.insert(key.to_owned(), value);
        }
    }

    /// The value below `key:`: deeper lines, or list items at the same depth.
    fn below(&mut self, indent: usize, depth: usize) -> Value {
        match self.peek() {
            Some(line) if depth < MAX_DEPTH && line.indent > indent => {
                if let Some(value) = self.braces(line.text) {
                    return value;
                }
                let lines = self.lines;
                let left_out = self.left_out.len();

                match self.block(line.indent, depth + 1) {
                    Some(value) => value,
                    // No pairs: it is text.
                    None => {
                        self.lines = lines;
                        self.left_out.truncate(left_out);
                        Value::String(self.text_below(indent, " "))
                    }
                }
            }
            Some(line) if depth < MAX_DEPTH && line.indent == indent && line.item().is_some() => {
                let mut items = Vec::new();
                while let Some(line) =
                    self.next_if(|line| line.indent == indent && line.item().is_some())
                {
                    items.push(self.item(line, line.item().unwrap_or_default(), depth + 1));
                }
                Value::Array(items)
            }
            Some(line) if line.indent > indent => Value::String(self.text_below(indent, " ")),
            // As in a line of `key=value`; deeper down, as in YAML.
            Some(_) | None if depth == 0 => Value::String(String::new()),
            Some(_) | None => Value::Null,
        }
    }

    fn text_below(&mut self, indent: usize, between: &str) -> String {
        let common = self.peek().map_or(0, |line| line.indent);
        let mut text = String::new();
        while let Some(line) = self.next_if(|line| line.indent > indent) {
            let is_literal = between == "\n";
            if !text.is_empty() {
                text.push_str(between);
                text.extend(std::iter::repeat_n(
                    '\n',
                    if is_literal { line.empty } else { 0 },
                ));
            }
            let deeper = if is_literal {
                line.indent.saturating_sub(common)
            } else {
                0
            };
            text.extend(std::iter::repeat_n(' ', deeper));
            text.push_str(line.text);
        }
        text
    }

    /// A value that begins within a line.
    fn inline(&mut self, text: &'a str, indent: usize) -> Value {
        if let Some(value) = self.braces(text) {
            return value;
        }
        let whole = self.continued(text, indent);
        if whole.len() > text.len() {
            return scalar::value(&whole);
        }
        let text = without_comment(text);
        // A trailing comma, from JSON without its braces.
        let bare = text
            .strip_suffix(',')
            .map(str::trim_end)
            .filter(|bare| is_single(bare));
        scalar::value(bare.unwrap_or(text))
    }

    /// Braces or brackets; their end may be in a line below.
    fn braces(&mut self, text: &'a str) -> Option<Value> {
        if !text.starts_with(['{', '[']) {
            return None;
        }
        if let Some(value) = flow::value(text) {
            self.lines = self
                .lines
                .get(usize::from(self.is_next(text))..)
                .unwrap_or_default();
            return Some(value);
        }
        let found = if self.braces {
            self.braces_below(text)
        } else {
            None
        };
        self.braces = found.is_some();
        found
    }

    fn braces_below(&mut self, text: &'a str) -> Option<Value> {
        let (value, behind) = flow::prefix(self.text.get(offset(self.text, text)..)?)?;
        let line = behind.lines().next().unwrap_or_default().trim();
        if !line.trim_start_matches(',').is_empty() {
            return None;
        }
        let end = self.text.len() - behind.len();
        while self
            .next_if(|line| offset(self.text, line.text) < end)
            .is_some()
        {}
        Some(value)
    }

    fn is_next(&self, text: &str) -> bool {
        self.peek()
            .is_some_and(|line| std::ptr::eq(line.text, text))
    }

    /// A value with the deeper lines that continue it: those that are no pairs.
    fn continued(&mut self, text: &'a str, indent: usize) -> String {
        let mut whole = text.to_owned();
        while let Some(line) = self.next_if(|line| {
            line.indent > indent && !line.text.starts_with('#') && pairs::parse(line.text).is_none()
        }) {
            whole.push(' ');
            whole.push_str(line.text);
        }
        whole
    }
}

/// Whether a text is a single word, or in quotes.
fn is_single(text: &str) -> bool {
    let is_word =
        !text.starts_with(['"', '\'']) && !text.contains(|c: char| c.is_whitespace() || c == ',');
    is_word || scalar::quoted(text).is_some()
}

/// A single value without its YAML comment. In a text of several words, `#` is a part of the text.
fn without_comment(text: &str) -> &str {
    let value = text.split_once(" #").map(|(value, _)| value.trim_end());
    value.filter(|value| is_single(value)).unwrap_or(text)
}
