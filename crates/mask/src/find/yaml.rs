//! Reads YAML and similar texts line by line: keys, lists and indentation, with any other lines between them.

use super::document::{Document, Kind};
use super::json::JsonFragment;
use crate::bytes::{
    all, byte, is_blank, is_opaque, is_quote, is_word, line_end, next_line, part, skip,
};
use crate::spans::Span;

/// The longest key, in bytes.
const MAX_KEY: usize = 96;

struct YamlLine {
    /// The columns of the dashes of list items.
    dashes: Vec<usize>,
    column: usize,
    key: Option<Span>,
    value: Span,
}

/// A container that is not closed yet.
#[derive(Clone, Copy)]
struct OpenContainer {
    index: usize,
    column: usize,
    kind: Kind,
}

/// The structure of the lines outside of JSON fragments.
pub(crate) fn parse(text: &str, fragments: &[JsonFragment]) -> Document {
    let mut reader = YamlScanner::default();
    let mut fragments = fragments.iter().peekable();
    let mut at = 0;
    while at < text.len() {
        while fragments.next_if(|fragment| fragment.end <= at).is_some() {}
        if let Some(fragment) = fragments.peek().filter(|fragment| fragment.start < at) {
            at = next_line(text, fragment.end);
            continue;
        }
        let end = line_end(text, at);
        reader.line(text, at, end);
        at = next_line(text, end);
    }
    reader.end();
    reader.doc
}

#[derive(Default)]
struct YamlScanner {
    doc: Document,
    open: Vec<OpenContainer>,
    /// The node that a deeper line belongs to, with its column.
    last: Option<(usize, usize)>,
    /// The open block scalars, with the columns of their keys.
    blocks: Vec<(usize, usize)>,
    /// End of the last line.
    before: usize,
}

impl YamlScanner {
    fn line(&mut self, text: &str, start: usize, end: usize) {
        let content = skip(text, start, is_blank).min(end);
        if content >= end {
            return;
        }
        if self.open.is_empty() && !may_be_key(text, content) {
            return;
        }
        let whole = part(text, content, end);
        if whole.starts_with("---") || whole == "..." {
            self.end();
            return;
        }
        let line = read_line(text, start, content, end);
        self.end_blocks(line.dashes.first().copied().unwrap_or(line.column), content);
        if line.key.is_none() && line.dashes.is_empty() {
            self.words(text, &line);
        } else {
            self.structure(text, &line);
        }
        self.before = end;
    }

    /// Ends the block scalars that a line at this column is not part of; begins the one whose first line it is.
    fn end_blocks(&mut self, column: usize, content: usize) {
        let before = self.before;
        while self.blocks.last().is_some_and(|(_, key)| column <= *key) {
            if let Some(node) = self
                .blocks
                .pop()
                .and_then(|(index, _)| self.doc.nodes.get_mut(index))
            {
                node.value.end = node.value.start.max(before);
            }
        }
        let newest = self
            .blocks
            .last()
            .and_then(|(index, _)| self.doc.nodes.get_mut(*index));
        if let Some(node) = newest.filter(|node| node.value.end == 0) {
            node.value = Span::new(content, content);
        }
    }

    /// A line without a key or dash: continues the value before it, or is a value itself.
    fn words(&mut self, text: &str, line: &YamlLine) {
        let goes_on = self
            .last
            .filter(|(index, column)| line.column > *column || self.is_lone(text, *index, line));
        if let Some(node) = goes_on.and_then(|(index, _)| self.doc.nodes.get_mut(index))
            && matches!(node.kind, Kind::Line | Kind::Lines)
        {
            let start = if node.value.is_empty() {
                line.value.start
            } else {
                node.value.start
            };
            node.value = Span::new(start, line.value.end);
            node.kind = Kind::Lines;
            return;
        }
        self.pop(line.column);
        match self.open.as_slice() {
            [] => {}
            [top] if top.column >= line.column => self.end(),
            _ => self.doc.push(None, Kind::Line, line.value),
        }
    }

    /// Whether a line is a single word directly below its key, at the same column.
    fn is_lone(&self, text: &str, index: usize, line: &YamlLine) -> bool {
        let node = self.doc.nodes.get(index);
        let empty = node.is_some_and(|node| node.kind == Kind::Line && node.value.is_empty());
        empty && is_opaque(line.value.text(text), 6)
    }

    fn structure(&mut self, text: &str, line: &YamlLine) {
        let first = line.dashes.first().copied().unwrap_or(line.column);
        self.pop(first);
        for column in &line.dashes {
            if !self.is_in(Kind::List, *column) {
                self.begin(*column, Kind::List);
            }
            self.last = None;
        }
        if line.dashes.is_empty() && self.is_in(Kind::List, first) {
            self.close();
        }
        if line.key.is_some() && !self.is_in(Kind::Map, line.column) {
            self.begin(line.column, Kind::Map);
        }
        let index = self.doc.nodes.len();
        if line.key.is_some() && is_block(line.value.text(text)) {
            self.doc.push(line.key, Kind::Block, Span::default());
            self.blocks.push((index, line.column));
        } else {
            self.doc.push(line.key, Kind::Line, line.value);
        }
        let column = if line.key.is_some() {
            line.column
        } else {
            line.dashes.last().copied().unwrap_or(0)
        };
        self.last = Some((index, column));
    }

