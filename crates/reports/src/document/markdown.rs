//! Escapes text of models, tools and alerts for a Markdown document that people paste into tickets.
//!
//! Such text adds no image, HTML, heading or fence to the document, and no link that hides its address.

use std::iter::once;

use crate::columns::cut;
use tarsy_core::readable::text::{self, Charset};

/// A text as one line of plain text. A character is escaped where it would have a meaning in Markdown, so that names
/// and commands can be copied from the text as it is written.
pub(super) fn inline(outside: &str) -> String {
    let text = text::one_line(outside, Charset::Unicode);
    let mut out = String::new();
    for place in in_context(&text) {
        if has_meaning(place) {
            out.push('\\');
        }
        out.push(place.c);
    }
    // These characters begin a list at the beginning of a line.
    match out.chars().next() {
        Some('-' | '+' | '=') => format!("\\{out}"),
        Some(digit) if digit.is_ascii_digit() => out.replacen('.', "\\.", 1),
        _ => out,
    }
}

/// A character between its neighbours.
#[derive(Clone, Copy)]
struct CharContext {
    before: Option<char>,
    c: char,
    next: Option<char>,
}

fn in_context(text: &str) -> impl Iterator<Item = CharContext> {
    let before = once(None).chain(text.chars().map(Some));
    let next = text.chars().skip(1).map(Some).chain(once(None));
    let places = before.zip(text.chars()).zip(next);
    places.map(|((before, c), next)| CharContext { before, c, next })
}

/// Whether a character of plain text would format it, make a link, or mention a person.
fn has_meaning(place: CharContext) -> bool {
    let CharContext { before, c, next } = place;
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match c {
        '\\' | '`' | '*' | '<' | '|' | '~' | '$' => true,
        // Within a word it formats nothing.
        '_' => !(is_word(before) && is_word(next)),
        '@' => !is_word(before),
        '#' => before.is_none() || next.is_some_and(|next| next.is_ascii_digit()),
        '>' => before.is_none(),
        '&' => next.is_some_and(|next| next.is_alphanumeric() || next == '#'),
        _ => makes_link(place),
    }
}

/// Whether a character makes an image, a link, the link of a wiki (`[[page]]`), a reference or a footnote of brackets.
/// Brackets alone are text: the document defines no reference.
fn makes_link(place: CharContext) -> bool {
    match place.c {
        '!' => place.next == Some('['),
        '[' => matches!(place.next, Some('[' | '^')),
        ']' => matches!(place.next, Some('(' | '[' | ':')),
        _ => false,
    }
}

/// A line of a model's Markdown: emphasis and code are rendered, HTML, images and links are not.
pub(super) fn written(outside: &str) -> String {
    Harmless::default().line(&text::one_line(outside, Charset::Unicode))
}

