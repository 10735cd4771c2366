//! Divides an answer into its sections, line by line.
//!
//! A header stands at the beginning of a line, or behind the end of a sentence. The latest thought, action and input
//! win, the first final answer wins, and an empty section replaces none. A new action makes the input before it void.
//! All of that is as the models of this parser have it; `docs/decisions/0019-departures.md` lists what is not:
//!
//! - Inside a final answer nothing is a header but a thought and an action that is followed by its input: an analysis
//!   may well say `Action: restart the pod`, or quote an `Observation:`.
//! - Inside an input only the beginning of a line is one, and not of a line that is indented further: the rest is data.
//! - A header that is not written as asked for counts where it cannot be part of a text.

use super::heading::{Form, Heading, Meaning, Section, at_start, is_blank};
use super::marks::{ACTION, ACTION_INPUT, Divided, FINAL_ANSWER, anywhere, bare_name, mid_line, tool_name};
use super::piece::{Piece, indent};

/// The texts of the sections; `Some("")` for a header with nothing behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) thought: Option<String>,
    pub(super) action: Option<String>,
    pub(super) action_input: Option<String>,
    pub(super) final_answer: Option<String>,
}

impl Sections {
    /// Names of those that have a header.
    pub(super) fn found(&self) -> Vec<&'static str> {
        let all = [
            ("thought", &self.thought),
            ("action", &self.action),
            ("action_input", &self.action_input),
            ("final_answer", &self.final_answer),
        ];
        all.into_iter().filter(|(_, text)| text.is_some()).map(|(name, _)| name).collect()
    }
}

/// The sections of an answer.
pub(super) fn of(text: &str) -> Sections {
    let text = unfenced(text);
    let mut reader = Reader { text, last_paragraph: last_paragraph(text), open: None, found: Found::default() };
    let mut rest = text;
    while !rest.is_empty() {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        if !reader.line(line, below) {
            break;
        }
        // Lines without a character say nothing, and there may be a million of them.
        rest = below.trim_start_matches('\n');
    }
    reader.close(text.len() - rest.len());
    let Found { thought, action, action_input, final_answer } = reader.found;
    Sections {
        thought: thought.map(Piece::prose),
        action: action.map(|piece| piece.name().to_owned()),
        action_input: action_input.map(Piece::input),
        final_answer: final_answer.map(Piece::prose),
    }
}

/// The text without the end of the fence that the whole answer is wrapped into. Its beginning, and a sentence or two
/// before it, stand in no section.
fn unfenced(text: &str) -> &str {
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    let Some((before, _)) = text.trim_end().rsplit_once('\n').filter(|(_, last)| last.trim() == "```") else {
        return text;
    };
    let mut lines = before.lines().skip_while(|line| !is_fence(line) && at_start(line).is_none());
    let opens = lines.next().is_some_and(is_fence);
    let wraps = opens && lines.find(|line| !line.trim().is_empty()).is_some_and(|line| at_start(line).is_some());
    // One fence too many, or else the last one closes another.
    if wraps && lines.filter(|line| is_fence(line)).count() % 2 == 0 { before } else { text }
}

/// Where the last paragraph begins.
fn last_paragraph(text: &str) -> usize {
    if !text.contains("[Based on") {
        return 0;
    }
    let mut end = text.trim_end().len();
    for line in text.get(..end).unwrap_or_default().rsplit('\n') {
        if line.trim().is_empty() {
            break;
        }
        end = end.saturating_sub(line.len() + 1);
    }
    end
}

/// A header in a line.
#[derive(Clone, Copy)]
struct Header<'a> {
    /// Where the section before it ends.
    end: usize,
    section: Section,
    form: Form,
    /// Begins the new section.
    after: &'a str,
    unclosed: &'a str,
}

/// The section that is being read.
#[derive(Clone, Copy)]
struct Open<'a> {
    header: Header<'a>,
    /// What its line is indented by.
    indent: usize,
}

#[derive(Default)]
struct Found<'a> {
    thought: Option<Piece<'a>>,
    action: Option<Piece<'a>>,
    action_input: Option<Piece<'a>>,
    final_answer: Option<Piece<'a>>,
}

