//! Parses the Markdown of a model into blocks. HTML in it is text, an image is its description, and a link is its text
//! with the address behind it.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use super::{Block, Kind, Span};

/// The blocks of a text.
pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    let mut builder = Builder::default();
    TextMergeStream::new(parser).for_each(|event| builder.event(event));
    builder.end_block();
    builder.blocks
}

#[derive(Default)]
struct Builder {
    blocks: Vec<Block>,
    kind: Option<Kind>,
    spans: Vec<Span>,
    /// The next number of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    quotes: usize,
    strong: usize,
    emphasis: usize,
    /// The address of an open link.
    address: Option<String>,
    /// The text of that link so far.
    linked: String,
}

impl Builder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.push_text(text.into_string());
            }
            Event::Code(text) => {
                self.linked.push_str(&text);
                self.spans.push(Span::Code(text.into_string()));
            }
            Event::SoftBreak | Event::HardBreak => self.spans.push(Span::Break),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.push_text(text.into_string());
            }
            Event::Rule => self.end_block(),
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.push_text(mark.to_owned());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.begin(Kind::Heading),
            Tag::BlockQuote(_) => {
                self.end_block();
                self.quotes += 1;
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.begin(Kind::Code);
            }
            Tag::List(first) => {
                self.end_block();
                self.lists.push(first);
            }
            Tag::Item => {
                let kind = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        Kind::Numbered(number.saturating_sub(1))
                    }
                    Some(None) | None => Kind::Item,
                };
                self.begin(kind);
            }
            // The first paragraph of an item is the item.
            Tag::Paragraph if self.spans.is_empty() && self.kind.is_some() => {}
            Tag::Paragraph | Tag::HtmlBlock | Tag::TableHead | Tag::TableRow => self.end_block(),
            Tag::Strong => self.strong += 1,
            Tag::Emphasis => self.emphasis += 1,
            Tag::Link { dest_url, .. } => {
                self.linked.clear();
                self.address = Some(dest_url.into_string());
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Table(_)
            | Tag::TableCell
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Image { .. }
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::Item
            | TagEnd::TableHead
            | TagEnd::TableRow => self.end_block(),
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::List(_) => {
                self.end_block();
                self.lists.pop();
            }
            TagEnd::TableCell => self.push_text("  ".to_owned()),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Link => self.end_link(),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Table
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Image
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Adds a text to the last span of the same kind: a writer has to see the whole text to break what is in it.
    fn push_text(&mut self, text: String) {
        self.linked.push_str(&text);
        let span = if self.strong > 0 {
            Span::Strong(text)
        } else if self.emphasis > 0 {
            Span::Emphasis(text)
        } else {
            Span::Text(text)
        };
        match (self.spans.last_mut(), &span) {
            (Some(Span::Strong(last)), Span::Strong(text))
            | (Some(Span::Emphasis(last)), Span::Emphasis(text))
            | (Some(Span::Text(last)), Span::Text(text)) => last.push_str(text),
            (Some(_) | None, _) => self.spans.push(span),
        }
    }

    /// The address behind the text of a link, unless the text is the address.
    fn end_link(&mut self) {
        let Some(address) = self.address.take() else {
            return;
        };
        if self.linked != address {
            self.push_text(format!(" ({address})"));
        }
    }

    fn begin(&mut self, kind: Kind) {
        self.end_block();
        self.kind = Some(kind);
    }

    fn end_block(&mut self) {
        let kind = self.kind.take();
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().all(|span| span.text().trim().is_empty()) {
            return;
        }
        let usual = if self.quotes > 0 {
            Kind::Quote
        } else {
            Kind::Paragraph
        };
        self.blocks.push(Block {
            kind: kind.unwrap_or(usual),
            spans,
        });
    }
}