/// A text as a code span of one line, cut at `columns`; an empty text stays empty.
pub(super) fn code(outside: &str, columns: usize) -> String {
    let text = cut(
        &text::one_line(outside, Charset::Unicode),
        columns,
        Charset::Unicode,
    );
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    // A span may not begin or end with a backtick of its own.
    let gap = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// A code block; its fence is longer than any fence in the text.
pub(super) fn block(outside: &str) -> Vec<String> {
    let text = text::clean(outside, Charset::Unicode);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let mut lines = vec![format!("{fence}text")];
    lines.extend(
        text.trim_end()
            .lines()
            .map(|line| line.trim_end().to_owned()),
    );
    lines.push(fence);
    lines
}

/// Markdown of a model as a quotation: lists, emphasis and code are rendered, HTML and images are not, and no line
/// leaves the quotation.
pub(super) fn quote(outside: &str) -> Vec<String> {
    let text = text::clean(outside, Charset::Unicode);
    let mut open = None::<Fence>;
    let mut harmless = Harmless::default();

    let mut lines = Vec::new();
    for line in text.trim_end().trim_start_matches('\n').lines() {
        let line = line.trim_end();
        let shown = match (&open, Fence::opened_by(line)) {
            (Some(fence), _) => {
                if fence.is_closed_by(line) {
                    open = None;
                }
                line.to_owned()
            }
            (None, Some(fence)) => {
                open = Some(fence);
                line.to_owned()
            }
            (None, None) => harmless.line(line),
        };
        lines.push(format!("> {shown}").trim_end().to_owned());
    }
    lines
}

/// Escapes HTML, images and links line by line; the addresses stay readable. Code spans stay as they are: nothing in
/// them has a meaning.
#[derive(Default)]
struct Harmless {
    /// A back quote of an earlier line of the paragraph may begin a code span that ends in this one, so it is not known
    /// what is code.
    is_unsure: bool,
}

impl Harmless {
    fn line(&mut self, line: &str) -> String {
        if line.trim().is_empty() {
            self.is_unsure = false;
        }
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('`') {
            let (before, from) = rest.split_at(at);
            out.push_str(&escaped(before));
            let is_literal = backslashes(before) % 2 == 1;
            let span = if self.is_unsure || is_literal {
                None
            } else {
                code_span(from)
            };
            self.is_unsure |= span.is_none();
            let shown = span.unwrap_or_else(|| run(from));
            out.push_str(shown);
            rest = from.get(shown.len()..).unwrap_or_default();
        }
        out.push_str(&escaped(rest));
        out
    }
}

/// The backslashes at the end of a text.
fn backslashes(text: &str) -> usize {
    text.len() - text.trim_end_matches('\\').len()
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    // The model has escaped the next character itself.
    let mut is_escaped = false;
    for place in in_context(text) {
        let c = place.c;
        let is_html = c == '<' || matches!(c, '&' | '@') && has_meaning(place);
        if !is_escaped && (is_html || makes_link(place)) {
            out.push('\\');
        }
        out.push(c);
        is_escaped = c == '\\' && !is_escaped;
    }
    out
}

/// The back quotes that a text begins with.
fn run(text: &str) -> &str {
    text.get(..text.len() - text.trim_start_matches('`').len())
        .unwrap_or_default()
}

/// The code span that a text begins with.
fn code_span(text: &str) -> Option<&str> {
    let open = run(text).len();
    let mut at = open;
    loop {
        at += text.get(at..)?.find('`')?;
        let length = run(text.get(at..)?).len();
        at += length;
        if length == open {
            return text.get(..at);
        }
    }
}

/// The fence of a code block at the beginning of a line. An indented fence may belong to a list and end with it, so its
/// content does not count as code.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = line.trim_start_matches(mark);
        (length >= 3 && (mark == '~' || !info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let line = line.trim();
        indent <= 3 && line.chars().all(|c| c == self.mark) && line.chars().count() >= self.length
    }
}

/// The length of the longest run of back quotes.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_stays_a_line_of_text() {
        for (outside, shown) in [
            (
                "disk **full** <b>\n# now",
                "disk \\*\\*full\\*\\* \\<b> # now",
            ),
            ("![x](http://evil)", "\\![x\\](http://evil)"),
            (
                "memory_bytes of a@b [7], _x_ @all #12",
                "memory_bytes of a@b [7], \\_x\\_ \\@all \\#12",
            ),
            ("[[page]] [[[^1]]", "\\[[page]] \\[\\[\\[^1]]"),
            ("- one", "\\- one"),
            ("1. one", "1\\. one"),
            ("a\u{1b}[31mb", "ab"),
        ] {
            assert_eq!(inline(outside), shown);
        }
    }

    #[test]
    fn a_code_span_is_not_ended_by_backticks_in_the_text() {
        assert_eq!(code("a", 9), "`a`");
        assert_eq!(code("a `b`` c", 20), "```a `b`` c```");
        assert_eq!(code("`a`", 9), "`` `a` ``");
        assert_eq!(code("one two", 5), "`one…`");
        assert_eq!(code("\n", 5), "");
    }

    #[test]
    fn text_cannot_leave_its_code_block() {
        let lines = block("before\n````\n# out\n\u{1b}]0;x\u{7}after\n");
        assert_eq!(
            lines,
            ["`````text", "before", "````", "# out", "after", "`````"]
        );
    }

    #[test]
    fn a_quotation_renders_code_and_lists_but_neither_html_nor_images() {
        let analysis = "# Cause\n- *heap* <img src=x> ![p](http://x)\n```sh\nls <dir>\n```\n  ```\n<b>\n  ```\nend";
        let expected = "> # Cause\n> - *heap* \\<img src=x> \\![p\\](http://x)\n> ```sh\n> ls <dir>\n> ```\n>   ```\n\
                        > \\<b>\n>   ```\n> end";
        assert_eq!(quote(analysis).join("\n"), expected);
    }

    #[test]
    fn commands_and_names_can_be_copied_as_they_are_written() {
        let text =
            "`psql -c \"select pg_drop('a*b')\"` then **wait** for max_connections [7][9] of <all>";
        let shown = "`psql -c \"select pg_drop('a*b')\"` then **wait** for max_connections [7\\][9] of \\<all>";
        assert_eq!(written(text), shown);
        assert_eq!(
            quote("x `a\n` [x](u) ` `b`").join("\n"),
            "> x `a\n> ` [x\\](u) ` `b`"
        );
    }

    /// The markup that would lead out of the document, or change it.
    fn dangers(markdown: &str) -> Vec<String> {
        use pulldown_cmark::{Event, Options, Parser, Tag};
        let events = Parser::new_ext(markdown, Options::all()).filter(|event: &Event<'_>| {
            let leads_out = matches!(
                event,
                Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
            );
            leads_out
                || matches!(
                    event,
                    Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_)
                )
        });
        events.map(|event| format!("{event:?}")).collect()
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_link_an_image_or_html(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "`", "``", "[", "]", "(u)", "[x](http://e)", "![p](u)", "<b>", "<http://e>", "\\", "\n", "\n\n", "a",
                    " ", "*", "_", "]:", "[[", "|", "[^1]", ": http://e", "&lt;", "&#91;", "!", "- ", "> ", "    ", "<!--",
                ]),
                0..30,
            )
        ) {
            let text = parts.concat();
            proptest::prop_assert_eq!(dangers(&quote(&text).join("\n")), Vec::<String>::new(), "{}", text);
            proptest::prop_assert_eq!(dangers(&format!("- **Cause:** {}", written(&text))), Vec::<String>::new(), "{}", text);
            proptest::prop_assert_eq!(dangers(&format!("- **Title:** {}", inline(&text))), Vec::<String>::new(), "{}", text);
        }
    }

    #[test]
    fn only_a_fence_of_the_same_length_closes_a_code_block() {
        let lines = quote("````\n```\n<a>\n````\n<b>");
        assert_eq!(lines.join("\n"), "> ````\n> ```\n> <a>\n> ````\n> \\<b>");
    }
}
