//! Renders the events of the Markdown parser as HTML elements.
//!
//! There is no recursion, and a text that is nested too deeply loses its elements and keeps its words.

use maud::Markup;
use pulldown_cmark::{Alignment, Event, HeadingLevel, Tag};

use super::MAX_LINKS;
use super::inline::Cites;
use super::links::{self, Target};
use super::writer::{Element, Writer};

/// Elements may be nested so deeply.
const MAX_DEPTH: usize = 16;
/// The depth of nesting that is kept; deeper elements are only counted. Rows and cells of a table may exceed the depth
/// of elements.
const MAX_OPEN: usize = MAX_DEPTH + 8;
/// The level of headings in a text is below that of the page's sections.
const FIRST_LEVEL: u8 = 3;

/// The text so far.
#[derive(Debug)]
pub(super) struct Renderer {
    writer: Writer,
    cites: Cites,
    open: Vec<Open>,
    /// Tags beyond [`MAX_OPEN`] that are open.
    skipped: usize,
    /// The places of the open links in `open`: the last one gets the text.
    open_links: Vec<usize>,
    is_inline: bool,
    columns: Vec<Alignment>,
    column: usize,
    links: usize,
    /// The highest heading of the source, and the last one that was written.
    top: u8,
    last_level: u8,
}

/// An open element, which the next end event closes.
#[derive(Debug)]
enum Open {
    Element(Element),
    CodeBlock,
    Table,
    TableHead,
    Link {
        target: Target,
        text: String,
    },
    /// A link that is text, or an image: its address follows.
    Address(String),
    /// No element.
    Nothing,
}

/// The level of the highest heading in a text.
fn highest_heading(source: &str) -> u8 {
    source
        .lines()
        .map(|line| line.trim_start().bytes().take_while(|c| *c == b'#').count())
        .filter(|level| (1..=6).contains(level))
        .min()
        .and_then(|level| u8::try_from(level).ok())
        .unwrap_or(1)
}

impl Renderer {
    pub(super) fn new(source: &str, cites: Cites) -> Self {
        Self {
            writer: Writer::default(),
            cites,
            open: Vec::new(),
            skipped: 0,
            open_links: Vec::new(),
            is_inline: false,
            columns: Vec::new(),
            column: 0,
            links: 0,
            top: highest_heading(source),
            last_level: FIRST_LEVEL - 1,
        }
    }

