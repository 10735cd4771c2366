//! Divides an answer into its sections, line by line.
//!
//! A header stands at the beginning of a line, or behind the end of a sentence. The latest thought, action and input
//! win, the first final answer wins, and an empty section replaces none. A new action makes the input before it void.
//!
//! Inside a final answer nothing is a header but a thought and an action that is followed by its input: an analysis
//! may well say `Action: restart the pod`. Inside an input only the beginning of a line is: the rest is data.

use super::marks::{ACTION, ACTION_INPUT, FINAL_ANSWER, THOUGHT, bare_name, is_invented, mid_line, tool_name};

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
    let mut reader = Reader::default();
    let mut rest = lines.as_slice();
    while let Some((line, after)) = rest.split_first() {
        if !reader.line(line, after) {
            break;
        }
        rest = after;
    }
    reader.close();
    reader.found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Thought,
    Action,
    ActionInput,
    FinalAnswer,
}

/// A header in a line.
struct Header<'a> {
    /// Belongs to the section that ends here.
    before: &'a str,
    section: Section,
    /// Begins the new section.
    after: &'a str,
}

impl<'a> Header<'a> {
    fn at_start(section: Section, after: &'a str) -> Self {
        Self { before: "", section, after }
    }

    fn inside((before, after): (&'a str, &'a str), section: Section) -> Self {
        Self { before, section, after }
    }
}

#[derive(Default)]
struct Reader<'a> {
    found: Sections,
    open: Option<Section>,
    /// Lines of the open section.
    lines: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    /// Takes a line in; `false` when the answer ends before it.
    fn line(&mut self, raw: &'a str, rest: &[&'a str]) -> bool {
        let line = raw.trim();
        if self.open != Some(Section::FinalAnswer) && is_invented(line) {
            return false;
        }
        match self.header(line, rest) {
            Some(header) => self.begin(header, rest),
            None if self.open.is_some() => self.lines.push(raw.trim_end()),
            None => {}
        }
        true
    }

    fn header(&self, line: &'a str, rest: &[&'a str]) -> Option<Header<'a>> {
        let in_answer = self.open == Some(Section::FinalAnswer);
        if let Some(after) = line.strip_prefix(FINAL_ANSWER) {
            return (!self.has_answer()).then(|| Header::at_start(Section::FinalAnswer, after));
        }
        if let Some(after) = line.strip_prefix(THOUGHT) {
            return Some(Header::at_start(Section::Thought, after));
        }
        if line == "Thought" {
            return Some(Header::at_start(Section::Thought, ""));
        }
        if let Some(after) = line.strip_prefix(ACTION) {
            return (!in_answer || is_call(after, rest)).then(|| Header::at_start(Section::Action, after));
        }
        if let Some(after) = line.strip_prefix(ACTION_INPUT) {
            return (!in_answer).then(|| Header::at_start(Section::ActionInput, after));
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

    /// A header behind the end of a sentence.
    fn header_inside(&self, line: &'a str, rest: &[&'a str]) -> Option<Header<'a>> {
        if !self.has_answer()
            && let Some(parts) = mid_line(line, FINAL_ANSWER)
        {
            return Some(Header::inside(parts, Section::FinalAnswer));
        }
        let in_answer = self.open == Some(Section::FinalAnswer);
        let parts = mid_line(line, ACTION).filter(|(_, after)| !in_answer || is_call(after, rest));
        parts.map(|parts| Header::inside(parts, Section::Action))
    }

    /// The first answer is the one that counts.
    fn has_answer(&self) -> bool {
        self.open == Some(Section::FinalAnswer) || self.found.final_answer.is_some()
    }

    /// Begins a section, whose first line may hold the next header.
    fn begin(&mut self, header: Header<'a>, rest: &[&'a str]) {
        let mut next = Some(header);
        while let Some(Header { before, section, after }) = next {
            if self.open.is_some() && !before.is_empty() {
                self.lines.push(before);
            }
            self.close();
            self.open = Some(section);
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
            Section::ActionInput => (&mut self.found.action_input, block(&lines)),
            Section::FinalAnswer => (&mut self.found.final_answer, prose(&lines)),
        };
        if place.is_none() || !text.is_empty() {
            *place = Some(text);
        }
    }
}

/// `k8s.get Action Input: {}`: both on one line.
fn input_inside(line: &str) -> Option<Header<'_>> {
    line.split_once(ACTION_INPUT).map(|parts| Header::inside(parts, Section::ActionInput))
}

/// Whether what stands behind `Action:` is the name of a tool and an input comes next.
fn is_call(after: &str, rest: &[&str]) -> bool {
    if let Some((name, _)) = after.split_once(ACTION_INPUT) {
        return tool_name(name).is_some();
    }
    let mut lines = rest.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let name = if after.trim().is_empty() { lines.next() } else { Some(after) };
    name.is_some_and(|name| tool_name(name).is_some())
        && lines.next().is_some_and(|line| line.starts_with(ACTION_INPUT))
}

fn prose(lines: &[&str]) -> String {
    lines.join("\n").trim().to_owned()
}

/// The lines without what they are indented by in common; the first one stood behind the header.
fn block(lines: &[&str]) -> String {
    let Some((first, below)) = lines.split_first() else { return String::new() };
    if !first.is_empty() {
        return lines.join("\n").trim_end().to_owned();
    }
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = below.iter().filter(|line| !line.is_empty()).map(indent).min().unwrap_or(0);
    let shifted: Vec<&str> = below.iter().map(|line| line.get(common..).unwrap_or_default()).collect();
    shifted.join("\n").trim_matches('\n').trim_end().to_owned()
}
