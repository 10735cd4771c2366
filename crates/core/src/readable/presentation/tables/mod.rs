//! JSON as compact text, with tab-separated tables in the place of arrays that repeat their keys or their times.

mod cells;
mod columns;
mod rows;

use self::cells::Table;
use super::facts::Shown;
use super::json::{Node, parse};
use super::layout::{Formed, Layout, Piece};
use super::records::Range;

/// Containers up to this depth have their members in lines of their own, where these are containers, too.
const DEPTH_OF_LINES: usize = 2;

/// A longer text stays as it is: it is cut to a small part in any case.
const MAX_BYTES: usize = 4 << 20;

/// JSON in another form.
pub(super) struct Tables {
    pub(super) formed: Formed,
    /// The times in the tables.
    pub(super) range: Option<Range>,
}

/// The tables of a JSON text, or its compact form; `None` when neither saves a tenth, or the text is no JSON.
pub(super) fn of_json(whole: &str) -> Option<Tables> {
    if whole.len() > MAX_BYTES {
        return None;
    }
    let node = parse(whole)?;
    let mut writer = Writer::default();
    writer.write(&node, 0);
    let Writer { rest, tables } = writer;
    let has_tables = !tables.is_empty();
    let range = tables
        .iter()
        .filter_map(|table| table.range)
        .reduce(|all, range| Range {
            from: all.from.min(range.from),
            to: all.to.max(range.to),
        });
    let mut pieces = Vec::new();
    if node.scalar().is_none() && rest != reference(1) {
        pieces.push(Piece::Lines(rest));
    }
    for (number, table) in (1..).zip(tables) {
        let Table { text, about, .. } = table;
        pieces.push(Piece::Heading(format!("[table {number}: {about}]")));
        pieces.push(Piece::Lines(text));
    }
    let layout = Layout::of_pieces(&pieces);
    let saves = saves_a_tenth(layout.text.len(), whole.len());
    let form = if has_tables {
        Shown::Table
    } else {
        Shown::Compact
    };
    saves.then_some(Tables {
        formed: Formed {
            layout,
            shown: vec![form],
        },
        range,
    })
}

fn saves_a_tenth(length: usize, whole: usize) -> bool {
    length.saturating_mul(10) <= whole.saturating_mul(9)
}

/// Stands in the JSON for a table. It is no JSON, so no result can contain it.
fn reference(number: usize) -> String {
    format!("<table {number}>")
}

#[derive(Default)]
struct Writer {
    rest: String,
    tables: Vec<Table>,
}

impl Writer {
    fn write(&mut self, node: &Node<'_>, depth: usize) {
        if let Some(table) = table(node)
            && saves_a_tenth(table.text.len(), node.compact().len())
        {
            self.tables.push(table);
            self.rest.push_str(&reference(self.tables.len()));
            return;
        }
        let separator = separator(node, depth);
        match node {
            Node::Scalar(text) => self.rest.push_str(text),
            Node::Array(items) => {
                self.rest.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.rest.push_str(separator);
                    }
                    self.write(item, depth + 1);
                }
                self.rest.push(']');
            }
            Node::Object(members) => {
                self.rest.push('{');
                for (index, member) in members.iter().enumerate() {
                    if index > 0 {
                        self.rest.push_str(separator);
                    }
                    self.rest.push_str(member.key);
                    self.rest.push(':');
                    self.write(&member.value, depth + 1);
                }
                self.rest.push('}');
            }
        }
    }
}

fn separator(node: &Node<'_>, depth: usize) -> &'static str {
    let holds_containers = match node {
        Node::Scalar(_) => false,
        Node::Array(items) => items.iter().any(|item| item.scalar().is_none()),
        Node::Object(members) => members.iter().any(|member| member.value.scalar().is_none()),
    };
    if holds_containers && depth < DEPTH_OF_LINES {
        ",\n"
    } else {
        ","
    }
}

fn table(node: &Node<'_>) -> Option<Table> {
    let items = node.items()?;
    columns::of_matrix(items)
        .or_else(|| columns::of_series(items))
        .or_else(|| rows::of_objects(items))
}
