//! Divides an answer into its sections, line by line.
//!
//! A header stands at the beginning of a line, or behind the end of a sentence. The latest thought, action and input
//! win, the first final answer wins, and an empty section replaces none. A new action makes the input before it void.
//! All of that is as the models of this parser have it; `docs/decisions/0020-reading-react.md` lists what is not:
//!
//! - Inside a final answer nothing is a header but a thought and an action that is followed by its input: an analysis
//!   may well say `Action: restart the pod`, or quote an `Observation:`.
//! - Inside an input only the beginning of a line is one, and not of a line that is indented further: the rest is data.
//! - A header that is not written as asked for counts where it cannot be part of a text.

use super::heading::{Form, Heading, Meaning, Section, at_start, is_blank};
use super::marks::{ACTION, ACTION_INPUT, FINAL_ANSWER, anywhere, bare_name, mid_line, tool_name};

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
    let lines: Vec<&str> = text.lines().collect();
    let mut rest = unfenced(&lines);
    let mut reader = Reader { last_paragraph: last_paragraph(rest), ..Reader::default() };
    while let Some((line, after)) = rest.split_first() {
        if !reader.line(line, after) {
            break;
        }
        rest = after;
    }
    reader.close();
    reader.found
}

/// The lines without the fence that a whole answer is wrapped into. Before it may stand a sentence or two.
fn unfenced<'a, 'l>(lines: &'l [&'a str]) -> &'l [&'a str] {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let is_filled = |line: &&str| !line.trim().is_empty();
    let Some(first) = lines.iter().position(|line| at_start(line).is_some()) else { return lines };
    let (before, answer) = lines.split_at_checked(first).unwrap_or((&[], lines));
    let opens = before.iter().rfind(|line| is_filled(line)).is_some_and(is_fence);
    let last = answer.iter().rposition(|line| is_filled(&line)).unwrap_or_default();
    let closes = answer.get(last).is_some_and(|line| line.trim() == "```");
    // One fence too many, or else the last one closes another.
    if opens && closes && answer.iter().filter(|line| is_fence(line)).count() % 2 == 1 {
        return lines.get(..first + last).unwrap_or(lines);
    }
    lines
}

/// How many lines there are from the last empty line on.
fn last_paragraph(lines: &[&str]) -> usize {
    let filled = lines.iter().rev().skip_while(|line| line.trim().is_empty()).take_while(|line| !line.trim().is_empty());
    let empty = lines.iter().rev().take_while(|line| line.trim().is_empty());
    filled.count() + empty.count()
}

/// A header in a line.
struct Header<'a> {
    /// Belongs to the section that ends here.
    before: &'a str,
    section: Section,
    form: Form,
    /// Begins the new section.
    after: &'a str,
}

impl<'a> Header<'a> {
    fn inside((before, after): (&'a str, &'a str), section: Section) -> Self {
        Self { before, section, form: Form::Plain, after }
    }
}

#[derive(Default)]
struct Reader<'a> {
    found: Sections,
    open: Option<Section>,
    /// Of the header of the open section.
    form: Form,
    /// What its line is indented by.
    indent: usize,
    /// Lines of the open section.
    lines: Vec<&'a str>,
    /// How many lines there are from the last empty line on.
    last_paragraph: usize,
}

