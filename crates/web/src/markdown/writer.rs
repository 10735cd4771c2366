//! Writes the elements that Markdown may have: the one place where strings become markup.
//!
//! An element is one of [`Element`]; texts and values of attributes are escaped, and numbers come from integers.

use maud::{Markup, PreEscaped, Render as _};

use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::{Charset, clean};

/// An element with its fixed attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Paragraph,
    /// `h3` to `h6`.
    Heading(u8),
    Quotation,
    Preformatted,
    Code,
    Unordered,
    Ordered {
        start: u64,
    },
    Item,
    /// A table that scrolls by itself where it is wider than the page.
    Table,
    Head,
    Body,
    Row,
    HeadCell,
    Cell,
    NumberCell,
    Emphasis,
    Strong,
    /// Citations that stand together.
    Citations,
    /// The host of a link.
    Host,
}

/// The path of a page; nothing for the page that the text is on.
fn address(page: Option<SessionId>) -> String {
    page.map(|id| format!("/sessions/{id}")).unwrap_or_default()
}

/// The elements so far.
#[derive(Debug, Default)]
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn open(&mut self, element: Element) {
        match element {
            Element::Heading(level) => self.0.push_str(&format!("<h{}>", level.clamp(3, 6))),
            Element::Ordered { start: 1 } => self.0.push_str("<ol class=\"nums\">"),
            Element::Ordered { start } => self
                .0
                .push_str(&format!("<ol class=\"nums\" start=\"{start}\">")),
            Element::Paragraph => self.0.push_str("<p>"),
            Element::Quotation => self.0.push_str("<blockquote>"),
            Element::Preformatted => self.0.push_str("<pre tabindex=\"0\">"),
            Element::Code => self.0.push_str("<code>"),
            Element::Unordered => self.0.push_str("<ul>"),
            Element::Item => self.0.push_str("<li>"),
            Element::Table => self
                .0
                .push_str("<div class=\"scroll\" tabindex=\"0\"><table>"),
            Element::Head => self.0.push_str("<thead>"),
            Element::Body => self.0.push_str("<tbody>"),
            Element::Row => self.0.push_str("<tr>"),
            Element::HeadCell => self.0.push_str("<th scope=\"col\">"),
            Element::Cell => self.0.push_str("<td>"),
            Element::NumberCell => self.0.push_str("<td class=\"num\">"),
            Element::Emphasis => self.0.push_str("<em>"),
            Element::Strong => self.0.push_str("<strong>"),
            Element::Citations => self.0.push_str("<span class=\"cites\">"),
            Element::Host => self.0.push_str(" <span class=\"host\">"),
        }
    }

    pub(super) fn close(&mut self, element: Element) {
        match element {
            Element::Heading(level) => self.0.push_str(&format!("</h{}>", level.clamp(3, 6))),
            Element::Ordered { .. } => self.0.push_str("</ol>"),
            Element::Paragraph => self.0.push_str("</p>"),
            Element::Quotation => self.0.push_str("</blockquote>"),
            Element::Preformatted => self.0.push_str("</pre>"),
            Element::Code => self.0.push_str("</code>"),
            Element::Unordered => self.0.push_str("</ul>"),
            Element::Item => self.0.push_str("</li>"),
            Element::Table => self.0.push_str("</table></div>"),
            Element::Head => self.0.push_str("</thead>"),
            Element::Body => self.0.push_str("</tbody>"),
            Element::Row => self.0.push_str("</tr>"),
            Element::HeadCell => self.0.push_str("</th>"),
            Element::Cell | Element::NumberCell => self.0.push_str("</td>"),
            Element::Emphasis => self.0.push_str("</em>"),
            Element::Strong => self.0.push_str("</strong>"),
            Element::Citations | Element::Host => self.0.push_str("</span>"),
        }
    }

    /// A text, escaped, and cleaned again: an entity such as `&#x202e;` becomes its character only as Markdown is read.
    pub(super) fn text(&mut self, text: &str) {
        clean(text, Charset::Unicode).render_to(&mut self.0);
    }

    pub(super) fn line_break(&mut self) {
        self.0.push_str("<br>");
    }

    pub(super) fn rule(&mut self) {
        self.0.push_str("<hr>");
    }

    /// A link to an event of this page, or of another one.
    pub(super) fn citation(&mut self, page: Option<SessionId>, event: u32) {
        let page = address(page);
        self.0.push_str(&format!(
            "<a href=\"{page}#{event}\"><span class=\"vh\">event </span>{event}</a>"
        ));
    }

    /// A link to the answer of an investigation.
    pub(super) fn report(&mut self, page: Option<SessionId>) {
        self.0
            .push_str(&format!("<a href=\"{}#answer\">report</a>", address(page)));
    }

    /// The beginning of a link to another site; `address` has been checked.
    pub(super) fn open_link(&mut self, address: &str) {
        self.0
            .push_str("<a rel=\"noopener noreferrer nofollow ugc\" href=\"");
        address.render_to(&mut self.0);
        self.0.push_str("\">");
    }

    pub(super) fn close_link(&mut self) {
        self.0.push_str("</a>");
    }

    pub(super) fn finish(self) -> Markup {
        PreEscaped(self.0)
    }
}
