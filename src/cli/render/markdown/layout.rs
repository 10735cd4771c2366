//! Turns the parser's events into the blocks of a page.

use std::collections::BTreeSet;
use std::rc::Rc;

use pulldown_cmark::{Event, HeadingLevel, LinkType, Tag, TagEnd};

use super::glyphs::{self, Glyph, Look};
use super::page::{Container, Page};
use super::table::Table;
use crate::cli::render::style::{Charset, Style};
use crate::cli::render::text;

/// A text that is being laid out.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    style: &'a Style,
    page: Page<'a>,
    /// The text of the present block.
    inline: Vec<Glyph>,
    /// Open emphases and headings.
    bold: usize,
    italic: usize,
    links: Vec<Link>,
    /// The labels of definitions that a link has shown.
    shown: BTreeSet<String>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    table: Option<Table>,
    code: Option<String>,
    steps: usize,
}

/// A link or image whose text is being read.
#[derive(Debug)]
struct Link {
    /// The beginning of its text in the block.
    start: usize,
    address: String,
    /// Written as `[text]`: the brackets stay, because `[9]` is also the number of an event.
    has_brackets: bool,
}

impl<'a> Layout<'a> {
    pub(super) fn new(style: &'a Style, width: usize) -> Self {
        Self {
            style,
            page: Page::new(style, width),
            inline: Vec::new(),
            bold: 0,
            italic: 0,
            links: Vec::new(),
            shown: BTreeSet::new(),
            lists: Vec::new(),
            table: None,
            code: None,
            steps: 0,
        }
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        self.steps += 1;
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(code) => self.inline_code(&code),
            Event::Text(text) if self.code.is_some() => {
                self.code.get_or_insert_default().push_str(&text);
            }
            Event::Text(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.end_block();
                self.rule(self.page.room());
                self.page.gap();
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    /// A definition of a link's address: shown at the end, unless a link has shown it.
    pub(super) fn definition(&mut self, label: &str, address: &str) {
        if !self.shown.contains(&label.to_lowercase()) {
            self.text(&format!("[{label}]: {address}"));
            self.flush();
        }
    }

    /// The lines and the steps that they took.
    pub(super) fn finish(mut self) -> (Vec<String>, usize) {
        self.flush();
        (self.page.finish(), self.steps)
    }

    /// Ends the present block, and separates the next one from it.
    fn end_block(&mut self) {
        self.flush();
        self.page.gap();
    }

    fn rule(&mut self, columns: usize) {
        let rule = self.charset().pick("─", "-").repeat(columns);
        let rule = glyphs::glyphs(&rule, &Look::dim(), self.charset());
        self.page.put(rule);
    }

    fn charset(&self) -> Charset {
        self.style.charset
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.flush(),
            Tag::Heading { .. } => {
                self.end_block();
                self.bold += 1;
            }
            Tag::BlockQuote(_) => {
                self.end_block();
                self.page.enter(Container::Quote);
            }
            Tag::CodeBlock(_) => {
                self.end_block();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let marker = self.marker();
                self.page.enter(Container::Item(marker));
            }
            Tag::Table(alignments) => {
                self.end_block();
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead => {
                self.bold += 1;
                self.row();
            }
            Tag::TableRow => self.row(),
            Tag::Emphasis => self.italic += 1,
            Tag::Strong => self.bold += 1,
            Tag::Link {
                link_type,
                dest_url,
                id,
                ..
            } => self.open_link(link_type, &dest_url, &id),
            Tag::Image {
                link_type,
                dest_url,
                id,
                ..
            } => {
                self.text("image ");
                self.open_link(link_type, &dest_url, &id);
            }
            // Their syntax is not switched on.
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(level) => self.end_heading(level),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.page.leave();
                self.page.gap();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.page.gap();
                }
            }
            TagEnd::Item => {
                self.flush();
                self.page.leave();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead => self.bold = self.bold.saturating_sub(1),
            TagEnd::TableCell => self.cell(),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn look(&self) -> Look {
        Look {
            is_bold: self.bold > 0,
            is_italic: self.italic > 0,
            ..Look::default()
        }
    }

    /// Entities can spell what the source may not contain, so each text is cleaned again.
    fn text(&mut self, text: &str) {
        self.steps += text.len();
        let glyphs = glyphs::glyphs(text, &self.look(), self.charset());
        self.inline.extend(glyphs);
    }

    fn inline_code(&mut self, code: &str) {
        self.steps += code.len();
        let look = Look {
            is_code: true,
            ..self.look()
        };
        let mark = if self.style.color { "" } else { "`" };
        let code = text::clean(code, self.charset()).replace('\n', " ");
        let glyphs = glyphs::glyphs(&format!("{mark}{code}{mark}"), &look, self.charset());
        self.inline.extend(glyphs);
    }

    /// Prints the text of the present block.
    fn flush(&mut self) {
        let inline = self.take_inline();
        if !inline.is_empty() && self.table.is_none() {
            let lines = glyphs::wrap(&inline, self.page.room());
            self.page.put_all(lines);
        }
    }

    /// The text of the present block, without spaces at its end.
    fn take_inline(&mut self) -> Vec<Glyph> {
        let mut inline = std::mem::take(&mut self.inline);
        while inline.last().is_some_and(|(c, _)| c.is_whitespace()) {
            inline.pop();
        }
        inline
    }

    fn end_heading(&mut self, level: HeadingLevel) {
        self.bold = self.bold.saturating_sub(1);
        let columns = glyphs::natural_width(&self.inline).min(self.page.room());
        self.flush();
        if !self.style.color && level <= HeadingLevel::H2 && columns > 0 {
            self.rule(columns);
        }
        if level <= HeadingLevel::H2 {
            self.page.gap();
        }
    }

    fn marker(&mut self) -> String {
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => format!("{} ", self.charset().pick("•", "-")),
        }
    }

    /// Lines of code are indented and never wrapped at words; a line that does not fit continues after a mark.
    fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        self.steps += code.len();
        let charset = self.charset();
        let look = Look {
            is_code: true,
            ..Look::default()
        };
        let indent = glyphs::glyphs("  ", &Look::default(), charset);
        let mark = glyphs::glyphs(charset.pick("↪ ", "... "), &Look::dim(), charset);
        let room = self
            .page
            .room()
            .saturating_sub(indent.len() + glyphs::width(&mark));
        for line in text::clean(&code, charset).trim_end().split('\n') {
            let line = glyphs::glyphs(line.trim_end(), &look, charset);
            let fits = glyphs::width(&line) <= room + glyphs::width(&mark);
            let pieces = if fits {
                vec![line]
            } else {
                glyphs::pieces(&line, room)
            };
            for (index, piece) in pieces.into_iter().enumerate() {
                let mut whole = indent.clone();
                if index > 0 {
                    whole.extend_from_slice(&mark);
                }
                whole.extend(piece);
                self.page.put(whole);
            }
        }
        self.page.gap();
    }

    fn row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn cell(&mut self) {
        let cell = self.take_inline();
        if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
            row.push(cell);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        self.steps += table.rows.iter().map(Vec::len).sum::<usize>();
        let lines = table.lines(self.page.room(), self.charset());
        self.page.put_all(lines);
        self.page.gap();
    }

    fn open_link(&mut self, link_type: LinkType, address: &str, label: &str) {
        let has_brackets = match link_type {
            LinkType::Reference
            | LinkType::ReferenceUnknown
            | LinkType::Collapsed
            | LinkType::CollapsedUnknown
            | LinkType::Shortcut
            | LinkType::ShortcutUnknown => true,
            LinkType::Inline | LinkType::Autolink | LinkType::Email | LinkType::WikiLink { .. } => {
                false
            }
        };
        self.links.push(Link {
            start: self.inline.len(),
            address: text::one_line(address, self.charset()),
            has_brackets,
        });
        if has_brackets {
            self.shown.insert(label.to_lowercase());
            self.text("[");
        }
    }

    /// Prints the address after the text, unless it is the text.
    fn close_link(&mut self) {
        let Some(Link {
            start,
            address,
            has_brackets,
        }) = self.links.pop()
        else {
            return;
        };
        if has_brackets {
            self.text("]");
        }
        let shown: String = self.inline.iter().skip(start).map(|(c, _)| *c).collect();
        let link = is_web(&address).then(|| Rc::from(address.as_str()));
        // The shown address is the link: the text, or what follows it.
        let mut start = start;
        if shown != address && !address.is_empty() {
            let gap = if shown.is_empty() { "" } else { " " };
            self.text(&format!("{gap}<"));
            start = self.inline.len();
            self.text(&address);
            self.text(">");
        }
        let length = address.chars().count();
        self.inline
            .iter_mut()
            .skip(start)
            .take(length)
            .for_each(|(_, look)| look.link.clone_from(&link));
    }
}

/// Whether the terminal gets the address as a link.
fn is_web(address: &str) -> bool {
    let has_scheme = address.starts_with("https://") || address.starts_with("http://");
    has_scheme && address.chars().all(|c| c.is_ascii_graphic())
}
