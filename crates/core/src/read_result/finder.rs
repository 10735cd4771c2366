//! Finds a text or a pattern in the lines of a result.

use std::ops::{ControlFlow, Range};

use regex::{Regex, RegexBuilder};

use super::WholeResult;
use crate::readable::text::beginning;

/// The longest pattern, in characters.
const MAX_PATTERN_CHARS: usize = 200;
/// The size of a compiled pattern, in bytes.
const MAX_PROGRAM_BYTES: usize = 1 << 20;
/// A pattern is matched against at most so many bytes of a line at once, so that no pattern runs for long between two
/// looks at the clock.
pub(super) const PART_BYTES: usize = 16 * 1024;
/// A part of a line ends at a separator, if one is among its last bytes.
const SEPARATOR_BYTES: usize = 4 * 1024;

/// A text, a pattern, or nothing but lines, to be looked for.
#[derive(Clone, Debug)]
pub enum Finder {
    /// Without regard to upper and lower case of ASCII letters.
    Text { given: String, lower: String },
    /// A regular expression that takes linear time.
    Pattern(Regex),
    /// Every line as a whole.
    Line,
}

/// A place in a line.
pub(super) struct Found<'a> {
    /// The bytes of the line.
    pub(super) at: Range<usize>,
    /// The text of group 1; for [`Finder::Line`] the line.
    pub(super) group: Option<&'a str>,
}

/// A place in a result.
pub(super) struct Hit<'a> {
    /// The number of its line, from 1.
    pub(super) number: usize,
    pub(super) line: &'a str,
    /// The offset of the line.
    pub(super) begins_at: usize,
    pub(super) found: Found<'a>,
}

/// The lines in which something is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The first one, from 1.
    pub from: usize,
    /// At most so many.
    pub count: usize,
}

impl Finder {
    pub(super) fn text(given: &str) -> Self {
        Self::Text {
            given: given.to_owned(),
            lower: given.to_ascii_lowercase(),
        }
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// When it is none, or too long; the text tells the model what is wrong.
    pub(super) fn pattern(pattern: &str) -> Result<Self, String> {
        if pattern.chars().count() > MAX_PATTERN_CHARS {
            return Err(format!(
                "pattern has more than {MAX_PATTERN_CHARS} characters"
            ));
        }
        RegexBuilder::new(pattern)
            .size_limit(MAX_PROGRAM_BYTES)
            .build()
            .map(Self::Pattern)
            .map_err(|error| {
                format!(
                    "pattern is no regular expression of the kind that takes linear time (no look-around, no \
                     back-references): {error}"
                )
            })
    }

    /// The searched text or pattern, quoted.
    pub(super) fn quoted(&self) -> String {
        match self {
            Self::Text { given, .. } => format!("{:?}", beginning(given, 100)),
            Self::Pattern(pattern) => format!("the pattern {:?}", pattern.as_str()),
            Self::Line => "a line".to_owned(),
        }
    }

    /// Whether the pattern has a group.
    pub(super) fn has_group(&self) -> bool {
        match self {
            Self::Text { .. } => false,
            Self::Pattern(pattern) => pattern.captures_len() > 1,
            Self::Line => true,
        }
    }

    pub(super) fn is_in(&self, line: &str) -> bool {
        match self {
            Self::Text { lower, .. } => line.to_ascii_lowercase().contains(lower),
            Self::Pattern(pattern) => parts(line).any(|part| pattern.is_match(part.text)),
            Self::Line => true,
        }
    }

    /// Shows each place of a line to `visit`, in order. Places do not overlap.
    fn each<'a>(
        &self,
        line: &'a str,
        has_time: &dyn Fn() -> bool,
        visit: &mut dyn FnMut(Found<'a>) -> ControlFlow<Stop>,
    ) -> ControlFlow<Stop> {
        match self {
            Self::Text { lower, .. } => {
                // The lengths are the same, so the offsets are, too.
                for (at, text) in line.to_ascii_lowercase().match_indices(lower) {
                    visit(Found {
                        at: at..at + text.len(),
                        group: None,
                    })?;
                }
            }
            Self::Pattern(pattern) => {
                for part in parts(line) {
                    if !has_time() {
                        return ControlFlow::Break(Stop::Time);
                    }
                    each_match(pattern, &part, visit)?;
                }
            }
            Self::Line => visit(Found {
                at: 0..line.len(),
                group: Some(line),
            })?,
        }
        ControlFlow::Continue(())
    }
}

/// The reason why not all lines were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The reader has enough.
    Enough,
    /// The time of the call is used up.
    Time,
}

