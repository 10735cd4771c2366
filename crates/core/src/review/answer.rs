//! The answer of a review: a verdict, the facts that decide it, and perhaps another analysis.
//!
//! Models write the form in their own way, so its labels are also read as headings, in bold, as rows of a table and as
//! keys of JSON. A line in a fence, in a quotation or indented by four spaces is a quotation of a text from outside.

use serde_json::{Map, Value};

use super::Verdict;
use crate::code::{FenceMark, ends, fence, offset};
use crate::summary::opens_cause;

/// Lines of an answer that are searched for its verdict.
const MAX_LINES: usize = 60;
/// Bytes of the facts that are kept.
const MAX_WHY_BYTES: usize = 1_200;

const VERDICT: [&str; 6] = [
    "verdict",
    "final verdict",
    "my verdict",
    "review verdict",
    "judgement",
    "judgment",
];
const WHY: [&str; 7] = [
    "why",
    "reason",
    "reasons",
    "reasoning",
    "because",
    "rationale",
    "justification",
];
/// Marks of lists, headings and emphasis around a label.
const MARKS: [char; 8] = ['*', '_', '#', '-', '•', '`', '|', ' '];

/// The answer of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// `None` if the answer has no verdict.
    pub verdict: Option<Verdict>,
    /// The facts that decide it, in one line; empty without them.
    pub why: String,
    /// Another analysis.
    pub analysis: Option<&'a str>,
}

/// A label of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Verdict,
    Why,
}

impl Label {
    fn parse(word: &str) -> Option<Self> {
        let word = word.trim_matches(MARKS).to_lowercase();
        if VERDICT.contains(&word.as_str()) {
            Some(Self::Verdict)
        } else if WHY.contains(&word.as_str()) {
            Some(Self::Why)
        } else {
            None
        }
    }
}

/// Reads the answer of a review.
pub fn read(text: &str) -> Answer<'_> {
    if let Some(found) = of_object(text) {
        return found;
    }
    let mut reader = Reader::default();
    for line in text.lines().take(MAX_LINES) {
        reader.read(line);
        if reader.analysis_from.is_some() {
            break;
        }
    }
    let from = reader.analysis_from.map(|line| offset(text, line));
    Answer {
        verdict: reader.verdict,
        why: cut(&reader.why.join("; ")),
        analysis: from.and_then(|from| text.get(from..)).map(str::trim_end),
    }
}

/// An answer that is one JSON object. It has no other analysis: that would be text.
fn of_object(text: &str) -> Option<Answer<'_>> {
    let bare = text
        .trim()
        .trim_start_matches("```json")
        .trim_matches('`')
        .trim();
    let members: Map<String, Value> =
        serde_json::from_str(bare.strip_prefix('{').map(|_| bare)?).ok()?;
    let text_of = |label: Label| {
        let found = members
            .iter()
            .find(|(key, _)| Label::parse(key) == Some(label));
        found.and_then(|(_, value)| value.as_str())
    };
    Some(Answer {
        verdict: text_of(Label::Verdict).and_then(Verdict::in_words),
        why: cut(&one_line(text_of(Label::Why).unwrap_or_default())),
        analysis: None,
    })
}

#[derive(Default)]
struct Reader<'a> {
    verdict: Option<Verdict>,
    why: Vec<String>,
    /// The line with which the other analysis begins.
    analysis_from: Option<&'a str>,
    /// The label whose text the next line may have.
    open: Option<Label>,
    /// The fence of the block of code around the line.
    code: Option<FenceMark>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, line: &'a str) {
        match (self.code, fence(line)) {
            (Some(mark), _) if ends(line, mark) => self.code = None,
            (Some(_), _) => {}
            (None, Some(mark)) => self.code = Some(mark),
            (None, None) if is_quotation(line) => {}
            (None, None) => self.outside_of_code(line),
        }
    }

    fn outside_of_code(&mut self, line: &'a str) {
        if line.trim().is_empty() {
            return;
        }
        match labelled(line) {
            Some((Label::Verdict, text)) => {
                self.open = text.is_empty().then_some(Label::Verdict);
                self.take_verdict(text);
            }
            Some((Label::Why, text)) if self.verdict.is_some() => {
                self.open = Some(Label::Why);
                self.add_why(text);
            }
            Some((Label::Why, _)) => {}
            None if self.verdict.is_some() && opens_cause(line) => self.analysis_from = Some(line),
            None => self.text(line),
        }
    }

    fn text(&mut self, line: &str) {
        match self.open {
            Some(Label::Verdict) => {
                self.open = None;
                self.take_verdict(line);
            }
            // A heading ends the facts.
            Some(Label::Why) if line.starts_with('#') => self.open = None,
            Some(Label::Why) => self.add_why(line),
            None => {}
        }
    }

    /// The first verdict counts.
    fn take_verdict(&mut self, text: &str) {
        self.verdict = self.verdict.or_else(|| Verdict::in_words(text));
    }

    fn add_why(&mut self, text: &str) {
        let text = one_line(text.trim_start_matches(['-', '*', '•', ' ']));
        if !text.is_empty() {
            self.why.push(text);
        }
    }
}

/// The label of a line and the text after it: before a colon, as a heading, in bold, or as a row of a table.
fn labelled(line: &str) -> Option<(Label, &str)> {
    let line = line.trim();
    let line = line.strip_prefix("Final Answer:").map_or(line, str::trim);
    let cells = line.strip_prefix('|').and_then(|row| row.split_once('|'));
    if let Some((word, text)) = cells {
        return Some((Label::parse(word)?, text.trim_matches(['|', ' '])));
    }
    if let Some((word, text)) = line.split_once([':', '：'])
        && let Some(label) = Label::parse(word)
    {
        return Some((label, text.trim_matches(['*', '_', ' '])));
    }
    let is_heading = line.starts_with('#') || (line.starts_with("**") && line.ends_with("**"));
    is_heading
        .then(|| Label::parse(line))
        .flatten()
        .map(|label| (label, ""))
}

/// Whether a line quotes a text from outside.
fn is_quotation(line: &str) -> bool {
    line.trim_start().starts_with('>') || line.starts_with("    ") || line.starts_with('\t')
}

fn one_line(text: &str) -> String {
    crate::prompt::line(text)
}

fn cut(text: &str) -> String {
    let kept = crate::readable::text::beginning(text, MAX_WHY_BYTES);
    if kept.len() < text.len() {
        format!("{kept}…")
    } else {
        kept.to_owned()
    }
}
