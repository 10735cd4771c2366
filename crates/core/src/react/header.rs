//! Recognises headers at the beginning of a line, in the styles that models use.
//!
//! The prompt asks for `Action: …`. Models also write `**Action:** …`, `### Action`, `- Action: …`, `ACTION：…`,
//! `Action 2: …`. `sections.rs` decides by style and position whether a header counts.

use crate::code::is_blank;

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Thought,
    Action,
    ActionInput,
    FinalAnswer,
}

/// The kind of text after a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderKind {
    Section(Section),
    /// A tool result: a model must not write one.
    Observation,
}

/// The style of a header: the less it looks like one, the later it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HeaderStyle {
    /// The header is spelled as the prompt asks for.
    #[default]
    Plain,
    /// Emphasised, a Markdown heading or in capitals: meant as a header.
    Emphasised,
    /// The header has other letters, a number, or a space before its colon: mostly it is a header.
    Variant,
    /// The header is an item of a list, and may be part of a text.
    Listed,
}

/// A header, and the text after it in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) kind: HeaderKind,
    pub(super) style: HeaderStyle,
    pub(super) after: &'a str,
    /// The emphasis that the header opens and does not close: `**Action: host.df**`.
    pub(super) unclosed: &'a str,
}

impl Header<'_> {
    /// Whether the header is part of a code span: `` `Action: a.b` ``.
    pub(super) fn is_code(&self) -> bool {
        self.unclosed.contains('`') && self.after.contains('`')
    }
}

const WORDS: [(&str, HeaderKind); 7] = [
    ("Thought", HeaderKind::Section(Section::Thought)),
    ("Action Input", HeaderKind::Section(Section::ActionInput)),
    ("ActionInput", HeaderKind::Section(Section::ActionInput)),
    ("Action", HeaderKind::Section(Section::Action)),
    ("Final Answer", HeaderKind::Section(Section::FinalAnswer)),
    ("FinalAnswer", HeaderKind::Section(Section::FinalAnswer)),
    ("Observation", HeaderKind::Observation),
];

/// A character of Markdown emphasis.
pub(super) fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`')
}

/// The header that a line begins with.
pub(super) fn header_of(line: &str) -> Option<Header<'_>> {
    let line = line.trim_start_matches(is_blank);
    if !may_begin(line) {
        return None;
    }
    let unlisted = without_bullet(line);
    let unmarked = unlisted.trim_start_matches('#');
    let is_heading = unmarked.len() < unlisted.len();
    let (open, rest) = run(unmarked.trim_start(), is_emphasis);
    let (kind, spelling, rest) = word(rest.trim_start())?;
    let (close, rest) = if open.is_empty() {
        ("", rest)
    } else {
        run(rest, is_emphasis)
    };
    let (colon, is_far) = behind_colon(rest);
    let style = match spelling {
        _ if unlisted.len() < line.len() => HeaderStyle::Listed,
        Spelling::Other => HeaderStyle::Variant,
        Spelling::Exact | Spelling::Capitals if is_far => HeaderStyle::Variant,
        Spelling::Exact if open.is_empty() && !is_heading => HeaderStyle::Plain,
        Spelling::Exact | Spelling::Capitals => HeaderStyle::Emphasised,
    };
    let is_alone = colon.is_none() && rest.trim_end().is_empty();
    let is_decorated = is_heading || !open.is_empty() && open == close;
    let is_bare_thought =
        style == HeaderStyle::Plain && kind == HeaderKind::Section(Section::Thought);
    let (after, unclosed) = match colon {
        Some(after) if close.is_empty() => closed(open, after),
        Some(after) => (after, ""),
        None if is_alone && (is_decorated || is_bare_thought) => (rest, ""),
        None => return None,
    };
    Some(Header {
        kind,
        style,
        after,
        unclosed,
    })
}

/// Fast path: the first byte of most lines begins no header.
fn may_begin(line: &str) -> bool {
    line.len() >= "Action".len()
        && line
            .bytes()
            .next()
            .is_some_and(|c: u8| !c.is_ascii() || begins_header(c) || is_decoration(c))
}

fn begins_header(c: u8) -> bool {
    matches!(c.to_ascii_lowercase(), b't' | b'a' | b'f' | b'o')
}

fn is_decoration(c: u8) -> bool {
    matches!(c, b'#' | b'*' | b'_' | b'`' | b'-' | b'+' | b'0'..=b'9')
}

/// The spelling of a header's words.
#[derive(Clone, Copy)]
enum Spelling {
    Exact,
    Capitals,
    Other,
}

