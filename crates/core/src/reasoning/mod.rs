//! Reasoning in the text of an answer, where a model's server has left it between tags.
//!
//! A server without a parser for its model streams `<think>…</think>` as text. [`Splitter`] takes it out before
//! anything else reads the text. Whatever the pieces of the stream are, the result is the same.
//!
//! - A tag in Markdown code is text.
//! - A missing opening tag: everything before the closing one is reasoning.
//! - A missing closing tag: everything after the opening one is reasoning. If text stands before it, no reading is
//!   certain ([`Split::is_unsure`]).
//! - A token that ends a turn in the chat template of a model ends the text.

mod code;
mod tags;
#[cfg(test)]
mod tests;

use self::code::CodeState;
use self::tags::{Match, Tag};
use super::summary::names_cause;

/// Tokens that end a text only where nothing follows: elsewhere they may be HTML.
const LAST_TOKENS: [(&str, &str); 4] =
    [("</s>", "<s>"), ("<eos>", ""), ("<pad>", ""), ("[e~[", "")];
/// The tags that templates write around an answer after its reasoning.
const WRAPPERS: [(&str, &str); 2] = [("<answer>", "</answer>"), ("<response>", "</response>")];

/// The tag that some models write around notes, and others around their answer.
const SCRATCH: (&str, &str) = ("<analysis>", "</analysis>");
/// The labels of a step in the `ReAct` format.
const STEPS: [&str; 3] = ["Action:", "Final Answer:", "Thought:"];

/// The kind of a piece of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    Text,
    Reasoning,
}

/// A part of the stream whose kind is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: PieceKind,
    pub text: String,
}

/// The whole answer, split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    pub text: String,
    pub reasoning: String,
    /// The tags have no certain reading: the text may be a part of the reasoning, or the other way round.
    pub is_unsure: bool,
    /// The first tag of reasoning, as it was written.
    pub tag: Option<String>,
}

/// Splits the text of one answer while it arrives.
#[derive(Debug, Default)]
pub struct Splitter {
    split: Split,
    /// The end of the stream so far, which may be the beginning of a tag.
    held: String,
    code: CodeState,
    is_reasoning: bool,
    /// The reasoning stands in a fold.
    is_folded: bool,
    /// A turn of the template has ended: what follows is no part of the answer.
    has_ended: bool,
    has_tags: bool,
}

/// Splits a whole text.
pub fn split(text: &str) -> Split {
    let mut splitter = Splitter::default();
    splitter.push(text);
    splitter.finish().1
}

impl Splitter {
    /// Adds a piece of the stream. Returns what is known of it now.
    pub fn push(&mut self, piece: &str) -> Vec<Piece> {
        self.held.push_str(piece);
        let held = std::mem::take(&mut self.held);
        let mut pieces = Vec::new();
        let done = self.read(&held, &mut pieces);
        self.held.push_str(held.get(done..).unwrap_or_default());
        pieces
    }

    /// The rest of the stream, and the whole answer.
    pub fn finish(mut self) -> (Vec<Piece>, Split) {
        let held = std::mem::take(&mut self.held);
        let mut pieces = Vec::new();

        let mut rest = held.as_str();
        while let Some(first) = rest.chars().next() {
            // The beginning of a tag that never came.
            self.emit(
                rest.get(..first.len_utf8()).unwrap_or_default(),
                &mut pieces,
            );
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            let done = self.read(rest, &mut pieces);
            rest = rest.get(done..).unwrap_or_default();
        }
        (pieces, self.whole())
    }

