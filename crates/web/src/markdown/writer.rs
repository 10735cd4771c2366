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
    /// Scrolls a table by itself where it is wider than the page.
    Scroll,
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

impl Element {
    /// The name of its tag, and its fixed attributes.
    fn tag(self) -> &'static str {
        match self {
            Self::Paragraph => "p",
            Self::Heading(..=3) => "h3",
            Self::Heading(4) => "h4",
            Self::Heading(5) => "h5",
            Self::Heading(6..) => "h6",
            Self::Quotation => "blockquote",
            Self::Preformatted => "pre tabindex=\"0\"",
            Self::Code => "code",
            Self::Unordered => "ul",
            Self::Ordered { .. } => "ol class=\"nums\"",
            Self::Item => "li",
            Self::Scroll => "div class=\"scroll\" tabindex=\"0\"",
            Self::Table => "table",
            Self::Head => "thead",
            Self::Body => "tbody",
            Self::Row => "tr",
            Self::HeadCell => "th scope=\"col\"",
            Self::Cell => "td",
            Self::NumberCell => "td class=\"num\"",
            Self::Emphasis => "em",
            Self::Strong => "strong",
            Self::Citations => "span class=\"cites\"",
            Self::Host => "span class=\"host\"",
        }
    }
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
        let mut tag = element.tag().to_owned();
        if let Element::Ordered { start } = element
            && start != 1
        {
            tag.push_str(&format!(" start=\"{start}\""));
        }
        self.0.push_str(&format!("<{tag}>"));
    }

    pub(super) fn close(&mut self, element: Element) {
        let tag = element.tag();
        let name = tag.split(' ').next().unwrap_or(tag);
        self.0.push_str(&format!("</{name}>"));
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