fn word(text: &str) -> Option<(HeaderKind, Spelling, &str)> {
    let first = text.bytes().next()?.to_ascii_uppercase();
    WORDS
        .into_iter()
        .filter(|(word, _)| word.bytes().next() == Some(first))
        .find_map(|(word, kind)| {
            let (head, rest) = text.split_at_checked(word.len())?;
            let joins = |c: u8| {
                if matches!(c, b'_' | b'-') {
                    b' '
                } else {
                    c.to_ascii_lowercase()
                }
            };
            if !head.bytes().map(joins).eq(word.bytes().map(joins)) {
                return None;
            }
            let spelling = match head {
                _ if head == word && !matches!(word, "ActionInput" | "FinalAnswer") => {
                    Spelling::Exact
                }
                _ if !head.contains(|c: char| !c.is_ascii_uppercase() && c != ' ') => {
                    Spelling::Capitals
                }
                _ => Spelling::Other,
            };
            Some((kind, spelling, rest))
        })
}

/// The text after the colon, and whether a space or number is before the colon.
fn behind_colon(text: &str) -> (Option<&str>, bool) {
    let (_, unnumbered) = run(text.trim_start_matches([' ', '\t']), |c| c.is_ascii_digit());
    let near = unnumbered.trim_start_matches([' ', '\t']);
    (near.strip_prefix([':', '：']), near.len() < text.len())
}

/// The text after a header that opens an emphasis, and the emphasis if it does not close at once.
pub(super) fn closed<'a>(open: &'a str, after: &'a str) -> (&'a str, &'a str) {
    match after.strip_prefix(open) {
        Some(after) => (after, ""),
        None => (after, open),
    }
}

fn without_bullet(line: &str) -> &str {
    let (digits, numbered) = run(line, |c| c.is_ascii_digit());
    let rest = if digits.is_empty() {
        line.strip_prefix(['-', '*', '+', '•'])
    } else {
        numbered.strip_prefix(['.', ')'])
    };
    rest.filter(|rest| rest.starts_with([' ', '\t']))
        .map_or(line, str::trim_start)
}

/// Splits a text after the characters that it begins with.
fn run(text: &str, of: impl Fn(char) -> bool) -> (&str, &str) {
    let rest = text.trim_start_matches(of);
    text.split_at_checked(text.len() - rest.len())
        .unwrap_or(("", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_recognised_in_every_style() {
        use HeaderStyle::{Emphasised, Listed, Plain, Variant};
        let table = [
            ("Action: a.b", Plain, " a.b"),
            ("\u{feff}  Action: a.b", Plain, " a.b"),
            ("Action：a.b", Plain, "a.b"),
            ("**Action:** a.b", Emphasised, " a.b"),
            ("**Action**: a.b", Emphasised, " a.b"),
            ("`Action:` a.b", Emphasised, " a.b"),
            ("### Action: a.b", Emphasised, " a.b"),
            ("## **Action**", Emphasised, ""),
            ("_Action_", Emphasised, ""),
            ("ACTION: a.b", Emphasised, " a.b"),
            ("action: a.b", Variant, " a.b"),
            ("Action : a.b", Variant, " a.b"),
            ("Action 2: a.b", Variant, " a.b"),
            ("- Action: a.b", Listed, " a.b"),
            ("3. **Action:** a.b", Listed, " a.b"),
        ];
        for (line, style, after) in table {
            let kind = HeaderKind::Section(Section::Action);
            assert_eq!(
                header_of(line),
                Some(Header {
                    kind,
                    style,
                    after,
                    unclosed: ""
                }),
                "{line}"
            );
        }
        assert_eq!(
            header_of("**Action: a.b**").map(|header| header.unclosed),
            Some("**")
        );
        let words = [
            ("Thought:", HeaderKind::Section(Section::Thought), Plain),
            ("Thought", HeaderKind::Section(Section::Thought), Plain),
            (
                "Action Input:",
                HeaderKind::Section(Section::ActionInput),
                Plain,
            ),
            (
                "ACTION INPUT:",
                HeaderKind::Section(Section::ActionInput),
                Emphasised,
            ),
            (
                "action_input:",
                HeaderKind::Section(Section::ActionInput),
                Variant,
            ),
            (
                "ActionInput:",
                HeaderKind::Section(Section::ActionInput),
                Variant,
            ),
            (
                "**Final Answer**",
                HeaderKind::Section(Section::FinalAnswer),
                Emphasised,
            ),
            ("Observation:", HeaderKind::Observation, Plain),
        ];
        for (line, kind, style) in words {
            assert_eq!(
                header_of(line),
                Some(Header {
                    kind,
                    style,
                    after: "",
                    unclosed: ""
                }),
                "{line}"
            );
        }
    }

    #[test]
    fn a_line_that_only_mentions_a_header_has_none() {
        for line in [
            "",
            "*",
            "###",
            "Action",
            "Action a.b",
            "Actions: two",
            "The Action: this",
            "Thought of it",
            "- Thought",
            "Final Answer",
            "Interaction: x",
            "**Action",
            "Action** a",
            "-Action: a",
            "> Action: a.b",
            "1Action: a",
            "Ação: x",
            "thought",
        ] {
            assert_eq!(header_of(line), None, "{line}");
        }
    }
}
