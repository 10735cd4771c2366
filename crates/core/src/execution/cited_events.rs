//! Citations: the event numbers in brackets that an analysis gives as its sources, `[7]` or `[7, 9]`.
//!
//! A number without a result is no evidence. It gets a question mark, `[42?]`, and is no longer a citation. Code,
//! links, an index as in `items[0]` and a year look like citations and stay unchanged.
//! `docs/decisions/0021-citations.md` has the rules.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use crate::code::{CodeSpans, FenceMark, ends, fence};

/// Follows the number of an event that is no result.
const UNKNOWN_MARK: char = '?';
/// Numbers that are years, if the events of the session end before them.
const YEARS: Range<u64> = 1900..2100;

/// The event numbers that a text cites, in order, without duplicates.
pub fn cited(text: &str) -> Vec<u32> {
    let mut seen = HashSet::new();
    let numbers = brackets(text).into_iter().flat_map(|bracket| bracket.items);
    let cited = numbers
        .filter(|item| !item.is_marked)
        .filter_map(|item| u32::try_from(item.number?).ok());
    cited.filter(|number| seen.insert(*number)).collect()
}

/// A citation: brackets with the numbers of events, and perhaps names of sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// The bytes of the brackets with what is inside.
    pub range: Range<usize>,
    pub sources: Vec<CitedSource>,
}

/// A source of a citation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CitedSource {
    Event(u32),
    /// A name, or a number that is no event: the bytes of it.
    Other(Range<usize>),
}

/// The citations of a text with their places, in order.
pub fn citations(text: &str) -> Vec<Citation> {
    let brackets = brackets(text)
        .into_iter()
        .filter(|bracket| !bracket.is_attached);
    brackets
        .map(|Bracket { range, items, .. }| Citation {
            range,
            sources: items
                .iter()
                .map(|item: &CitedItem| {
                    match item.number.and_then(|number| u32::try_from(number).ok()) {
                        Some(number) if !item.is_marked => CitedSource::Event(number),
                        Some(_) | None => CitedSource::Other(item.start..item.end),
                    }
                })
                .collect(),
        })
        .collect()
}

/// The analysis with a question mark after each cited number that is not known.
pub(super) fn marked(analysis: &str, known: &BTreeSet<u64>) -> String {
    let mut out = String::with_capacity(analysis.len() + 16);
    let mut done = 0;
    for item in brackets(analysis)
        .iter()
        .flat_map(|bracket| bracket.unknown(known))
    {
        if !item.is_marked {
            out.push_str(analysis.get(done..item.end).unwrap_or_default());
            out.push(UNKNOWN_MARK);
            done = item.end;
        }
    }
    out.push_str(analysis.get(done..).unwrap_or_default());
    out
}

/// The cited numbers that are not known, in order, without duplicates.
pub(crate) fn unknown(analysis: &str, known: &BTreeSet<u64>) -> Vec<u64> {
    let mut seen = HashSet::new();
    let all = brackets(analysis);
    let numbers = all
        .iter()
        .flat_map(|bracket| bracket.unknown(known))
        .filter_map(|item| item.number);
    numbers.filter(|number| seen.insert(*number)).collect()
}

/// Brackets that contain numbers or names of sources.
#[derive(Debug)]
struct Bracket {
    /// The bytes from one bracket to the other, both included.
    range: Range<usize>,
    items: Vec<CitedItem>,
    /// Directly after a word, like an index.
    is_attached: bool,
}

/// A source within brackets.
#[derive(Clone, Copy, Debug)]
struct CitedItem {
    /// `None` for a name.
    number: Option<u64>,
    /// The number already has the question mark.
    is_marked: bool,
    /// Offset of the first byte of the source.
    start: usize,
    /// Offset of the byte after the number.
    end: usize,
}

impl Bracket {
    fn unknown(&self, known: &BTreeSet<u64>) -> impl Iterator<Item = CitedItem> {
        // In an investigation with fewer events, `[2026]` is a year and cites nothing.
        let may_be_years = known.last().is_none_or(|last| *last < YEARS.start);
        let items: &[CitedItem] = if self.is_attached { &[] } else { &self.items };
        items
            .iter()
            .filter(move |item: &&CitedItem| {
                item.number.is_some_and(|number| {
                    let is_year = may_be_years && YEARS.contains(&number);
                    !known.contains(&number) && !is_year
                })
            })
            .copied()
    }
}

/// All brackets with sources in a text, in order.
fn brackets(text: &str) -> Vec<Bracket> {
    let mut found = Vec::new();
    let mut code_blocks = CodeBlocks::new(text);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !code_blocks.contain(at) {
            line_brackets(text, at..at + line.len(), &mut found);
        }
        at += line.len();
    }
    found
}

