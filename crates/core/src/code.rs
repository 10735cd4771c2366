//! Code in Markdown: fences, and spans between backticks.

use std::collections::HashMap;

/// White space and characters without a width, which models copy from web pages.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200d}' | '\u{2060}')
}

/// The offset of a part of `text`, which is a slice of it.
pub(super) fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

/// Minimum length of a fence.
pub(super) const MIN_FENCE_LENGTH: usize = 3;

/// The characters that begin or end a block of code: three or more backticks or tildes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceMark {
    pub(super) sign: char,
    pub(super) length: usize,
}

/// The fence that a line opens.
pub(super) fn fence(line: &str) -> Option<FenceMark> {
    let line = line.trim_start_matches(is_blank);
    let sign = line
        .chars()
        .next()
        .filter(|sign| matches!(sign, '`' | '~'))?;
    let words = line.trim_start_matches(sign);
    let length = line.len() - words.len();
    // Backticks that are closed in the same line are a code span.
    (length >= MIN_FENCE_LENGTH && (sign == '~' || !words.contains('`')))
        .then_some(FenceMark { sign, length })
}

/// A fence that none of the texts can close: three backticks, or more than they have in a row.
pub(super) fn fence_around(texts: &[&str]) -> String {
    let runs = texts
        .iter()
        .flat_map(|text| text.split(|c| c != '`'))
        .map(str::len);
    "`".repeat(runs.max().unwrap_or_default().max(MIN_FENCE_LENGTH - 1) + 1)
}

/// Whether a line closes a fence.
pub(super) fn ends(line: &str, mark: FenceMark) -> bool {
    let line = line.trim_matches(is_blank);
    line.len() >= mark.length && line.trim_start_matches(mark.sign).is_empty()
}

/// The code spans of a line, as `` `Action: a.b` ``. Queries have to go from left to right.
#[derive(Debug)]
pub(super) struct CodeSpans {
    /// The code spans, each from its first backtick to its last one, in order.
    spans: Vec<(usize, usize)>,
    next: usize,
}

impl CodeSpans {
    pub(super) fn new(line: &str) -> Self {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (at, _) in line.match_indices('`') {
            match runs.last_mut() {
                Some((start, length)) if *start + *length == at => *length += 1,
                Some(_) | None => runs.push((at, 1)),
            }
        }
        let last: HashMap<usize, usize> = runs.iter().map(|(at, length)| (*length, *at)).collect();
        let mut spans = Vec::new();
        let mut open = None;

        for (at, length) in runs {
            match open {
                None if last.get(&length).is_some_and(|last| *last > at) => {
                    open = Some((at, length))
                }
                Some((start, wanted)) if wanted == length => {
                    spans.push((start, at));
                    open = None;
                }
                None | Some(_) => {}
            }
        }
        Self { spans, next: 0 }
    }

    /// Whether `from..to` is inside of a code span that continues after it.
    pub(super) fn contain(&mut self, from: usize, to: usize) -> bool {
        while self
            .spans
            .get(self.next)
            .is_some_and(|(_, end)| *end <= from)
        {
            self.next += 1;
        }
        self.spans
            .get(self.next)
            .is_some_and(|(start, end)| *start < from && *end > to)
    }
}
