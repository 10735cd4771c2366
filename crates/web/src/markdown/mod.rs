//! Markdown of models as HTML: paragraphs, lists, emphasis, code, tables, quotations and headings.
//!
//! No HTML of a model is ever parsed: the events of the Markdown parser choose among the elements of `writer`, and
//! every text is escaped there. HTML in a text is shown as text, images are never loaded, and a link shows the host to
//! which it leads. `writer` is the only file of the program that makes markup of strings.

mod writer;
mod links;
mod inline;
mod render;
#[cfg(test)]
mod tests;

pub(super) use self::inline::Cites;
pub(super) use self::links::target;

use maud::Markup;
use pulldown_cmark::{Options, Parser, TextMergeStream};

use self::render::Renderer;
use self::writer::{Element, Writer};
use crate::rendering::is_over;
use tarsy_core::readable::text::{Charset, clean};

/// A longer text is shown as it is. The timeline carries at most as much in one event.
const MAX_BYTES: usize = 256 * 1024;
/// The most bytes of one line.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// The most links, in a text: further ones are text.
const MAX_LINKS: usize = 500;

/// `markdown` as elements. A citation `[17]` of an event up to number `last_event` becomes a link to `#17`.
pub(super) fn html(markdown: &str, last_event: u32) -> Markup {
    cited_html(markdown, Cites::of_page(last_event))
}

/// `markdown` as elements, with citations that lead to the targets of `cites`.
pub(super) fn cited_html(markdown: &str, cites: Cites) -> Markup {
    let source = clean(markdown, Charset::Unicode);
    if source.len() > MAX_BYTES {
        let mut writer = Writer::default();
        writer.open(Element::Preformatted);
        writer.text(&source);
        writer.close(Element::Preformatted);
        return writer.finish();
    }
    let parser = Parser::new_ext(&source, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS);
    let mut renderer = Renderer::new(&source, cites);
    TextMergeStream::new(parser)
        .take_while(|_| !is_over())
        .for_each(|event| renderer.event(event));
    renderer.finish()
}

/// One line of a model's text, such as the cause: code, emphasis, links and citations, and no blocks.
pub(super) fn line(markdown: &str, last_event: u32) -> Markup {
    let source = clean(markdown, Charset::Unicode);
    let source = source
        .get(..source.floor_char_boundary(MAX_LINE_BYTES))
        .unwrap_or_default();
    let parser = Parser::new_ext(source, Options::empty());
    let mut renderer = Renderer::inline(source, Cites::of_page(last_event));
    TextMergeStream::new(parser).for_each(|event| renderer.event(event));
    renderer.finish()
}