fn line_brackets(text: &str, line: Range<usize>, found: &mut Vec<Bracket>) {
    let whole = text.get(line.clone()).unwrap_or_default();
    let mut code = None;
    // The end of the last brackets, and whether they contained sources.
    let mut last = (0, false);
    let mut rest = 0;
    while let Some(open) = whole
        .get(rest..)
        .and_then(|rest| rest.find('['))
        .map(|at| rest + at)
    {
        let inside = whole.get(open + 1..).unwrap_or_default();
        rest = open + 1;
        let Some(length) = inside
            .find(['[', ']'])
            .filter(|at| inside.get(*at..).is_some_and(|end| end.starts_with(']')))
        else {
            continue;
        };
        let close = open + 1 + length;
        let before = whole.get(..open).unwrap_or_default();
        let behind = whole.get(close + 1..).unwrap_or_default();

        let follows = last.0 == open && before.ends_with(']');
        let is_link =
            behind.starts_with('(') || behind.starts_with(':') && before.trim().is_empty();
        let is_other = is_link
            || follows && !last.1
            || before.ends_with(['\\', '/', '=', '$', '@', '#', '&', '%']);
        let items = if is_other {
            None
        } else {
            items(
                inside.get(..length).unwrap_or_default(),
                line.start + open + 1,
            )
        };
        let is_code = items.is_some()
            && code
                .get_or_insert_with(|| CodeSpans::new(whole))
                .contain(open, close);
        last = (close + 1, items.is_some());
        rest = close + 1;
        if let Some(items) = items
            && !is_code
        {
            let is_attached = before.ends_with(|c: char| {
                c.is_alphanumeric() || matches!(c, '_' | ')' | '}' | '"' | '\'')
            });
            let is_attached =
                is_attached || follows && found.last().is_some_and(|bracket| bracket.is_attached);
            let range = line.start + open..line.start + close + 1;
            found.push(Bracket {
                range,
                items,
                is_attached,
            });
        }
    }
}

/// The items within brackets, if all of them are sources and at least one is a number. `start` is the offset of
/// `inside`.
fn items(inside: &str, start: usize) -> Option<Vec<CitedItem>> {
    let mut items = Vec::new();
    let mut at = start;
    for part in inside.split_inclusive([',', ';']) {
        let bare = part.trim_end_matches([',', ';']);
        let name = bare.trim();
        let lower = name.to_ascii_lowercase();
        let bare_number = ["events", "event", "#"]
            .iter()
            .find_map(|word| lower.strip_prefix(word))
            .unwrap_or(&lower)
            .trim_start();
        let (number, is_marked) = match bare_number.strip_suffix(UNKNOWN_MARK) {
            Some(number) => (number, true),
            None => (bare_number, false),
        };
        let is_number =
            (1..=18).contains(&number.len()) && number.bytes().all(|c| c.is_ascii_digit());
        let is_name = matches!(lower.as_str(), "alert" | "report") || is_tool(name);
        if !is_number && !is_name {
            return None;
        }
        let end = at + bare.trim_end().len();
        let start = at + bare.len() - bare.trim_start().len();
        items.push(CitedItem {
            number: if is_number { number.parse().ok() } else { None },
            is_marked,
            start,
            end,
        });
        at += part.len();
    }
    items
        .iter()
        .any(|item| item.number.is_some())
        .then_some(items)
}

/// Whether a word has the form of a tool's name, `server.tool`.
fn is_tool(name: &str) -> bool {
    name.contains('.')
        && name.split('.').all(|word: &str| {
            word.starts_with(|c: char| c.is_alphabetic()) && !word.contains(char::is_whitespace)
        })
}

/// The fenced code blocks of a text. A fence without an end begins no block.
struct CodeBlocks {
    blocks: Vec<Range<usize>>,
    next: usize,
}

impl CodeBlocks {
    fn new(text: &str) -> Self {
        let mut lines: Vec<(usize, &str, FenceMark)> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            lines.extend(fence(line).map(|mark| (at, line, mark)));
            at += line.len();
        }
        let mut blocks = Vec::new();
        let mut from = 0;
        let mut endless = [usize::MAX; 2];

