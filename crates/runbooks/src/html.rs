//! Extracts the text of an HTML page with enough of its structure for a reader, in one pass.

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
/// A longer name between `&` and `;` is text.
const MAX_ENTITY_BYTES: usize = 10;

/// The text of a page.
pub(super) fn text(html: &str) -> String {
    // Lower case of ASCII keeps every offset.
    let lower = html.to_ascii_lowercase();
    let mut page = Page::default();
    let mut at = 0;
    while let Some(rest) = html.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(open) = rest.find('<') else {
            page.push(rest);
            break;
        };
        page.push(rest.get(..open).unwrap_or_default());
        let start = at + open;
        let tag = lower.get(start..).unwrap_or_default();
        let (name, side) = name_of(tag);
        if tag.starts_with("<!--") {
            at = after(&lower, start, "-->");
        } else if name.is_empty() && !tag.starts_with("<!") && !tag.starts_with("<?") {
            // A `<` that begins no tag.
            page.push("<");
            at = start + 1;
        } else {
            at = after(&lower, start, ">");
            if side == Side::Start && HIDDEN.contains(&name) {
                at = after(&lower, at, &format!("</{name}"));
                at = after(&lower, at, ">");
            }
            page.tag(name, side);
        }
    }
    page.out.trim().to_owned()
}

/// The offset after the next `end`; the end of the page if there is none.
fn after(page: &str, from: usize, end: &str) -> usize {
    let found = page.get(from..).and_then(|rest| rest.find(end));
    found.map_or(page.len(), |at| from + at + end.len())
}

/// Whether a tag begins or ends its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

/// The name of the tag that begins here; empty if there is none.
fn name_of(tag: &str) -> (&str, Side) {
    let inner = tag.strip_prefix('<').unwrap_or_default();
    let (inner, side) = inner
        .strip_prefix('/')
        .map_or((inner, Side::Start), |inner| (inner, Side::End));
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return ("", side);
    }
    let end = inner
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(inner.len());
    (inner.get(..end).unwrap_or_default(), side)
}

#[derive(Default)]
struct Page {
    out: String,
    /// Depth of `pre`, where white space counts.
    preformatted: usize,
}

impl Page {
    fn push(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            self.push_words(rest.get(..at).unwrap_or_default());
            let behind = rest.get(at..).unwrap_or_default();
            let (c, length) = entity(behind).unwrap_or(('&', 1));
            self.out.push(c);
            rest = behind.get(length..).unwrap_or_default();
        }
        self.push_words(rest);
    }

    fn push_words(&mut self, text: &str) {
        if self.preformatted > 0 {
            self.out.push_str(text);
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

/// The character of the entity that begins here, and the entity's length.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text
        .bytes()
        .take(MAX_ENTITY_BYTES)
        .position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let c = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let digits = name.strip_prefix('#')?;
            let hex = digits
                .strip_prefix(['x', 'X'])
                .map(|digits| u32::from_str_radix(digits, 16));
            char::from_u32(hex.unwrap_or_else(|| digits.parse()).ok()?)?
        }
    };
    Some((c, end + 1))
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
            ("a & b &; &#xffffffff; <", "a & b &; &#xffffffff; <"),
            ("<>x</>", "<>x</>"),
        ] {
            assert_eq!(text(page), expected, "{page}");
        }
    }

    #[test]
    fn a_hostile_page_takes_linear_time() {
        for piece in ["<", "<a", "&", "<script>", "<!--", "</pre><pre> "] {
            let page = piece.repeat(512 * 1024 / piece.len());
            assert!(text(&page).len() <= page.len(), "{piece}");
        }
    }
}