    /// A renderer of one line, which has no blocks.
    pub(super) fn inline(source: &str, cites: Cites) -> Self {
        Self {
            is_inline: true,
            ..Self::new(source, cites)
        }
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.note_link_text(&text);
                self.writer.open(Element::Code);
                self.writer.text(&text);
                self.writer.close(Element::Code);
            }
            Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => {
                self.plain(&text)
            }
            Event::SoftBreak | Event::HardBreak => self.writer.line_break(),
            Event::Rule if self.is_inline => {}
            Event::Rule => self.writer.rule(),
            Event::TaskListMarker(done) => self.plain(if done { "[x] " } else { "[ ] " }),
        }
    }

    pub(super) fn finish(mut self) -> Markup {
        while !self.open.is_empty() {
            self.end();
        }
        self.writer.finish()
    }

    fn start(&mut self, tag: Tag<'_>) {
        if self.skipped > 0 || self.open.len() >= MAX_OPEN {
            self.skipped += 1;
            if let Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } = tag {
                self.plain(&format!("({dest_url}) "));
            }
            return;
        }
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(Element::Paragraph),
            Tag::Heading { level, .. } => {
                let level = self.level(level);
                self.block(Element::Heading(level));
            }
            Tag::BlockQuote(_) => self.block(Element::Quotation),
            Tag::CodeBlock(_) if self.is_inline || self.is_too_deep() => {
                self.open.push(Open::Nothing)
            }
            Tag::CodeBlock(_) => {
                self.writer.open(Element::Preformatted);
                self.writer.open(Element::Code);
                self.open.push(Open::CodeBlock);
            }
            Tag::List(None) => self.block(Element::Unordered),
            Tag::List(Some(start)) => self.block(Element::Ordered { start }),
            Tag::Table(columns) if !self.is_too_deep() => {
                self.columns = columns;
                self.writer.open(Element::Scroll);
                self.writer.open(Element::Table);
                self.open.push(Open::Table);
            }
            Tag::TableHead if self.is_in_element() => {
                self.column = 0;
                self.writer.open(Element::Head);
                self.writer.open(Element::Row);
                self.open.push(Open::TableHead);
            }
            Tag::TableRow => {
                self.column = 0;
                self.part(Element::Row);
            }
            Tag::TableCell => {
                let cell = self.cell();
                self.part(cell);
            }
            Tag::Item => self.part(Element::Item),
            Tag::Emphasis => self.inline_element(Element::Emphasis),
            Tag::Strong => self.inline_element(Element::Strong),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.plain("[image: ");
                self.open.push(Open::Address(format!("] {dest_url}")));
            }
            Tag::Table(_)
            | Tag::TableHead
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => self.open.push(Open::Nothing),
        }
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            // As for an element that is left out.
            self.writer.text(" ");
            return;
        }
        match self.open.pop() {
            Some(Open::Element(element)) => self.writer.close(element),
            Some(Open::CodeBlock) => {
                self.writer.close(Element::Code);
                self.writer.close(Element::Preformatted);
            }
            Some(Open::TableHead) => {
                self.writer.close(Element::Row);
                self.writer.close(Element::Head);
                self.writer.open(Element::Body);
            }
            Some(Open::Table) => {
                self.writer.close(Element::Body);
                self.writer.close(Element::Table);
                self.writer.close(Element::Scroll);
            }
            Some(Open::Link { target, text }) => {
                self.open_links.pop();
                self.writer.close_link();
                if text.trim() != target.address && text.trim() != target.host {
                    self.writer.text(" ");
                    self.writer.open(Element::Host);
                    self.writer.text(&target.host);
                    self.writer.close(Element::Host);
                }
            }
            Some(Open::Address(address)) => self.plain(&address),
            // Words of two blocks without elements do not run together.
            Some(Open::Nothing) => self.writer.text(" "),
            None => {}
        }
    }

    fn text(&mut self, text: &str) {
        let is_code = matches!(self.open.last(), Some(Open::CodeBlock));
        if is_code || self.note_link_text(text) {
            self.writer.text(text);
        } else {
            self.cites.write(&mut self.writer, text);
        }
    }

    /// A text without citations.
    fn plain(&mut self, text: &str) {
        self.note_link_text(text);
        self.writer.text(text);
    }

    /// Adds to the text of the open link; returns whether there is one.
    fn note_link_text(&mut self, added: &str) -> bool {
        let link = self
            .open_links
            .last()
            .and_then(|place| self.open.get_mut(*place));
        let Some(Open::Link { text, .. }) = link else {
            return false;
        };
        text.push_str(added);
        true
    }

    fn link(&mut self, address: &str) {
        let target = if self.links < MAX_LINKS && !self.is_too_deep() {
            links::target(address)
        } else {
            None
        };
        let Some(target) = target else {
            self.open.push(Open::Address(format!(" ({address})")));
            return;
        };
        self.links += 1;
        self.writer.open_link(&target.address);
        self.open_links.push(self.open.len());
        self.open.push(Open::Link {
            target,
            text: String::new(),
        });
    }

    fn block(&mut self, element: Element) {
        if self.is_inline {
            self.open.push(Open::Nothing)
        } else {
            self.inline_element(element)
        }
    }

    fn inline_element(&mut self, element: Element) {
        if self.is_too_deep() {
            self.open.push(Open::Nothing)
        } else {
            self.push(element)
        }
    }

    /// Opens a part of an element, if the enclosing element is open; otherwise the part is ignored.
    fn part(&mut self, element: Element) {
        if self.is_in_element() {
            self.push(element)
        } else {
            self.open.push(Open::Nothing)
        }
    }

    fn push(&mut self, element: Element) {
        self.writer.open(element);
        self.open.push(Open::Element(element));
    }

    fn is_in_element(&self) -> bool {
        !matches!(self.open.last(), Some(Open::Nothing) | None)
    }

    fn is_too_deep(&self) -> bool {
        // The first that is too deep has no element, and then all within it.
        let is_without = self
            .open
            .last()
            .is_some_and(|open| matches!(open, Open::Nothing))
            && !self.is_inline;
        is_without || self.open.len() >= MAX_DEPTH
    }

    fn cell(&mut self) -> Element {
        let alignment = self.columns.get(self.column).copied();
        self.column += 1;
        match (self.open.last(), alignment) {
            (Some(Open::TableHead), _) => Element::HeadCell,
            (_, Some(Alignment::Right)) => Element::NumberCell,
            (_, _) => Element::Cell,
        }
    }

    /// The level below that of the sections of the page, without a gap to the heading before it.
    fn level(&mut self, level: HeadingLevel) -> u8 {
        let level = u8::try_from(level as usize).unwrap_or(6);
        let below = FIRST_LEVEL + level.saturating_sub(self.top);
        self.last_level = below.clamp(FIRST_LEVEL, self.last_level + 1).min(6);
        self.last_level
    }
}