        while let Some((start, _, mark)) = lines.get(from).copied() {
            from += 1;
            let Some(endless) = endless
                .get_mut(usize::from(mark.sign == '~'))
                .filter(|least| mark.length < **least)
            else {
                continue;
            };
            match lines.get(from..).unwrap_or_default().iter().position(
                |(_, line, inner): &(usize, &str, FenceMark)| {
                    inner.sign == mark.sign && ends(line, mark)
                },
            ) {
                Some(behind) => {
                    from += behind + 1;
                    let end = lines
                        .get(from - 1)
                        .map_or(start, |(at, line, _)| at + line.len());
                    blocks.push(start..end);
                }
                None => *endless = mark.length,
            }
        }
        Self { blocks, next: 0 }
    }

    /// Whether a line that begins here is part of a code block. Lines are asked for in order.
    fn contain(&mut self, at: usize) -> bool {
        while self
            .blocks
            .get(self.next)
            .is_some_and(|block| block.end <= at)
        {
            self.next += 1;
        }
        self.blocks
            .get(self.next)
            .is_some_and(|block| block.start <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_numbers_in_brackets() {
        let text =
            "Evidence: full [7], [9, 12]; slow [7] [alert] [k8s.get] [3](https://x) [4, x] [";
        assert_eq!(cited(text), [7, 9, 12]);
    }

    #[test]
    fn numbers_without_a_result_are_marked_and_look_alikes_are_not() {
        let known = BTreeSet::from([5, 7, 12]);
        for (analysis, shown, listed) in [
            ("full [7], slow [42]", "full [7], slow [42?]", vec![42]),
            (
                "[7, 42, 99] and again [42]",
                "[7, 42?, 99?] and again [42?]",
                vec![42, 99],
            ),
            (
                "[event 42] [Events 5, 43] [#44] [ 45 ]",
                "[event 42?] [Events 5, 43?] [#44?] [ 45? ]",
                vec![42, 43, 44, 45],
            ),
            (
                "[alert, 42] [k8s.get; 43]",
                "[alert, 42?] [k8s.get; 43?]",
                vec![42, 43],
            ),
            (
                "**[42]** ([43]) \u{201e}[44]\u{201c}",
                "**[42?]** ([43?]) \u{201e}[44?]\u{201c}",
                vec![42, 43, 44],
            ),
            ("x [7][42]", "x [7][42?]", vec![42]),
            (
                "was [0] and [99999999999]",
                "was [0?] and [99999999999?]",
                vec![0, 99_999_999_999],
            ),
            (
                "a model's own mark [42?]",
                "a model's own mark [42?]",
                vec![42],
            ),
            ("a doubt of its own [7?]", "a doubt of its own [7?]", vec![]),
            (
                "> quoted [42]\n    - deep [43]",
                "> quoted [42?]\n    - deep [43?]",
                vec![42, 43],
            ),
            ("open\n```\nand [42]", "open\n```\nand [42?]", vec![42]),
        ] {
            assert_eq!(
                (marked(analysis, &known).as_str(), unknown(analysis, &known)),
                (shown, listed.clone()),
                "{analysis}"
            );
            assert_eq!(unknown(shown, &known), listed, "{shown}");
            assert_eq!(marked(shown, &known), shown, "marked once");
            assert!(
                cited(shown)
                    .iter()
                    .all(|number| known.contains(&u64::from(*number))),
                "{shown}"
            );
        }
        for text in [
            "items[0] and a[1][2], f(x)[3], \"k\"[4]",
            "since [2026], in [1999]",
            "[42](https://x) [text][42] [a b][42]",
            "[42]: https://x",
            "[^1] [x] [ ] [12:30] [2026-11-22] [42 %] [4, x] [1-5] [] [42",
            "`a [42]` and ``b ` [43]``",
            "```json\n[42]\n```\n~~~\n[43]\n~~~\n",
            "\\[42\\] $[42] path/[42]",
            "[1234567890123456789]",
        ] {
            assert_eq!(
                (marked(text, &known).as_str(), unknown(text, &known)),
                (text, vec![]),
                "{text}"
            );
        }
        assert_eq!(marked("[2026]", &BTreeSet::from([1950])), "[2026?]");
    }

    #[test]
    fn a_hostile_analysis_is_read_in_linear_time() {
        for part in [
            "[",
            "[1",
            "[1]",
            "]",
            "`",
            "```\n",
            "~~~~\n[1]\n",
            "[1, ",
            "a[0]",
            "` [1] ",
        ] {
            // The fastest of several tries: other programs only make a try slower. Quadratic work would take 64 times.
            let least = |length: usize| {
                let text = part.repeat(length / part.len());
                let tries = (0..5).map(|_| {
                    let begun = std::time::Instant::now();
                    marked(&text, &BTreeSet::new());
                    begun.elapsed()
                });
                tries.min().unwrap_or_default()
            };
            let short = least(25_000);
            let long = least(200_000);

            assert!(
                long < 32 * short + std::time::Duration::from_millis(50),
                "{part} {short:?} {long:?}"
            );
        }
    }
}
