//! Extracts the text of an HTML page with enough of its structure for a reader, in one pass over the
//! tokens of the HTML Standard. No tree is built: the tree of a hostile page can be much larger than the page.

use std::borrow::Cow;

use html5gum::{DefaultEmitter, HtmlString, Token, Tokenizer};

/// Elements whose content is not shown.
const HIDDEN: [&str; 9] = [
    "script", "style", "head", "noscript", "svg", "nav", "template", "iframe", "footer",
];
/// Elements that begin and end a line.
const BLOCKS: [&str; 19] = [
    "p",
    "div",
    "br",
    "tr",
    "table",
    "section",
    "article",
    "ul",
    "ol",
    "li",
    "pre",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
];

/// The text of a page.
pub(super) fn text(html: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    // What looks like a tag in a script is none.
    emitter.naively_switch_states(true);
    let mut page = Page::default();
    let mut hidden: Option<HtmlString> = None;
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            Token::EndTag(tag) if hidden.as_ref() == Some(&tag.name) => hidden = None,
            _ if hidden.is_some() => {}
            Token::StartTag(tag) if HIDDEN.contains(&&*name(&tag.name)) => hidden = Some(tag.name),
            Token::StartTag(tag) => page.tag(&name(&tag.name), Side::Start),
            Token::EndTag(tag) => page.tag(&name(&tag.name), Side::End),
            Token::String(text) => page.push(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.out.trim().to_owned()
}

fn name(tag: &HtmlString) -> Cow<'_, str> {
    String::from_utf8_lossy(tag)
}

/// Whether a tag begins or ends its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

#[derive(Default)]
struct Page {
    out: String,
    /// Depth of `pre`, where white space counts.
    preformatted: usize,
}

impl Page {
    fn push(&mut self, text: &str) {
        if self.preformatted > 0 {
            self.out.push_str(&text.replace('\u{a0}', " "));
            return;
        }
        for c in text.chars() {
            if !c.is_whitespace() {
                self.out.push(c);
            } else if !self.out.ends_with([' ', '\n']) && !self.out.is_empty() {
                self.out.push(' ');
            }
        }
    }

    fn tag(&mut self, name: &str, side: Side) {
        if name == "pre" {
            self.preformatted = match side {
                Side::Start => self.preformatted + 1,
                Side::End => self.preformatted.saturating_sub(1),
            };
        }
        if BLOCKS.contains(&name) {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            if !self.out.is_empty() && !self.out.ends_with("\n\n") {
                self.out.push('\n');
            }
        }
        match (name, side) {
            ("li", Side::Start) => self.out.push_str("- "),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", Side::Start) => self.out.push_str("# "),
            ("td" | "th", Side::End) => self.out.push('\t'),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_words_and_lines() {
        let page = "<!DOCTYPE html><html><head><title>x</title><style>p{}</style></head><body><nav>menu</nav>\n\
                    <h1>KubePodOOMKilled</h1>\n<p>First &amp; <b>foremost</b>,\n look at\u{a0}limits &lt; 1&nbsp;GiB.</p>\
                    <ul><li>one<li>two</ul><pre>kubectl get pods \\\n  -n x</pre><!-- <p>no --><script>if (a<b) {}</SCRIPT >\
                    <table><tr><td>a</td><td>b</td></tr></table>1 < 2 &unknown; &#65;&#x42;";
        let expected = "# KubePodOOMKilled\n\nFirst & foremost, look at limits < 1 GiB.\n\n- one\n- two\n\n\
                        kubectl get pods \\\n  -n x\n\na\tb\t\n\n1 < 2 &unknown; AB";
        assert_eq!(text(page), expected);
    }

    #[test]
    fn a_page_that_is_cut_or_no_html_at_all_is_read_to_its_end() {
        for (page, expected) in [
            ("", ""),
            ("a <b", "a"),
            ("a<script>b", "a"),
            ("a<!-- b", "a"),
            ("a & b &; &#xffffffff; <", "a & b &; \u{fffd} <"),
            ("<>x</>", "<>x"),
            ("<p title='a > b'>c</p>&mdash;", "c\n—"),
        ] {
            assert_eq!(text(page), expected, "{page}");
        }
    }

    #[test]
    fn a_hostile_page_takes_linear_time() {
        for piece in [
            "<",
            "<a",
            "&",
            "<script>",
            "<!--",
            "</pre><pre> ",
            "<b a=",
            "<a b ",
            "'>\"",
        ] {
            let page = piece.repeat(512 * 1024 / piece.len());
            assert!(text(&page).len() <= page.len(), "{piece}");
        }
    }
}
