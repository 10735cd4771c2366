//! The text of a presented result: pieces of the whole, marks and tables; and its cut.

use super::facts::Shown;
use crate::readable::cut::{Parts, ReadBack, parts};

/// A piece of a presented text: one or more lines, without the end of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Lines of the whole.
    Whole { first_line: u32, text: &'a str },
    /// A line of tarsy in the place of these lines.
    Mark {
        first_line: u32,
        last_line: u32,
        text: String,
    },
    /// A line of tarsy beside lines of another form.
    Heading(String),
    /// Lines of another form.
    Lines(String),
}

/// The origin of lines of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    lines: u32,
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Whole { first: u32 },
    Mark { first: u32, last: u32 },
    Heading,
    OtherForm,
}

/// A text and the origin of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) text: String,
    segments: Vec<Segment>,
}

fn line_count(text: &str) -> u32 {
    let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1)
}

impl Layout {
    pub(super) fn of_pieces(pieces: &[Piece<'_>]) -> Self {
        let mut text = String::new();
        let mut segments = Vec::with_capacity(pieces.len());
        for piece in pieces {
            if !segments.is_empty() {
                text.push('\n');
            }
            let (lines, origin) = match piece {
                Piece::Whole { first_line, text } => (*text, Origin::Whole { first: *first_line }),
                Piece::Mark {
                    first_line,
                    last_line,
                    text,
                } => (
                    text.as_str(),
                    Origin::Mark {
                        first: *first_line,
                        last: *last_line,
                    },
                ),
                Piece::Heading(text) => (text.as_str(), Origin::Heading),
                Piece::Lines(text) => (text.as_str(), Origin::OtherForm),
            };
            text.push_str(lines);
            segments.push(Segment {
                lines: line_count(lines),
                origin,
            });
        }
        Self { text, segments }
    }

    pub(super) fn unchanged(whole: &str) -> Self {
        Self {
            text: whole.to_owned(),
            segments: vec![Segment {
                lines: line_count(whole),
                origin: Origin::Whole { first: 1 },
            }],
        }
    }

    /// The lines of tarsy, from 1.
    pub(super) fn own_lines(&self) -> Vec<u32> {
        let mut own = Vec::new();
        let mut line = 1_u32;
        for segment in &self.segments {
            match segment.origin {
                Origin::Mark { .. } | Origin::Heading => own.push(line),
                Origin::Whole { .. } | Origin::OtherForm => {}
            }
            line = line.saturating_add(segment.lines);
        }
        own
    }

    /// The segment of a line of the text, with the number of the line in it, from 0.
    fn segment(&self, line: u32) -> Option<(Segment, u32)> {
        let mut before = 1_u32;
        for segment in &self.segments {
            let behind = before.saturating_add(segment.lines);
            if line < behind {
                return Some((*segment, line.saturating_sub(before)));
            }
            before = behind;
        }
        None
    }

    fn is_own(&self, line: u32) -> bool {
        self.segment(line)
            .is_some_and(|(segment, _)| match segment.origin {
                Origin::Mark { .. } | Origin::Heading => true,
                Origin::Whole { .. } | Origin::OtherForm => false,
            })
    }

    /// The first line of the whole that this line shows or hides; `None` for another form.
    fn whole_line(&self, line: u32, end: End) -> Option<u32> {
        let (segment, offset) = self.segment(line)?;
        match (segment.origin, end) {
            (Origin::Whole { first }, End::First | End::Last) => Some(first.saturating_add(offset)),
            (Origin::Mark { first, .. }, End::First) => Some(first),
            (Origin::Mark { last, .. }, End::Last) => Some(last),
            (Origin::Heading | Origin::OtherForm, End::First | End::Last) => None,
        }
    }

    /// The text cut to a limit, with the lines of tarsy in it; `None` when it fits.
    pub(super) fn cut(&self, max_tokens: u32, read_back: ReadBack) -> Option<CutText> {
        let Parts { head, tail } = parts(&self.text, max_tokens)?;
        let head = self.without_part_of_mark_at_end(head);
        let tail = self.without_part_of_mark_at_start(tail);
        let before_tail = self
            .text
            .get(..self.text.len() - tail.len())
            .unwrap_or_default();
        let head_lines = line_count(head);
        let is_whole_line = self
            .text
            .get(head.len()..)
            .is_some_and(|rest| rest.starts_with('\n'));
        let first = if head.is_empty() {
            1
        } else if is_whole_line {
            head_lines + 1
        } else {
            head_lines
        };
        let tail_line = line_count(before_tail);
        let last = if before_tail.ends_with('\n') {
            tail_line - 1
        } else {
            tail_line
        };
        let mark = self.cut_mark(first, last.max(first), read_back);
        let text = format!("{head}\n{mark}\n{tail}");
        let mark_line = head_lines + 1;
        let own = self.own_lines();
        let in_head = own.iter().copied().filter(|line| *line < first);
        let in_tail = own.iter().copied().filter(|line| *line > last);
        let in_tail = in_tail.map(|line| line - tail_line + mark_line + 1);
        let own_lines = in_head.chain([mark_line]).chain(in_tail).collect();
        Some(CutText { text, own_lines })
    }

    fn without_part_of_mark_at_end<'t>(&self, head: &'t str) -> &'t str {
        let ends_line = self
            .text
            .get(head.len()..)
            .is_some_and(|rest| rest.starts_with('\n'));
        if ends_line || !self.is_own(line_count(head)) {
            return head;
        }
        head.rfind('\n')
            .and_then(|at| head.get(..at))
            .unwrap_or_default()
    }

    fn without_part_of_mark_at_start<'t>(&self, tail: &'t str) -> &'t str {
        let before = self
            .text
            .get(..self.text.len() - tail.len())
            .unwrap_or_default();
        if before.ends_with('\n') || !self.is_own(line_count(before)) {
            return tail;
        }
        tail.find('\n')
            .and_then(|at| tail.get(at + 1..))
            .unwrap_or_default()
    }

    fn cut_mark(&self, first: u32, last: u32, read_back: ReadBack) -> String {
        let first_whole = self.whole_line(first, End::First);
        let last_whole = self.whole_line(last, End::Last);
        let Some((from, to)) = first_whole.zip(last_whole) else {
            let count = last - first + 1;
            let total = line_count(&self.text);
            let shows = match read_back {
                ReadBack::With(tool) => format!("{tool} shows the whole result"),
                ReadBack::No => "the whole result is stored".to_owned(),
            };
            return format!("[… {count} of these {total} lines left out here; {shows} …]");
        };
        let lines = if from == to {
            format!("line {from}")
        } else {
            format!("lines {from} to {to}")
        };
        let shows = match read_back {
            ReadBack::With(tool) => format!("{tool} shows them"),
            ReadBack::No => "the whole result is stored".to_owned(),
        };
        format!("[… {lines} left out here; {shows} …]")
    }
}

#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

/// The part of a text that is left of it.
pub(super) struct CutText {
    pub(super) text: String,
    /// The lines of tarsy in it, from 1.
    pub(super) own_lines: Vec<u32>,
}

/// A layout and what it did.
pub(super) struct Formed {
    pub(super) layout: Layout,
    pub(super) shown: Vec<Shown>,
}