impl<'a> Reader<'a> {
    /// Takes a line in; `false` when the answer ends before it.
    fn line(&mut self, raw: &'a str, rest: &[&'a str]) -> bool {
        let line = raw.trim_matches(is_blank);
        let indent = indent(raw);
        // Two spaces: models put one before a token.
        if self.open == Some(Section::ActionInput) && indent >= self.indent + 2 {
            self.lines.push(raw.trim_end());
            return true;
        }
        let heading = at_start(line);
        if self.is_end(line, heading, rest.len()) {
            return false;
        }
        match self.header(line, heading, rest) {
            Some(header) => {
                self.indent = indent;
                self.begin(header, rest);
            }
            None if self.open.is_some() => self.lines.push(raw.trim_end()),
            None => {}
        }
        true
    }

    /// Whether a line shows what a tool is said to have answered, or begins a remark on the whole: a model that goes
    /// on like this makes it up. In a final answer only the remark is one, at its very end.
    fn is_end(&self, line: &str, heading: Option<Heading<'_>>, lines_after: usize) -> bool {
        const OWN_WORDS: [&str; 3] = ["Please specify", "what Action you want to take", "Error in reasoning"];
        let in_answer = self.open == Some(Section::FinalAnswer);
        if line.starts_with("[Based on") {
            return !in_answer || lines_after < self.last_paragraph;
        }
        heading.is_some_and(|Heading { meaning, form, .. }| {
            let is_sure = matches!(form, Form::Plain | Form::Marked);
            !in_answer && meaning == Meaning::Observation && is_sure && !OWN_WORDS.iter().any(|own| line.contains(own))
        })
    }

    fn header(&self, line: &'a str, heading: Option<Heading<'a>>, rest: &[&'a str]) -> Option<Header<'a>> {
        if let Some(Heading { meaning: Meaning::Section(section), form, after }) = heading {
            if self.accepts(section, form, after, rest) {
                return Some(Header { before: "", section, form, after });
            }
            if form == Form::Plain {
                return None;
            }
        }
        match self.open {
            Some(Section::ActionInput) => None,
            // A model that writes its thoughts without the colon also writes of what it will do later.
            Some(Section::Action | Section::Thought | Section::FinalAnswer) | None if line.starts_with("Thought ") => {
                None
            }
            Some(Section::Action) => input_inside(line).or_else(|| self.header_inside(line, rest)),
            Some(Section::Thought | Section::FinalAnswer) | None => self.header_inside(line, rest),
        }
    }

    /// Whether a header at the beginning of a line is one here, or part of the open section.
    fn accepts(&self, section: Section, form: Form, after: &str, rest: &[&str]) -> bool {
        let open = self.open;
        let is_sure = matches!(form, Form::Plain | Form::Marked);
        match (section, open) {
            (Section::FinalAnswer, _) if self.has_answer() => false,
            (Section::Thought, Some(Section::FinalAnswer)) => form == Form::Plain,
            (Section::Action, Some(Section::FinalAnswer)) => is_call(after, rest),
            (Section::FinalAnswer | Section::ActionInput, Some(Section::FinalAnswer)) => false,
            (Section::Action, _) => match form {
                Form::Plain => true,
                Form::Marked => tool_name(after).is_some() || is_word_with_input(after, rest),
                Form::Spelled | Form::Listed => is_call(after, rest),
            },
            (_, Some(Section::ActionInput)) => is_sure,
            (Section::Thought, Some(Section::Thought | Section::Action)) => is_sure,
            (Section::Thought, None) => true,
            (Section::ActionInput, _) => {
                let is_awaited = open == Some(Section::Action) || self.found.action.is_some();
                is_sure || is_awaited || after.trim_start().starts_with('{')
            }
            (Section::FinalAnswer, _) => form != Form::Listed || open.is_none() || self.form == Form::Listed,
        }
    }

    /// A header behind the end of a sentence.
    fn header_inside(&self, line: &'a str, rest: &[&'a str]) -> Option<Header<'a>> {
        if !self.has_answer()
            && let Some(parts) = mid_line(line, FINAL_ANSWER)
        {
            return Some(Header::inside(parts, Section::FinalAnswer));
        }
        let in_answer = self.open == Some(Section::FinalAnswer);
        let parts = mid_line(line, ACTION).filter(|(_, after)| !in_answer || is_call(after, rest));
        if let Some(parts) = parts {
            return Some(Header::inside(parts, Section::Action));
        }
        let awaits_input = !in_answer && self.found.action.as_deref().is_some_and(|action| !action.is_empty());
        let parts = if awaits_input { mid_line(line, ACTION_INPUT) } else { None };
        parts.map(|parts| Header::inside(parts, Section::ActionInput))
    }

    /// The first answer is the one that counts.
    fn has_answer(&self) -> bool {
        self.open == Some(Section::FinalAnswer) || self.found.final_answer.is_some()
    }

    /// Begins a section, whose first line may hold the next header.
    fn begin(&mut self, header: Header<'a>, rest: &[&'a str]) {
        let mut next = Some(header);
        while let Some(Header { before, section, form, after }) = next {
            if self.open.is_some() && !before.is_empty() {
                self.lines.push(before);
            }
            self.close();
            self.open = Some(section);
            self.form = form;
            if section == Section::Action {
                self.found.action_input = None;
            }
            next = match section {
                Section::Thought | Section::FinalAnswer => self.header_inside(after, rest),
                Section::Action => input_inside(after),
                Section::ActionInput => None,
            };
            if next.is_none() {
                self.lines.push(after.trim());
            }
        }
    }

    /// Puts the open section away.
    fn close(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let Some(section) = self.open.take() else { return };
        let (place, text) = match section {
            Section::Thought => (&mut self.found.thought, prose(&lines)),
            Section::Action => (&mut self.found.action, bare_name(&lines.join("\n")).to_owned()),
            Section::ActionInput => (&mut self.found.action_input, block(&lines, self.indent)),
            Section::FinalAnswer => (&mut self.found.final_answer, prose(&lines)),
        };
        if place.is_none() || !text.is_empty() {
            *place = Some(text);
        }
    }
}

/// `k8s.get Action Input: {}`: both on one line.
fn input_inside(line: &str) -> Option<Header<'_>> {
    anywhere(line, ACTION_INPUT).map(|parts| Header::inside(parts, Section::ActionInput))
}

/// Whether what stands behind `Action:` is the name of a tool and an input comes next.
fn is_call(after: &str, rest: &[&str]) -> bool {
    named(after, rest).is_some_and(|name| tool_name(name).is_some())
}

/// Whether what stands behind `Action:` is a single word and an input comes next.
fn is_word_with_input(after: &str, rest: &[&str]) -> bool {
    let is_word = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    named(after, rest).is_some_and(|name| is_word(bare_name(name)))
}

/// What stands behind `Action:`, in its line or the next one, if an input follows.
fn named<'a>(after: &'a str, rest: &[&'a str]) -> Option<&'a str> {
    if let Some((name, _)) = anywhere(after, ACTION_INPUT) {
        return Some(name);
    }
    let mut lines = rest.iter().filter(|line| !line.trim().is_empty());
    let name = if after.trim().is_empty() { lines.next()? } else { after };
    let next = at_start(lines.next()?)?;
    (next.meaning == Meaning::Section(Section::ActionInput)).then_some(name)
}

fn prose(lines: &[&str]) -> String {
    lines.join("\n").trim_matches(is_blank).to_owned()
}

/// How many spaces and tabs a line begins with.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// The lines of an input. The first one stood behind the header; those below lose what they are indented by in
/// common or, when the first one is filled, what the header is.
fn block(lines: &[&str], header_indent: usize) -> String {
    let Some((first, below)) = lines.split_first() else { return String::new() };
    let least = || below.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min().unwrap_or(0);
    let common = if first.is_empty() { least() } else { header_indent };
    let shifted = below.iter().map(|line| line.get(common.min(indent(line))..).unwrap_or_default());
    let text = std::iter::once(*first).chain(shifted).collect::<Vec<&str>>().join("\n");
    text.trim_matches('\n').trim_end().to_owned()
}