    /// Opens a container below the last key, or at the top.
    fn begin(&mut self, column: usize, kind: Kind) {
        let host = self
            .last
            .filter(|(_, at)| column > *at || kind == Kind::List && column == *at)
            .map(|(index, _)| index);
        let empty = host.and_then(|index| self.doc.nodes.get_mut(index).map(|node| (index, node)));
        let index = match empty {
            Some((index, node)) if node.kind == Kind::Line && node.value.is_empty() => {
                node.kind = kind;
                index
            }
            Some(_) | None => {
                self.doc.push(None, kind, Span::default());
                self.doc.nodes.len() - 1
            }
        };
        self.open.push(OpenContainer {
            index,
            column,
            kind,
        });
    }

    fn is_in(&self, kind: Kind, column: usize) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.kind == kind && open.column == column)
    }

    /// Closes the containers that are deeper than the column.
    fn pop(&mut self, column: usize) {
        while self.open.last().is_some_and(|open| open.column > column) {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            self.doc.close(open.index);
        }
    }

    /// Ends a document.
    fn end(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
        self.end_blocks(0, 0);
        self.last = None;
    }
}

fn may_be_key(text: &str, at: usize) -> bool {
    let b = byte(text, at);
    is_word(b) || is_quote(b) || matches!(b, b'$' | b'/')
}

fn read_line(text: &str, start: usize, content: usize, end: usize) -> YamlLine {
    let mut at = content;
    let mut dashes = Vec::new();
    while at < end && byte(text, at) == b'-' && (at + 1 == end || is_blank(byte(text, at + 1))) {
        dashes.push(at - start);
        at = skip(text, at + 1, is_blank).min(end);
    }
    let column = at - start;
    let trimmed = at + part(text, at, end).trim_end().len();
    let key = key(text, at, end);
    let value = key.map_or(at, |(_, after)| skip(text, after, is_blank).min(trimmed));
    YamlLine {
        dashes,
        column,
        key: key.map(|(key, _)| key),
        value: Span::new(value, trimmed),
    }
}

/// The key that begins here, and the earliest start of its value.
fn key(text: &str, at: usize, end: usize) -> Option<(Span, usize)> {
    let quote = byte(text, at);
    let (key, after) = if matches!(quote, b'"' | b'\'') {
        let line = part(text, at + 1, end);
        let length = line.bytes().take(MAX_KEY).position(|b| b == quote)?;
        (Span::new(at + 1, at + 1 + length), at + 2 + length)
    } else {
        let length = text
            .as_bytes()
            .get(at..end)?
            .iter()
            .take(MAX_KEY)
            .position(|b| !is_key_byte(*b))?;
        let name = part(text, at, at + length).trim_end();
        if name.is_empty() || name.matches(' ').count() > 3 {
            return None;
        }
        (Span::new(at, at + name.len()), at + name.len())
    };
    let colon = skip(text, after, is_blank);
    let separated =
        byte(text, colon) == b':' && (colon + 1 >= end || is_blank(byte(text, colon + 1)));
    separated.then_some((key, colon + 1))
}

fn is_key_byte(b: u8) -> bool {
    is_word(b) || matches!(b, b'$' | b'/' | b'@' | b' ' | b'[' | b']')
}

/// Whether a value begins a block scalar: `|`, `>-`, `|2+`, also with a comment.
fn is_block(value: &str) -> bool {
    let indicator = value.split(" #").next().unwrap_or_default().trim_end();
    let indicators = indicator.strip_prefix(['|', '>']);
    indicators.is_some_and(|indicators| {
        indicators.len() <= 2 && all(indicators, |b| matches!(b, b'+' | b'-' | b'1'..=b'9'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::document::Node;

    fn shown(text: &str) -> Vec<String> {
        let doc = parse(text, &[]);
        doc.nodes
            .iter()
            .map(|node: &Node| {
                let of = |span: Span| span.text(text);
                format!(
                    "{:?} {} {:?} +{}",
                    node.kind,
                    node.key.map_or("-", of),
                    of(node.value),
                    node.next
                )
            })
            .collect()
    }

    #[test]
    fn lines_become_maps_lists_and_blocks() {
        assert_eq!(
            shown(
                "a: 1\nb:\n  c: x\n   y\nd:\n- e: 2\n  f: 3\n- g\nh: |\n  i: j\n  k\nl: m\nwords"
            ),
            vec![
                "Map - \"\" +14",
                "Line a \"1\" +2",
                "Map b \"\" +4",
                "Lines c \"x\\n   y\" +4",
                "List d \"\" +9",
                "Map - \"\" +8",
                "Line e \"2\" +7",
                "Line f \"3\" +8",
                "Line - \"g\" +9",
                "Block h \"i: j\\n  k\" +10",
                "Map - \"\" +13",
                "Line i \"j\" +12",
                "Line - \"k\" +13",
                "Line l \"m\" +14",
            ]
        );
    }
}
