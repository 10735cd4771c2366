//! Markdown of models, laid out for a terminal: headings, lists, tables, code, links and quotations.
//!
//! The layout depends on the width only. Colours add to it, except that without colours a rule below a heading and the
//! backticks of code stand in for them. Nothing is hidden: addresses, HTML and definitions of links are text. A line
//! break of the source is a line break. `glyphs` wraps and prints, `page` indents, `table` fits tables, `layout` turns
//! the parser's events into blocks. There is no recursion, so any nesting is safe.

mod glyphs;
mod page;
mod table;
mod layout;
#[cfg(test)]
mod tests;

use pulldown_cmark::{Options, Parser};

use self::layout::Layout;
use super::style::{Charset, Style};
use super::text;

/// A longer text is wrapped as it is. The timeline carries at most as much in one event.
const MAX_BYTES: usize = 256 * 1024;

/// The lines of `markdown`, each at most `width` columns (at least 20).
pub(crate) fn render(markdown: &str, width: usize, style: &Style) -> Vec<String> {
    let source = text::clean(markdown, style.charset);
    if source.len() > MAX_BYTES {
        return text::wrap(&source, width.max(20));
    }
    laid_out(&source, width, style).0
}

/// `markdown` as one line of plain text: code keeps its backticks, links their addresses.
pub(crate) fn plain(markdown: &str, charset: Charset) -> String {
    // The page is wider than any line, so that nothing wraps.
    let style = Style {
        charset,
        ..Style::default()
    };
    let lines = if markdown.len() > MAX_BYTES {
        Vec::new()
    } else {
        laid_out(markdown, markdown.len() * 4, &style).0
    };
    if lines.is_empty() {
        return text::one_line(markdown, charset);
    }
    text::one_line(&lines.join(" "), charset)
}

/// The lines and the steps that they took: characters and events.
fn laid_out(source: &str, width: usize, style: &Style) -> (Vec<String>, usize) {
    let parser = Parser::new_ext(source, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS);
    let mut definitions: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(label, definition)| {
            (
                definition.span.start,
                label.to_owned(),
                definition.dest.to_string(),
            )
        })
        .collect();
    definitions.sort();
    let mut layout = Layout::new(style, width);
    parser.for_each(|event| layout.event(event));
    for (_, label, address) in &definitions {
        layout.definition(label, address);
    }
    layout.finish()
}
