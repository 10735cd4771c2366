//! Repairs invalid JSON from templates of shells and monitoring systems: raw line breaks and quotes in texts, wrong
//! escapes, extra or missing commas, words and macros without quotes, and a missing end.
//!
//! One pass over the text without recursion; each byte is looked at a bounded number of times. A valid object or list
//! keeps its meaning. What it writes is parsed by `serde_json` again, which has the last word.

mod cursor;
mod strings;
mod words;

use std::collections::BTreeSet;

use self::cursor::Cursor;
use crate::sources::Repair;

/// A deeper text is not repaired; `serde_json` would refuse it as well.
const MAX_DEPTH: usize = 120;

/// A text that may be JSON now.
#[derive(Debug)]
pub(super) struct Repaired {
    pub(super) json: String,
    pub(super) repairs: BTreeSet<Repair>,
}

/// Repairs a text that begins like an object or a list; `None` if it is not meant as one.
pub(super) fn repair(text: &str) -> Option<Repaired> {
    let mut repairer = Repairer::new(text);
    repairer.cursor.skip_gaps();
    if !matches!(repairer.cursor.peek(), Some(b'{' | b'[')) {
        return None;
    }
    repairer.value(StringRole::Item)?;
    while let Some(frame) = repairer.frames.last().copied() {
        repairer.next(frame)?;
    }
    repairer.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Object,
    List,
}

/// An object or a list that is open.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    members: usize,
}

/// The role of a quoted string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringRole {
    Key,
    /// The value of a key.
    Value,
    /// A value in a list.
    Item,
}

#[derive(Debug)]
struct Repairer<'t> {
    cursor: Cursor<'t>,
    out: String,
    frames: Vec<Frame>,
    repairs: BTreeSet<Repair>,
    /// Keys with a colon, and those without one.
    pairs: usize,
    lonely: usize,
    /// Words without quotes that are neither numbers nor words of JSON.
    words: usize,
    /// The number of bytes that may still be searched for the ends of texts that are JSON. The bound keeps the work
    /// linear.
    nested_bytes: usize,
}

impl<'t> Repairer<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            cursor: Cursor::new(text),
            out: String::with_capacity(text.len() + text.len() / 8),
            frames: Vec::new(),
            repairs: BTreeSet::new(),
            pairs: 0,
            lonely: 0,
            words: 0,
            nested_bytes: text.len().saturating_mul(2),
        }
    }

    /// The next member of the innermost object or list, or its end.
    fn next(&mut self, frame: Frame) -> Option<()> {
        let commas = self.commas();
        let next = self.cursor.peek();
        let is_end = matches!(next, Some(b'}' | b']'));
        if next.is_some() && commas != usize::from(frame.members > 0 && !is_end) {
            self.repairs.insert(Repair::Commas);
        }
        match next {
            None => {
                self.repairs.insert(Repair::CutJson);
                while self.close_last() {}
            }
            Some(b'}') => self.close(Kind::Object),
            Some(b']') => self.close(Kind::List),
            Some(_) => {
                self.begin_member();
                match frame.kind {
                    Kind::Object => self.member()?,
                    Kind::List => self.value(StringRole::Item)?,
                }
            }
        }
        Some(())
    }

    /// Skips commas, white space and comments.
    fn commas(&mut self) -> usize {
        let mut commas = 0;
        loop {
            self.cursor.skip_gaps();
            if self.cursor.take(",") || self.cursor.take(";") {
                commas += 1;
            } else if self.cursor.skip_comment() {
                self.repairs.insert(Repair::Words);
            } else {
                return commas;
            }
        }
    }

    fn begin_member(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            if frame.members > 0 {
                self.out.push(',');
            }
            frame.members += 1;
        }
    }

    fn member(&mut self) -> Option<()> {
        match self.cursor.peek() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote, StringRole::Key),
            Some(_) => self.key()?,
            None => return None,
        }
        self.out.push(':');
        self.cursor.skip_gaps();
        let has_value = if self.cursor.take(":") {
            true
        } else {
            let is_other = self.cursor.take("=>") || self.cursor.take("=");
            if is_other {
                self.repairs.insert(Repair::Words);
            }
            is_other
        };
        if !has_value {
            self.lonely += 1;
            self.absent();
            return Some(());
        }
        self.pairs += 1;
        self.cursor.skip_gaps();
        match self.cursor.peek() {
            None | Some(b',' | b'}' | b']') => self.absent(),
            Some(_) => self.value(StringRole::Value)?,
        }
        Some(())
    }

    fn absent(&mut self) {
        self.repairs.insert(Repair::Words);
        self.out.push_str("null");
    }

    /// Writes a text, a number or a word, or opens an object or a list.
    fn value(&mut self, role: StringRole) -> Option<()> {
        match self.cursor.peek()? {
            b'{' if !self.cursor.is_macro() => self.open(Kind::Object)?,
            b'[' => self.open(Kind::List)?,
            quote @ (b'"' | b'\'') => self.string(quote, role),
            _ => self.word(),
        }
        Some(())
    }

    fn open(&mut self, kind: Kind) -> Option<()> {
        if self.frames.len() >= MAX_DEPTH {
            return None;
        }
        self.cursor.skip(1);
        self.frames.push(Frame { kind, members: 0 });
        self.out.push(match kind {
            Kind::Object => '{',
            Kind::List => '[',
        });
        Some(())
    }

    /// Closes the innermost object or list of this kind with all that is open in it. A bracket without a beginning is
    /// left out.
    fn close(&mut self, kind: Kind) {
        self.cursor.skip(1);
        if self.frames.last().is_none_or(|frame| frame.kind != kind) {
            self.repairs.insert(Repair::Commas);
        }
        if self.frames.iter().any(|frame| frame.kind == kind) {
            while self.frames.last().is_some_and(|frame| frame.kind != kind) {
                self.close_last();
            }
            self.close_last();
        }
    }

    fn close_last(&mut self) -> bool {
        let Some(frame) = self.frames.pop() else {
            return false;
        };
        self.out.push(match frame.kind {
            Kind::Object => '}',
            Kind::List => ']',
        });
        true
    }

    /// The text, unless too much of it is no JSON: `[FIRING:1] disk full`.
    fn finish(mut self) -> Option<Repaired> {
        let rest = self
            .cursor
            .rest()
            .trim_matches(|c: char| c.is_whitespace() || "}];,)\0\u{feff}".contains(c));
        let is_meant = if self.pairs > 0 {
            self.lonely <= self.pairs
        } else {
            self.lonely == 0 && self.words == 0
        };
        if !rest.is_empty() || !is_meant || self.out == "{}" || self.out == "[]" {
            return None;
        }
        if !self.cursor.rest().trim().is_empty() {
            self.repairs.insert(Repair::Commas);
        }
        Some(Repaired {
            json: self.out,
            repairs: self.repairs,
        })
    }
}
