//! Marked quotations in an answer: Markdown fences, block quotes (`>`), HTML comments and indented code.
//!
//! A header in a quotation is text. Models quote alerts and results, which are untrusted: the model did not request a
//! call in them. This file works on lines and Markdown; `sections.rs` finds the sections. It reads each line a constant
//! number of times. `docs/decisions/0010-text-format-react.md` has the rules.

use super::header::{HeaderKind, header_of};
use crate::code::{FenceMark, MIN_FENCE_LENGTH, ends, fence, is_blank, offset};

/// Additional columns that make a line indented code.
const CODE_INDENT: usize = 4;

/// A quotation that continues in the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    /// Ends with a line that has only the characters of the fence.
    Fence(FenceMark),
    /// Begins with this number of backticks after words, and ends with as many, at any position.
    Code(usize),
    /// The text from `<!--` to `-->`.
    Comment,
}

/// The quotation or text that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContext {
    Prose,
    ActionInput,
}

/// The quotations of an answer, line by line.
#[derive(Debug)]
pub(super) struct Quotations<'a> {
    text: &'a str,
    span: Option<Span>,
    /// Smallest indentation of the answer's own lines, in columns.
    base: usize,
    /// Offsets at which a fence can end; computed at the first use.
    ends: Option<Vec<(usize, FenceMark)>>,
    /// Fences of this length or longer, of backticks and of tildes, have no end.
    endless: [usize; 2],
}

impl<'a> Quotations<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            span: None,
            base: usize::MAX,
            ends: None,
            endless: [usize::MAX; 2],
        }
    }

    /// Whether a line that is not blank is quoted as a whole.
    pub(super) fn hides(&mut self, line: &'a str, context: LineContext) -> bool {
        if let Some(span) = self.span {
            self.span = match span {
                Span::Fence(mark) => (!ends(line, mark)).then_some(span),
                Span::Code(_) | Span::Comment => follow(line, Some(span)),
            };
            return true;
        }
        if line.trim_start_matches(is_blank).starts_with('>') {
            return true;
        }
        let columns = columns(line);
        self.base = self.base.min(columns);
        let is_deep = self.is_deep(line);
        if is_deep {
            self.track(line, line, context);
        }
        is_deep
    }

    /// Whether a line is indented like code.
    pub(super) fn is_deep(&self, line: &str) -> bool {
        columns(line) >= self.base.saturating_add(CODE_INDENT)
    }

    /// Records the quotation that an unquoted line begins; `after` is the text after its last header, or the line.
    ///
    /// A fence around an input hides nothing unless it ends, so a model may omit its end. Any other fence hides the
    /// text after it even without an end, because an answer may be cut off within a quotation.
    pub(super) fn track(&mut self, line: &'a str, after: &'a str, context: LineContext) {
        let mark = fence(line).or_else(|| fence(after));
        self.span = match mark {
            Some(mark) if context == LineContext::Prose || self.has_end(line, mark) => {
                Some(Span::Fence(mark))
            }
            Some(_) => None,
            None if context == LineContext::ActionInput => None,
            None => follow(line, None),
        };
    }

    fn has_end(&mut self, line: &str, mark: FenceMark) -> bool {
        let Some(endless) = self.endless.get_mut(usize::from(mark.sign == '~')) else {
            return false;
        };
        if mark.length >= *endless {
            return false;
        }
        let text = self.text;
        let all = self.ends.get_or_insert_with(|| {
            let lines = text.lines().filter_map(|line| Some((line, fence(line)?)));
            lines
                .filter(|(line, mark)| ends(line, *mark))
                .map(|(line, mark)| (offset(text, line), mark))
                .collect()
        });
        let at = offset(text, line);
        let behind = all
            .get(all.partition_point(|(end, _)| *end <= at)..)
            .unwrap_or_default();
        let has_end = behind
            .iter()
            .any(|(_, end)| end.sign == mark.sign && end.length >= mark.length);
        if !has_end {
            *endless = mark.length;
        }
        has_end
    }
}

/// The quotation that is open at the end of a line.
fn follow(text: &str, span: Option<Span>) -> Option<Span> {
    let mut rest = text;
    let mut span = span;

    loop {
        let sign = if span == Some(Span::Comment) {
            '-'
        } else {
            '`'
        };
        let Some(at) = rest.find(|c: char| c == sign || c == '<' && span.is_none()) else {
            return span;
        };
        let found = rest.get(at..).unwrap_or_default();
        let behind = found.trim_start_matches('`');
        let ticks = found.len() - behind.len();
        (span, rest) = match span {
            None if found.starts_with("<!--") => {
                (Some(Span::Comment), found.get(4..).unwrap_or_default())
            }
            None if ticks >= MIN_FENCE_LENGTH => (Some(Span::Code(ticks)), behind),
            Some(Span::Code(length)) if ticks >= length => (None, behind),
            Some(Span::Comment) if found.starts_with("-->") => {
                (None, found.get(3..).unwrap_or_default())
            }
            None | Some(_) if ticks > 0 => (span, behind),
            None | Some(_) => (span, found.get(1..).unwrap_or_default()),
        };
    }
}

/// The indentation of a line in columns; a tab stop is every four columns.
fn columns(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| is_blank(*c));
    blanks.fold(0, |columns, c| match c {
        '\t' => (columns / 4 + 1) * 4,
        c if c.is_whitespace() => columns + 1,
        _ => columns,
    })
}

/// The answer without the fence around all of it, if it has one: no text is before or after the fence, and its first
/// line is a header. The fence of an answer that was cut off has no end.
pub(super) fn unfenced(text: &str) -> &str {
    let begun = text.trim_start_matches(is_blank);
    let Some((mark, (_, inside))) =
        fence(begun.lines().next().unwrap_or_default()).zip(begun.split_once('\n'))
    else {
        return text;
    };
    let first = inside
        .lines()
        .find(|line| !line.trim_matches(is_blank).is_empty())
        .and_then(header_of);
    if !first.is_some_and(|header| matches!(header.kind, HeaderKind::Section(_))) {
        return text;
    }
    let mut depth = 0_usize;
    let mut rest = inside;

    while !rest.is_empty() {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let is_fence =
            fence(line).is_some_and(|inner| inner.sign == mark.sign && inner.length >= mark.length);
        match (is_fence, ends(line, mark)) {
            (true, false) => depth += 1,
            (true, true) if depth == 0 => {
                let is_last = below.trim_matches(is_blank).is_empty();
                return if is_last {
                    inside.get(..inside.len() - rest.len()).unwrap_or(text)
                } else {
                    text
                };
            }
            (true, true) => depth -= 1,
            (false, _) => {}
        }
        rest = below;
    }
    inside
}
