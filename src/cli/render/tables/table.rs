//! Tables and lists of facts that fit the terminal; every cell is cleaned.

use chrono::{DateTime, Utc};

use crate::cli::render::style::{Paint, Style};
use crate::cli::render::text;
use tarsy_engine::ports::RunStatus;

const GAP: &str = "  ";
/// The least width of the column that takes the rest; other columns are left out before it gets narrower.
const MIN_REST_COLUMNS: usize = 16;

/// One cell with cleaned text.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    pub(super) fn new(text: &str, style: &Style) -> Self {
        Self {
            text: text::one_line(text, style.charset),
            paint: Paint::Plain,
        }
    }

    /// A cell whose text is indented by two columns.
    pub(super) fn indented(text: &str, style: &Style) -> Self {
        Self {
            text: format!("  {}", text::one_line(text, style.charset)),
            paint: Paint::Plain,
        }
    }

    pub(super) fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    /// Keeps the end of the text, at most `columns` wide.
    pub(super) fn tail(self, columns: usize, style: &Style) -> Self {
        Self {
            text: text::cut_front(&self.text, columns, style.charset),
            ..self
        }
    }
}

/// A column: its head, its width and its alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// A column that is as wide as its widest cell, aligned to the left.
    Left(&'static str),
    /// A column that is as wide as its widest cell, aligned to the right.
    Right(&'static str),
    /// A column that gets the remaining room and cuts longer text with an ellipsis. A table has at most one.
    Rest(&'static str),
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Left(head) | Self::Right(head) | Self::Rest(head) => head,
        }
    }
}

/// The lines of a table, its head first. Where the terminal is too narrow, columns of `optional` are left out, in their
/// order there.
pub(super) fn table<const N: usize>(
    columns: [Column; N],
    optional: &[&str],
    rows: impl Iterator<Item = [Cell; N]>,
    style: &Style,
) -> Vec<String> {
    let head = columns.map(|column| Cell {
        text: column.head().to_owned(),
        paint: Paint::Dim,
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = text::width(&cell.text).max(*width);
        }
    }
    let mut optional = optional.iter();
    while room(&columns, &widths, style) < wanted(&columns, &widths) {
        let Some(head) = optional.next() else { break };
        for (column, width) in columns.iter().zip(&mut widths) {
            if column.head() == *head {
                *width = 0;
            }
        }
    }
    let room = room(&columns, &widths, style);
    for (column, width) in columns.iter().zip(&mut widths) {
        if matches!(column, Column::Rest(_)) {
            *width = room.max(MIN_REST_COLUMNS / 2).min(*width);
        }
    }
    rows.iter()
        .map(|row| line(row, &columns, &widths, style))
        .collect()
}

/// The width that is left for the column that takes the rest.
fn room(columns: &[Column], widths: &[usize], style: &Style) -> usize {
    let others = columns
        .iter()
        .zip(widths)
        .filter(|(column, width)| !matches!(column, Column::Rest(_)) && **width > 0)
        .map(|(_, width)| width + GAP.len());
    style.width.saturating_sub(others.sum())
}

/// The width that the column that takes the rest should have.
fn wanted(columns: &[Column], widths: &[usize]) -> usize {
    let rest = columns
        .iter()
        .zip(widths)
        .find(|(column, _)| matches!(column, Column::Rest(_)));
    rest.map_or(0, |(_, width)| (*width).min(MIN_REST_COLUMNS))
}

fn line(row: &[Cell], columns: &[Column], widths: &[usize], style: &Style) -> String {
    let mut out = String::new();
    let mut room = style.width;
    let last = row
        .iter()
        .zip(widths)
        .rposition(|(cell, width)| *width > 0 && !cell.text.is_empty())
        .unwrap_or_default();
    let cells = row
        .iter()
        .zip(columns)
        .zip(widths)
        .enumerate()
        .take(last + 1)
        .filter(|(_, (_, width))| **width > 0);
    for (index, ((cell, column), width)) in cells {
        let gap = if index == 0 { "" } else { GAP };
        let columns = (*width).min(room.saturating_sub(gap.len()));
        let shown = text::cut(&cell.text, columns, style.charset);
        let fill = " ".repeat(width.saturating_sub(text::width(&shown)));
        let painted = cell.paint.over(&shown, style);
        let cell = match column {
            Column::Right(_) => format!("{fill}{painted}"),
            Column::Left(_) | Column::Rest(_) if index == last => painted,
            Column::Left(_) | Column::Rest(_) => format!("{painted}{fill}"),
        };
        room = room.saturating_sub(gap.len() + width);
        out.push_str(gap);
        out.push_str(&cell);
    }
    out
}

/// `  label  value` with the value wrapped under itself; no line for an empty value.
pub(super) fn fact(label: &str, value: &str, style: &Style) -> Vec<String> {
    hanging(
        &format!("  {}  ", Paint::Dim.over(&format!("{label:<11}"), style)),
        15,
        value,
        style,
    )
}

/// `value` cleaned and wrapped after `front`, which is `indent` columns wide; no line for an empty value.
pub(super) fn hanging(front: &str, indent: usize, value: &str, style: &Style) -> Vec<String> {
    let lines = text::wrap(
        &text::one_line(value, style.charset),
        style.width.saturating_sub(indent).max(20),
    );
    let indent = " ".repeat(indent);
    let fronts = std::iter::once(front).chain(std::iter::repeat(indent.as_str()));
    fronts
        .zip(lines)
        .map(|(front, line)| format!("{front}{line}"))
        .collect()
}

/// `left` and `right` at the two edges of a line; if both do not fit, `left` is wrapped in lines above.
pub(super) fn edges(left: &str, right: &str, style: &Style) -> Vec<String> {
    let room = style.width.saturating_sub(text::width(right) + GAP.len());
    let left = text::one_line(left, style.charset);
    if text::width(&left) <= room {
        return vec![format!("{}{right}", text::pad(&left, room + GAP.len()))];
    }
    let mut lines = text::wrap(&left, style.width);
    lines.push(text::pad_left(right, style.width));
    lines
}

/// `11-21 21:04`
pub(super) fn short_moment(at: DateTime<Utc>) -> String {
    at.format("%m-%d %H:%M").to_string()
}

/// The colour of a status.
pub(super) fn status_paint(status: RunStatus) -> Paint {
    match status {
        RunStatus::Completed => Paint::Green,
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut => Paint::Red,
        RunStatus::Running | RunStatus::Limited | RunStatus::Unknown(_) => Paint::Plain,
    }
}
