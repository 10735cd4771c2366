//! The printed lines: indents what belongs to lists and quotations, and separates blocks by an empty line.

use super::glyphs::{self, Glyph, Look};
use crate::cli::render::style::Style;

/// A container of blocks.
#[derive(Debug)]
pub(super) enum Container {
    Quote,
    /// An entry of a list with its bullet or number, and a space.
    Item(String),
}

/// Lines of at most `width` columns.
#[derive(Debug)]
pub(super) struct Page<'a> {
    style: &'a Style,
    width: usize,
    containers: Vec<Container>,
    /// The number of containers that have shown their bullet or number.
    begun: usize,
    /// An empty line comes before the next block.
    has_gap: bool,
    lines: Vec<String>,
}

impl<'a> Page<'a> {
    /// A page of `width` columns, at least 20.
    pub(super) fn new(style: &'a Style, width: usize) -> Self {
        Self {
            style,
            width: width.max(20),
            containers: Vec::new(),
            begun: 0,
            has_gap: false,
            lines: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, container: Container) {
        self.containers.push(container);
    }

    /// Leaves the innermost container. An entry without content still shows its bullet or number.
    pub(super) fn leave(&mut self) {
        if self.begun < self.containers.len()
            && matches!(self.containers.last(), Some(Container::Item(_)))
        {
            self.put(Vec::new());
        }
        self.containers.pop();
        self.begun = self.begun.min(self.containers.len());
    }

    /// The next block is separated from what is there.
    pub(super) fn gap(&mut self) {
        self.has_gap = true;
    }

    /// The columns that a block may have here.
    pub(super) fn room(&self) -> usize {
        let first = glyphs::width(&self.front(self.begun));
        let others = glyphs::width(&self.front(self.containers.len()));
        self.width.saturating_sub(first.max(others))
    }

    /// Prints one line of a block, which is at most [`Self::room`] wide.
    pub(super) fn put(&mut self, line: Vec<Glyph>) {
        if std::mem::take(&mut self.has_gap) && !self.lines.is_empty() {
            let begun = self.containers.get(..self.begun).unwrap_or_default();
            self.lines
                .push(glyphs::print(&self.fronts(begun, begun.len()), self.style));
        }
        let mut whole = self.front(self.begun);
        self.begun = self.containers.len();
        whole.extend(line);
        self.lines.push(glyphs::print(&whole, self.style));
    }

    pub(super) fn put_all(&mut self, lines: Vec<Vec<Glyph>>) {
        for line in lines {
            self.put(line);
        }
    }

    pub(super) fn finish(self) -> Vec<String> {
        self.lines
    }

    /// The front of a line before which `begun` containers have shown their bullet or number.
    fn front(&self, begun: usize) -> Vec<Glyph> {
        self.fronts(&self.containers, begun)
    }

    /// The indentation of nested blocks, at most half of the width: deeper blocks have the indentation of the last
    /// that fits.
    fn fronts(&self, containers: &[Container], begun: usize) -> Vec<Glyph> {
        let mut front = Vec::new();
        for (index, container) in containers.iter().enumerate() {
            let part = if index < begun {
                self.later(container)
            } else {
                self.first(container)
            };
            if glyphs::width(&front) + glyphs::width(&part) > self.width / 2 {
                // The number of the innermost entry is shown in any case.
                return match containers.last() {
                    Some(last @ Container::Item(_)) if begun < containers.len() => self.first(last),
                    Some(_) | None => front,
                };
            }
            front.extend(part);
        }
        front
    }

    /// The front of a container's first line.
    fn first(&self, container: &Container) -> Vec<Glyph> {
        let charset = self.style.charset;
        match container {
            Container::Quote => glyphs::glyphs(charset.pick("│ ", "| "), &Look::dim(), charset),
            Container::Item(marker) => glyphs::glyphs(marker, &Look::default(), charset),
        }
    }

    /// The front of its other lines.
    fn later(&self, container: &Container) -> Vec<Glyph> {
        let first = self.first(container);
        match container {
            Container::Quote => first,
            Container::Item(_) => vec![(' ', Look::default()); glyphs::width(&first)],
        }
    }
}
