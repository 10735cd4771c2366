//! Lines of `key: value` and `key=value`, nested by indentation, with YAML's lists and blocks of text.

use serde_json::{Map, Value};

use super::{flow, scalar};

/// Deeper nesting is read as text: what calls itself has to end.
const DEEPEST: usize = 32;

/// What was understood of some lines, and those that were not.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) value: Option<Value>,
    pub(super) left_out: Vec<&'a str>,
}

/// Reads lines. The value is a mapping or a list; `None` when no line is a pair or an item.
pub(super) fn read(text: &str) -> Block<'_> {
    let lines: Vec<Line<'_>> = text.lines().filter(|line| !line.trim().is_empty()).map(Line::new).collect();
    let mut reader = Reader { lines: &lines, left_out: Vec::new() };
    let value = reader.block(0, 0);
    Block { value, left_out: reader.left_out }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Self {
        let text = line.trim_start();
        Self { indent: line.len() - text.len(), text: text.trim_end() }
    }

    /// What an item of a list holds.
    fn item(self) -> Option<&'a str> {
        if self.text == "-" { Some("") } else { self.text.strip_prefix("- ").map(str::trim_start) }
    }
}

struct Reader<'a, 'l> {
    lines: &'l [Line<'a>],
    left_out: Vec<&'a str>,
}

impl<'a> Reader<'a, '_> {
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
        let is_list = self.peek()?.item().is_some();
        if is_list { self.list(indent, depth) } else { self.map(indent, depth) }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(line) = self.next_if(|line| line.indent >= indent && (line.item().is_some() || indent == 0)) {
            match line.item() {
                Some(item) => items.push(self.item(line, item, depth)),
                None => self.left_out.push(line.text),
            }
        }
        Some(Value::Array(items))
    }

    /// An item; one that is a pair begins a mapping that the deeper lines go on with.
    fn item(&mut self, line: Line<'a>, text: &'a str, depth: usize) -> Value {
        let has_more = self.peek().is_some_and(|next| next.indent > line.indent);
        let is_pair = text.contains(": ") || text.ends_with(':');
        match pairs(text) {
            _ if depth >= DEEPEST => scalar::value(text),
            Some(pairs) if is_pair => {
                let mut map = Map::new();
                self.put(&mut map, pairs, line.indent + (line.text.len() - text.len()), depth);
                if has_more && let Some(Value::Object(more)) = self.map(line.indent + 1, depth + 1) {
                    map.extend(more);
                }
                Value::Object(map)
            }
            Some(_) | None if text.is_empty() && has_more => {
                self.block(line.indent + 1, depth + 1).unwrap_or(Value::Null)
            }
            Some(_) | None => inline(text),
        }
    }

    fn map(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut map = Map::new();
        while let Some(line) = self.next_if(|line| line.indent >= indent) {
            match pairs(line.text) {
                Some(pairs) => self.put(&mut map, pairs, line.indent, depth),
                None => self.left_out.push(line.text),
            }
        }
        (!map.is_empty()).then_some(Value::Object(map))
    }

    /// Puts the pairs of one line; the last one may have its value in the lines below.
    fn put(&mut self, map: &mut Map<String, Value>, pairs: Vec<(&'a str, &'a str)>, indent: usize, depth: usize) {
        for (key, text) in pairs {
            let value = match text {
                "" => self.below(indent, depth),
                "|" | "|-" | "|+" => Value::String(self.text_below(indent, "\n")),
                ">" | ">-" | ">+" => Value::String(self.text_below(indent, " ")),
                text => inline(&self.continued(text, indent)),
            };
            map.insert(key.to_owned(), value);
        }
    }

    /// What stands below `key:`: deeper lines, or items of a list at the same depth.
    fn below(&mut self, indent: usize, depth: usize) -> Value {
        match self.peek() {
            Some(line) if depth < DEEPEST && line.indent > indent => {
                let (lines, left_out) = (self.lines, self.left_out.len());
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
            Some(line) if depth < DEEPEST && line.indent == indent && line.item().is_some() => {
                let mut items = Vec::new();
                while let Some(line) = self.next_if(|line| line.indent == indent && line.item().is_some()) {
                    items.push(self.item(line, line.item().unwrap_or_default(), depth + 1));
                }
                Value::Array(items)
            }
            Some(line) if line.indent > indent => Value::String(self.text_below(indent, " ")),
            Some(_) | None => Value::Null,
        }
    }

    fn text_below(&mut self, indent: usize, between: &str) -> String {
        let common = self.peek().map_or(0, |line| line.indent);
        let mut text = String::new();
        while let Some(line) = self.next_if(|line| line.indent > indent) {
            if !text.is_empty() {
                text.push_str(between);
            }
            let deeper = if between == "\n" { line.indent.saturating_sub(common) } else { 0 };
            text.extend(std::iter::repeat_n(' ', deeper));
            text.push_str(line.text);
        }
        text
    }

    /// A value with the deeper lines that go on with it: those that are no pairs.
    fn continued(&mut self, text: &'a str, indent: usize) -> String {
        let mut whole = text.to_owned();
        while let Some(line) = self.next_if(|line| line.indent > indent && pairs(line.text).is_none()) {
            whole.push(' ');
            whole.push_str(line.text);
        }
        whole
    }
}

/// A value on one line.
fn inline(text: &str) -> Value {
    flow::value(text).unwrap_or_else(|| scalar::value(text))
}

/// The pairs of a line: `a: 1`, `a=1`, or several of them behind commas. `None` when it does not begin with one.
fn pairs(line: &str) -> Option<Vec<(&str, &str)>> {
    let (key, mut rest) = pair(line, true)?;
    let mut pairs = Vec::new();
    let mut last = key;
    while let Some((value, key, after)) = next_pair(rest) {
        pairs.push((last, value.trim()));
        (last, rest) = (key, after);
    }
    pairs.push((last, rest.trim()));
    Some(pairs)
}

/// The value up to a comma that another pair follows, that pair's key, and what is behind it. A comma in quotes or
/// brackets belongs to the value.
fn next_pair(text: &str) -> Option<(&str, &str, &str)> {
    let mut quote = None;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some(c),
            (None, '\'') if text.get(..at).is_some_and(|before| before.trim().is_empty()) => quote = Some(c),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                let (value, behind) = text.split_at_checked(at)?;
                if let Some((key, rest)) = behind.strip_prefix(',').and_then(|behind| pair(behind.trim_start(), false))
                {
                    return Some((value, key, rest));
                }
            }
            (None, _) => {}
        }
    }
    None
}

/// A key, and what is behind its separator, whichever of `:` and `=` comes first. In the middle of a line the
/// separator has to be a plain one, so that a comma in a query or an address divides nothing.
fn pair(text: &str, at_start: bool) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '"');
    let (key, behind) = text.split_at_checked(text.find(|c| !is_part(c))?)?;
    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    let spaced = behind.trim_start();
    let rest = spaced.strip_prefix([':', '='])?;
    let is_key = key.starts_with(|c: char| c.is_alphabetic() || c == '_') && !key.contains('"');
    let is_separator = if spaced.starts_with(':') {
        let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
        ends || at_start && !rest.starts_with("//")
    } else {
        let touches = spaced.len() == behind.len();
        (at_start || touches) && !rest.starts_with(['=', '~'])
    };
    (is_key && is_separator).then_some((key, rest))
}
