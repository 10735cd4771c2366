//! Lays out a table in a number of columns.
//!
//! Columns shrink, the widest first, and cells wrap. A table that cannot shrink so far becomes rows of `name: value`.

use pulldown_cmark::Alignment;

use super::glyphs::{self, Glyph, Look};
use crate::cli::render::style::Charset;
use crate::cli::render::text;

/// A column shrinks to its longest word, but a word of more columns is broken.
const MAX_WORD_COLUMNS: usize = 16;
/// Columns of a name before its value.
const MAX_NAME_COLUMNS: usize = 32;

/// The cells of a table as they are read.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The first row is the head.
    pub(super) rows: Vec<Vec<Vec<Glyph>>>,
}

impl Table {
    /// The lines of the table, each at most `room` wide.
    pub(super) fn lines(&self, room: usize, charset: Charset) -> Vec<Vec<Glyph>> {
        match self.widths(room) {
            Some(widths) => self.grid(&widths, charset),
            None => self.pairs(room, charset),
        }
    }

    fn columns(&self) -> usize {
        self.rows.first().map(Vec::len).unwrap_or_default()
    }

    /// The width of each column; `None` if the table does not fit.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.columns();
        let room = room
            .checked_sub(3 * count.checked_sub(1)?)
            .filter(|room| *room >= count)?;
        let mut widths = vec![1; count];
        let mut floors = vec![1; count];

        for row in &self.rows {
            for ((width, floor), cell) in widths.iter_mut().zip(&mut floors).zip(row) {
                *width = glyphs::natural_width(cell).min(room).max(*width);
                *floor = glyphs::widest_word(cell).min(MAX_WORD_COLUMNS).max(*floor);
            }
        }
        if floors.iter().sum::<usize>() > room {
            return None;
        }
        // A column has at most `room` columns of text, so this ends after `room` steps for each.
        while widths.iter().sum::<usize>() > room {
            let shrinkable = widths
                .iter_mut()
                .zip(&floors)
                .filter(|(width, floor)| **width > **floor);
            let (widest, _) = shrinkable.max_by_key(|(width, _)| **width)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], charset: Charset) -> Vec<Vec<Glyph>> {
        let rows: Vec<Vec<Vec<Glyph>>> = self
            .rows
            .iter()
            .map(|row| self.row(row, widths, charset))
            .collect();
        // If rows have several lines, a rule shows where each ends.
        let has_rules = rows.iter().skip(1).any(|row| row.len() > 1);
        let mut lines = Vec::new();
        for (index, row) in rows.into_iter().enumerate() {
            if index == 1 || (index > 1 && has_rules) {
                lines.push(rule(widths, charset));
            }
            lines.extend(row);
        }
        lines
    }

    /// The lines of one row.
    fn row(&self, row: &[Vec<Glyph>], widths: &[usize], charset: Charset) -> Vec<Vec<Glyph>> {
        let cells: Vec<Vec<Vec<Glyph>>> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| glyphs::wrap(cell, *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let gap = glyphs::glyphs(charset.pick(" │ ", " | "), &Look::dim(), charset);
        let mut lines = Vec::with_capacity(height);
        for index in 0..height {
            let mut line = Vec::new();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    line.extend_from_slice(&gap);
                }
                let cell = cells.get(column).and_then(|cell| cell.get(index));
                let cell = cell.map(Vec::as_slice).unwrap_or_default();
                let fill = width.saturating_sub(glyphs::width(cell));
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => fill,
                    Some(Alignment::Center) => fill / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                line.extend(vec![(' ', Look::default()); before]);
                line.extend_from_slice(cell);
                line.extend(vec![(' ', Look::default()); fill - before]);
            }
            lines.push(line);
        }
        lines
    }

    /// Each cell as `name: value`, with an empty line between rows.
    fn pairs(&self, room: usize, charset: Charset) -> Vec<Vec<Glyph>> {
        let (head, rows) = self
            .rows
            .split_first()
            .map(|(head, rows)| (head.as_slice(), rows))
            .unwrap_or_default();
        // A name is repeated for each row, so a long one is cut.
        let columns = (room / 2).min(MAX_NAME_COLUMNS);
        let names: Vec<String> = head
            .iter()
            .map(|cell| text::cut(&plain(cell), columns, charset))
            .collect();
        let mut lines = Vec::new();
        if rows.is_empty() {
            lines.extend(head.iter().flat_map(|cell| glyphs::wrap(cell, room)));
        }
        for row in rows {
            if !lines.is_empty() {
                lines.push(Vec::new());
            }
            for (cell, name) in row.iter().zip(&names).filter(|(cell, _)| !cell.is_empty()) {
                let look = Look {
                    is_bold: true,
                    ..Look::default()
                };
                let mut pair = glyphs::glyphs(name, &look, charset);
                if !pair.is_empty() {
                    pair.extend(glyphs::glyphs(": ", &Look::default(), charset));
                }
                pair.extend_from_slice(cell);
                lines.extend(glyphs::wrap(&pair, room));
            }
        }
        lines
    }
}

fn plain(cell: &[Glyph]) -> String {
    cell.iter()
        .map(|(c, _)| if *c == '\n' { ' ' } else { *c })
        .collect()
}

fn rule(widths: &[usize], charset: Charset) -> Vec<Glyph> {
    let parts: Vec<String> = widths
        .iter()
        .map(|width| charset.pick("─", "-").repeat(*width))
        .collect();
    glyphs::glyphs(
        &parts.join(charset.pick("─┼─", "-+-")),
        &Look::dim(),
        charset,
    )
}