struct Reader<'a> {
    text: &'a str,
    /// Where it begins.
    last_paragraph: usize,
    open: Option<Open<'a>>,
    found: Found<'a>,
}

impl<'a> Reader<'a> {
    /// Where a part of the text begins.
    fn offset(&self, part: &str) -> usize {
        part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    fn section(&self) -> Option<Section> {
        self.open.map(|open| open.header.section)
    }

    /// Takes a line in; `false` when the answer ends before it.
    fn line(&mut self, raw: &'a str, below: &'a str) -> bool {
        let line = raw.trim_start_matches(is_blank);
        // Two spaces: models put one before a token.
        let is_data = |open: Open<'_>| open.header.section == Section::ActionInput && indent(raw) >= open.indent + 2;
        if line.is_empty() || self.open.is_some_and(is_data) {
            return true;
        }
        let heading = at_start(line);
        if self.is_end(line, heading) {
            return false;
        }
        if let Some(header) = self.header(raw, line, heading, below) {
            self.begin(header, indent(raw), below);
        }
        true
    }

    /// Whether a line shows what a tool is said to have answered, or begins a remark on the whole: a model that goes
    /// on like this makes it up. In a final answer only the remark is one, at its very end.
    fn is_end(&self, line: &str, heading: Option<Heading<'_>>) -> bool {
        const OWN_WORDS: [&str; 3] = ["Please specify", "what Action you want to take", "Error in reasoning"];
        let in_answer = self.section() == Some(Section::FinalAnswer);
        if line.starts_with("[Based on") {
            return !in_answer || self.offset(line) >= self.last_paragraph;
        }
        heading.is_some_and(|Heading { meaning, form, .. }| {
            let is_sure = matches!(form, Form::Plain | Form::Marked);
            !in_answer && meaning == Meaning::Observation && is_sure && !OWN_WORDS.iter().any(|own| line.contains(own))
        })
    }

    fn header(&self, raw: &str, line: &'a str, heading: Option<Heading<'a>>, below: &str) -> Option<Header<'a>> {
        if let Some(Heading { meaning: Meaning::Section(section), form, after, unclosed }) = heading {
            if self.accepts(section, form, after, below) {
                return Some(Header { end: self.offset(raw), section, form, after, unclosed });
            }
            if form == Form::Plain {
                return None;
            }
        }
        match self.section() {
            Some(Section::ActionInput) => None,
            // A model that writes its thoughts without the colon also writes of what it will do later.
            Some(Section::Action | Section::Thought | Section::FinalAnswer) | None if line.starts_with("Thought ") => {
                None
            }
            Some(Section::Action) => self.input_inside(line).or_else(|| self.header_inside(line, below)),
            Some(Section::Thought | Section::FinalAnswer) | None => self.header_inside(line, below),
        }
    }

    /// Whether a header at the beginning of a line is one here, or part of the open section.
    fn accepts(&self, section: Section, form: Form, after: &str, below: &str) -> bool {
        let open = self.section();
        let is_sure = matches!(form, Form::Plain | Form::Marked);
        match (section, open) {
            (Section::FinalAnswer, _) if self.has_answer() => false,
            (Section::Thought, Some(Section::FinalAnswer)) => form == Form::Plain,
            (Section::Action, Some(Section::FinalAnswer)) => is_call(after, below),
            (Section::FinalAnswer | Section::ActionInput, Some(Section::FinalAnswer)) => false,
            (Section::Action, _) => match form {
                Form::Plain => true,
                Form::Marked => tool_name(after).is_some() || is_word_with_input(after, below),
                Form::Spelled | Form::Listed => is_call(after, below),
            },
            (_, Some(Section::ActionInput)) => is_sure,
            (Section::Thought, Some(Section::Thought | Section::Action)) => is_sure,
            (Section::Thought, None) => true,
            (Section::ActionInput, _) => {
                let is_awaited = open == Some(Section::Action) || self.found.action.is_some();
                is_sure || is_awaited || after.trim_start().starts_with('{')
            }
            (Section::FinalAnswer, _) => {
                let is_listed = self.open.is_none_or(|open| open.header.form == Form::Listed);
                form != Form::Listed || is_listed
            }
        }
    }