    /// Reads as much as is certain. Returns the length of it.
    fn read(&mut self, text: &str, pieces: &mut Vec<Piece>) -> usize {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.find(tags::STARTS).unwrap_or(rest.len());
            if plain > 0 {
                self.emit(rest.get(..plain).unwrap_or_default(), pieces);
                at += plain;
                continue;
            }
            let is_code = !self.is_reasoning && self.code.is_code();
            match if is_code { Match::None } else { tags::at(rest) } {
                Match::Tag(Tag::CloseFold, length) if !self.is_folded => {
                    // Of a fold of the answer.
                    self.emit(rest.get(..length).unwrap_or_default(), pieces);
                    at += length;
                }
                Match::Tag(tag, length) => {
                    self.note(tag, rest.get(..length).unwrap_or_default());
                    self.tag(tag);
                    at += length;
                }
                Match::Begun => return at,
                Match::None => {
                    let first = rest.chars().next().map_or(1, char::len_utf8);
                    self.emit(rest.get(..first).unwrap_or_default(), pieces);
                    at += first;
                }
            }
        }
        at
    }

    fn emit(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if self.has_ended || text.is_empty() {
            return;
        }
        let kind = if self.is_reasoning {
            self.split.reasoning.push_str(text);
            PieceKind::Reasoning
        } else {
            self.code.read(text);
            self.split.text.push_str(text);
            PieceKind::Text
        };
        match pieces.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(text),
            Some(_) | None => pieces.push(Piece {
                kind,
                text: text.to_owned(),
            }),
        }
    }

    /// Keeps the first tag of reasoning for people.
    fn note(&mut self, tag: Tag, written: &str) {
        let is_of_reasoning =
            matches!(tag, Tag::Open | Tag::Close | Tag::OpenFold) && !self.has_ended;
        if is_of_reasoning && self.split.tag.is_none() {
            self.split.tag = Some(written.trim().to_owned());
        }
    }

    fn tag(&mut self, tag: Tag) {
        self.has_tags = true;
        match tag {
            Tag::Open | Tag::OpenFold => {
                self.is_folded |= tag == Tag::OpenFold && !self.is_reasoning;
                if !self.is_reasoning && !self.split.reasoning.is_empty() {
                    self.split.reasoning.push('\n');
                }
                self.is_reasoning = true;
            }
            Tag::Close if self.is_folded => {}
            Tag::CloseFold => (self.is_reasoning, self.is_folded) = (false, false),
            Tag::Close if self.is_reasoning => self.is_reasoning = false,
            Tag::Close => self.text_was_reasoning(),
            // The beginning of the answer of a template: reasoning ends, and text continues.
            Tag::Answer => self.is_reasoning = false,
            Tag::End if self.is_reasoning || !self.split.text.trim().is_empty() => {
                self.is_reasoning = false;
                self.has_ended = true;
            }
            Tag::End => {}
        }
    }

    /// A closing tag without an opening one.
    fn text_was_reasoning(&mut self) {
        let text = std::mem::take(&mut self.split.text);
        if !self.split.reasoning.is_empty() && !text.is_empty() {
            self.split.reasoning.push('\n');
        }
        self.split.reasoning.push_str(&text);
        self.code = CodeState::default();
    }

    fn whole(mut self) -> Split {
        let is_open = self.is_reasoning;
        if !self.has_tags {
            self.harmony_without_tokens();
        }
        if self.has_tags {
            self.split.text = self.split.text.trim().to_owned();
            self.split.reasoning = self.split.reasoning.trim().to_owned();
        }
        while let Some(text) = without_last_token(&self.split.text).map(str::to_owned) {
            self.split.text = text;
        }
        if self.has_tags
            && let Some(text) = unwrapped(&self.split.text).map(str::to_owned)
        {
            self.split.text = text;
        }
        self.split.is_unsure = is_open && !self.split.text.is_empty();
        self.scratch();
        self.split
    }

    /// `<analysis>…</analysis>` may be the answer or notes before it: notes, if what follows is an answer or a step by
    /// itself. If it is not, a step within the tags has no certain reading.
    fn scratch(&mut self) {
        let found = self
            .split
            .text
            .trim_start()
            .strip_prefix(SCRATCH.0)
            .and_then(|rest| rest.split_once(SCRATCH.1));
        let Some((notes, text)) = found.filter(|(_, text)| !text.trim().is_empty()) else {
            return;
        };
        if names_cause(text) || has_step(text) {
            let notes = [self.split.reasoning.as_str(), notes.trim()]
                .join("\n")
                .trim()
                .to_owned();
            let text = text.trim().to_owned();
            (self.split.reasoning, self.split.text) = (notes, text);
            self.split.tag.get_or_insert_with(|| SCRATCH.0.to_owned());
        } else if has_step(notes) {
            self.split.is_unsure = true;
        }
    }

    /// `analysis…assistantfinal…`: the channels of gpt-oss without the tokens around their names.
    fn harmony_without_tokens(&mut self) {
        let found = self
            .split
            .text
            .strip_prefix("analysis")
            .and_then(|rest| rest.rsplit_once("assistantfinal"));
        if let Some((reasoning, text)) = found {
            (self.split.reasoning, self.split.text) = (reasoning.to_owned(), text.to_owned());
            self.split.tag = Some("analysis…assistantfinal".to_owned());
            self.has_tags = true;
        }
    }
}

/// The text before a token at its end, unless the token closes an element.
fn without_last_token(text: &str) -> Option<&str> {
    LAST_TOKENS.iter().find_map(|(token, opening)| {
        let before = text.trim_end().strip_suffix(token)?;
        (opening.is_empty() || !before.contains(opening)).then(|| before.trim_end())
    })
}

/// Whether a line of the text is a step in the `ReAct` format.
fn has_step(text: &str) -> bool {
    text.lines()
        .any(|line| STEPS.iter().any(|step| line.trim_start().starts_with(step)))
}

/// The answer in the tags around it.
fn unwrapped(text: &str) -> Option<&str> {
    WRAPPERS.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains(open)).then(|| inner.trim())
    })
}
