//! An array of objects with the same keys: a row for each object.

use std::collections::BTreeSet;

use super::cells::{ADDED, Table, added_time, cell, column_name, range, time};
use crate::readable::presentation::json::Node;

const MIN_ROWS: usize = 3;
const MAX_COLUMNS: usize = 64;
/// A longer container in a cell is no cell: the search for tables continues within it.
const MAX_CELL_BYTES: usize = 300;

/// A column: a key of the objects, or a key of the objects of that key.
struct Column<'a> {
    key: &'a str,
    inner: Option<&'a str>,
    name: String,
}

impl<'a> Column<'a> {
    fn value<'n>(&self, row: &'n Node<'a>) -> Option<&'n Node<'a>> {
        let value = row.get(self.key)?;
        match self.inner {
            Some(inner) => value.get(inner),
            None => Some(value),
        }
    }
}

pub(super) fn of_objects(items: &[Node<'_>]) -> Option<Table> {
    if items.len() < MIN_ROWS {
        return None;
    }
    let columns = columns(items)?;
    let adds_time: Vec<bool> = columns
        .iter()
        .map(|column| {
            items.iter().all(|row| {
                let text = column.value(row).and_then(Node::scalar);
                text.is_some_and(|text| added_time(&column.name, text).is_some())
            })
        })
        .collect();
    let mut header = Vec::new();
    for (column, adds) in columns.iter().zip(&adds_time) {
        header.push(column.name.clone());
        if *adds {
            header.push(ADDED.to_owned());
        }
    }
    let mut lines = vec![header.join("\t")];
    for row in items {
        let mut cells = Vec::with_capacity(header.len());
        for (column, adds) in columns.iter().zip(&adds_time) {
            let value = column.value(row);
            let text = value.map(cell).unwrap_or_default();
            let is_long =
                value.is_some_and(|value| value.scalar().is_none()) && text.len() > MAX_CELL_BYTES;
            if is_long {
                return None;
            }
            let at = value
                .and_then(Node::scalar)
                .and_then(|text| added_time(&column.name, text));
            cells.push(text);
            if *adds {
                cells.push(at.map(utc).unwrap_or_default());
            }
        }
        lines.push(cells.join("\t"));
    }
    let first = columns.first()?;
    let times: Vec<_> = items
        .iter()
        .map(|row| time(&first.name, first.value(row)?.scalar()?))
        .collect();
    let added = if adds_time.contains(&true) {
        "; utc is added"
    } else {
        ""
    };
    Some(Table {
        text: lines.join("\n"),
        about: format!("{} rows, tab-separated{added}", items.len()),
        range: range(&times),
    })
}

pub(super) fn utc(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The columns in the order in which their keys appear; `None` when the objects are no rows.
fn columns<'a>(items: &[Node<'a>]) -> Option<Vec<Column<'a>>> {
    let mut keys: Vec<&'a str> = Vec::new();
    let mut known: BTreeSet<&'a str> = BTreeSet::new();
    for item in items {
        let mut own: BTreeSet<&'a str> = BTreeSet::new();
        for member in item.members()? {
            if !own.insert(member.key) {
                return None;
            }
            if known.insert(member.key) {
                keys.push(member.key);
            }
        }
        if known.len() > MAX_COLUMNS {
            return None;
        }
    }
    let names_are_plain = keys.iter().all(|key| column_name(key).is_some());
    if keys.is_empty() || !names_are_plain {
        return None;
    }
    let has_dots = keys.iter().any(|key| key.contains('.'));
    let mut columns = Vec::new();
    for key in keys {
        let inner = if has_dots {
            None
        } else {
            inner_keys(items, key)
        };
        let name = column_name(key)?;
        match inner {
            Some(inner) => columns.extend(inner.into_iter().map(|inner| Column {
                key,
                inner: Some(inner),
                name: format!("{name}.{}", inner.trim_matches('"')),
            })),
            None => columns.push(Column {
                key,
                inner: None,
                name: name.to_owned(),
            }),
        }
    }
    (columns.len() <= MAX_COLUMNS).then_some(columns)
}

/// The keys of the objects that all rows have for this key; `None` unless all are small objects of scalars.
fn inner_keys<'a>(items: &[Node<'a>], key: &str) -> Option<Vec<&'a str>> {
    let mut keys: Vec<&'a str> = Vec::new();
    for item in items {
        let members = item.get(key)?.members()?;
        let mut own: BTreeSet<&'a str> = BTreeSet::new();
        for member in members {
            let is_plain = column_name(member.key).is_some() && !member.key.contains('.');
            if !is_plain || member.value.scalar().is_none() || !own.insert(member.key) {
                return None;
            }
            if !keys.contains(&member.key) {
                keys.push(member.key);
            }
        }
        if members.is_empty() || keys.len() > MAX_COLUMNS {
            return None;
        }
    }
    Some(keys)
}