    /// A header behind the end of a sentence.
    fn header_inside(&self, line: &'a str, below: &str) -> Option<Header<'a>> {
        // Most lines have none, and there may be many.
        if !line.rsplit_once(':').is_some_and(|(head, _)| head.len() > ACTION.len() && head.contains(['.', '!', '?'])) {
            return None;
        }
        if !self.has_answer()
            && let Some(divided) = mid_line(line, FINAL_ANSWER)
        {
            return Some(self.divided(divided, Section::FinalAnswer));
        }
        let in_answer = self.section() == Some(Section::FinalAnswer);
        if let Some(divided) = mid_line(line, ACTION).filter(|divided| !in_answer || is_call(divided.after, below)) {
            return Some(self.divided(divided, Section::Action));
        }
        let awaits_input = !in_answer && self.found.action.is_some_and(|action| !action.name().is_empty());
        let divided = if awaits_input { mid_line(line, ACTION_INPUT) } else { None };
        divided.map(|divided| self.divided(divided, Section::ActionInput))
    }

    /// `k8s.get Action Input: {}`: both on one line.
    fn input_inside(&self, line: &'a str) -> Option<Header<'a>> {
        anywhere(line, ACTION_INPUT).map(|divided| self.divided(divided, Section::ActionInput))
    }

    fn divided(&self, Divided { before, after, unclosed }: Divided<'a>, section: Section) -> Header<'a> {
        Header { end: self.offset(before) + before.len(), section, form: Form::Plain, after, unclosed }
    }

    /// The first answer is the one that counts.
    fn has_answer(&self) -> bool {
        self.section() == Some(Section::FinalAnswer) || self.found.final_answer.is_some()
    }

    /// Begins a section, whose first line may hold the next header.
    fn begin(&mut self, header: Header<'a>, indent: usize, below: &str) {
        let mut next = Some(header);
        while let Some(header) = next {
            self.close(header.end);
            self.open = Some(Open { header, indent });
            if header.section == Section::Action {
                self.found.action_input = None;
            }
            next = match header.section {
                Section::Thought | Section::FinalAnswer => self.header_inside(header.after, below),
                Section::Action => self.input_inside(header.after),
                Section::ActionInput => None,
            };
        }
    }

    /// Puts the open section away, which ends at `end`.
    fn close(&mut self, end: usize) {
        let Some(Open { header, indent }) = self.open.take() else { return };
        let text = self.text.get(self.offset(header.after)..end).unwrap_or_default();
        let piece = Piece { text, unclosed: header.unclosed, indent };
        let (place, is_empty) = match header.section {
            Section::Thought => (&mut self.found.thought, piece.is_blank()),
            Section::Action => (&mut self.found.action, piece.name().is_empty()),
            Section::ActionInput => (&mut self.found.action_input, piece.is_blank()),
            Section::FinalAnswer => (&mut self.found.final_answer, piece.is_blank()),
        };
        if place.is_none() || !is_empty {
            *place = Some(piece);
        }
    }
}

/// Whether what stands behind `Action:` is the name of a tool and an input comes next.
fn is_call(after: &str, below: &str) -> bool {
    is_followed(after, below, |name| tool_name(name).is_some())
}

/// Whether what stands behind `Action:` is a single word and an input comes next.
fn is_word_with_input(after: &str, below: &str) -> bool {
    is_followed(after, below, |name| {
        let name = bare_name(name);
        !name.is_empty() && !name.contains(char::is_whitespace)
    })
}

/// Whether what stands behind `Action:`, in its line or the next one, is wanted and an input follows. Reads no more than
/// two lines.
fn is_followed(after: &str, below: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    if let Some(Divided { before, .. }) = anywhere(after, ACTION_INPUT) {
        return is_wanted(before);
    }
    let (name, below) = if after.trim().is_empty() { next_line(below) } else { (after, below) };
    let is_input = |heading: Heading<'_>| heading.meaning == Meaning::Section(Section::ActionInput);
    is_wanted(name) && at_start(next_line(below).0).is_some_and(is_input)
}

/// The next line that says anything, and those below it.
fn next_line(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once('\n').unwrap_or((text, ""))
}