/// The line at which a reading stopped because its time was used up.
pub(super) type Unread = Option<usize>;

/// Shows every place in these lines to `visit`, in order.
pub(super) fn each_hit<'a>(
    source: &WholeResult<'a>,
    finder: &Finder,
    lines: Lines,
    visit: &mut dyn FnMut(Hit<'a>) -> ControlFlow<Stop>,
) -> Unread {
    let mut begins_at = 0;
    for (number, whole) in (1..).zip(source.text.split_inclusive('\n')) {
        if number >= lines.from.saturating_add(lines.count) {
            break;
        }
        let line = whole.trim_end_matches(['\n', '\r']);
        if number >= lines.from {
            if !(source.has_time)() {
                return Some(number);
            }
            let stopped = finder.each(line, source.has_time, &mut |found| {
                visit(Hit {
                    number,
                    line,
                    begins_at,
                    found,
                })
            });
            match stopped {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(Stop::Enough) => return None,
                ControlFlow::Break(Stop::Time) => return Some(number),
            }
        }
        begins_at += whole.len();
    }
    None
}

/// A part of a line, and its offset in it.
struct Part<'a> {
    text: &'a str,
    begins_at: usize,
}

/// A line of more than [`PART_BYTES`] in parts that end at a separator where there is one.
fn parts(line: &str) -> impl Iterator<Item = Part<'_>> {
    let mut begins_at = 0;
    let mut is_first = true;
    std::iter::from_fn(move || {
        let rest = line.get(begins_at..).unwrap_or_default();
        if rest.is_empty() && !is_first {
            return None;
        }
        is_first = false;
        let text = part(rest);
        let part = Part { text, begins_at };
        begins_at += text.len();
        Some(part)
    })
}

fn part(rest: &str) -> &str {
    let longest = beginning(rest, PART_BYTES);
    if longest.len() == rest.len() {
        return rest;
    }
    let least = longest.floor_char_boundary(PART_BYTES - SEPARATOR_BYTES);
    let end = longest
        .get(least..)
        .and_then(|tail| tail.rfind([',', ' ', ';', '\t', '}']))
        .map_or(longest.len(), |at| least + at + 1);
    beginning(longest, end)
}

fn each_match<'a>(
    pattern: &Regex,
    part: &Part<'a>,
    visit: &mut dyn FnMut(Found<'a>) -> ControlFlow<Stop>,
) -> ControlFlow<Stop> {
    let within = |range: Range<usize>| range.start + part.begins_at..range.end + part.begins_at;
    // An empty match says something about a line only where nothing else matches.
    let counts =
        |range: &Range<usize>| !range.is_empty() || (range.start == 0 && part.begins_at == 0);
    if pattern.captures_len() == 1 {
        for found in pattern
            .find_iter(part.text)
            .filter(|found| counts(&found.range()))
        {
            visit(Found {
                at: within(found.range()),
                group: None,
            })?;
        }
        return ControlFlow::Continue(());
    }
    for captures in pattern.captures_iter(part.text) {
        let Some(whole) = captures.get(0).filter(|whole| counts(&whole.range())) else {
            continue;
        };
        visit(Found {
            at: within(whole.range()),
            group: captures.get(1).map(|group| group.as_str()),
        })?;
    }
    ControlFlow::Continue(())
}
