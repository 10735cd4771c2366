//! Splits an answer into its sections, line by line.
//!
//! A header is at the beginning of a line, or after the end of a sentence. The last thought, action and input count,
//! and the first final answer. An empty section replaces no other. A new action discards the input before it. These
//! rules follow the reference implementations of this parser; `docs/decisions/0019-departures.md` lists the additional
//! ones:
//!
//! - Inside a final answer, only a thought and an action with its input are headers: an analysis may contain
//!   `Action: restart the pod`, or quote an `Observation:`.
//! - Inside an input, a header is at the beginning of a line that is not indented further: all other text is data.
//! - A header in a different style counts only where it cannot be part of a text.
//! - A header in a quotation is text (`quotes.rs`), and so is one that an untrusted text has, too (`quote_check.rs`).

use super::header::{Header, HeaderKind, HeaderStyle, Section, header_of};
use super::inline_header::{
    ACTION, ACTION_INPUT, FINAL_ANSWER, SplitLine, bare_name, split_after_sentence, split_at_first,
    tool_name,
};
use super::quote_check::{QuoteCheck, QuotedHeader};
use super::quotes::{LineContext, Quotations, unfenced};
use super::section_text::{
    CompleteAction, SectionText, WrittenAction, indent, last_paragraph, next_line,
};
use crate::code::{is_blank, offset};

/// The texts of the sections; `Some("")` for a header without a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) thought: Option<String>,
    pub(super) action: Option<String>,
    pub(super) action_input: Option<String>,
    pub(super) final_answer: Option<String>,
    /// The action is after a final answer.
    pub(super) is_late: bool,
    /// The actions before the last one, with their inputs.
    pub(super) earlier: Vec<WrittenAction>,
    /// One of several actions has no name, or no input.
    pub(super) has_incomplete: bool,
    /// The most serious header that counts as text because it is quoted.
    pub(super) quoted: Option<QuotedHeader>,
    /// The text of the answer without quotations.
    pub(super) own: String,
}

impl Sections {
    /// The names of the sections with a header.
    pub(super) fn found(&self) -> Vec<&'static str> {
        let all = [
            ("thought", &self.thought),
            ("action", &self.action),
            ("action_input", &self.action_input),
            ("final_answer", &self.final_answer),
        ];
        all.into_iter()
            .filter(|(_, text)| text.is_some())
            .map(|(name, _)| name)
            .collect()
    }
}

/// The sections of an answer.
pub(super) fn split(text: &str, check: QuoteCheck<'_>) -> Sections {
    let text = unfenced(text);
    let mut parser = SectionParser {
        text,
        last_paragraph: last_paragraph(text),
        open: None,
        found: FoundSections::default(),
        check,
        quotes: Quotations::new(text),
        quoted: None,
        own: Vec::new(),
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        if !parser.line(line, below) {
            break;
        }
        // Skips empty lines at once: there may be a million of them.
        rest = below.trim_start_matches('\n');
    }
    parser.close(text.len() - rest.len());
    let found = parser.found;
    let awaits_name =
        found.action_input.is_some() && found.action.is_none_or(|action| action.name().is_empty());
    Sections {
        thought: found.thought.map(SectionText::prose),
        action: found.action.map(|piece| piece.name().to_owned()),
        action_input: found.action_input.map(SectionText::input),
        final_answer: found.final_answer.map(SectionText::prose),
        is_late: found.is_late,
        earlier: found
            .earlier
            .into_iter()
            .map(CompleteAction::written)
            .collect(),
        has_incomplete: found.has_incomplete && found.actions > 1,
        quoted: parser.quoted,
        own: if awaits_name {
            parser.own.join("\n")
        } else {
            String::new()
        },
    }
}

/// A header that begins a section.
#[derive(Clone, Copy)]
struct SectionStart<'a> {
    /// Offset at which the section before it ends.
    end: usize,
    section: Section,
    style: HeaderStyle,
    /// The text after the header, up to the end of its line.
    after: &'a str,
    unclosed: &'a str,
}

/// The section that the parser is in.
#[derive(Clone, Copy)]
struct OpenSection<'a> {
    header: SectionStart<'a>,
    /// Indentation of the header's line.
    indent: usize,
    /// Whether the section follows a final answer.
    is_late: bool,
}

#[derive(Default)]
struct FoundSections<'a> {
    thought: Option<SectionText<'a>>,
    action: Option<SectionText<'a>>,
    action_input: Option<SectionText<'a>>,
    final_answer: Option<SectionText<'a>>,
    /// The action is after the final answer.
    is_late: bool,
    /// The actions that another one has replaced, with their inputs.
    earlier: Vec<CompleteAction<'a>>,
    has_incomplete: bool,
    /// The number of headers of actions.
    actions: u32,
}

impl FoundSections<'_> {
    /// Keeps the last action, which a new one replaces.
    fn replace_action(&mut self) {
        self.actions = self.actions.saturating_add(1);
        match (self.action, self.action_input.take()) {
            (Some(action), Some(input)) => self.earlier.push(CompleteAction { action, input }),
            (Some(_), None) => self.has_incomplete = true,
            (None, _) => {}
        }
    }
}

struct SectionParser<'a> {
    text: &'a str,
    last_paragraph: usize,
    open: Option<OpenSection<'a>>,
    found: FoundSections<'a>,
    check: QuoteCheck<'a>,
    quotes: Quotations<'a>,
    quoted: Option<QuotedHeader>,
    /// The lines that are not quoted.
    own: Vec<&'a str>,
}

impl<'a> SectionParser<'a> {
    /// Offset of a part of the text.
    fn offset(&self, part: &str) -> usize {
        offset(self.text, part)
    }

    /// The text from one of its parts to its end.
    fn from(&self, part: &str) -> &'a str {
        self.text.get(self.offset(part)..).unwrap_or_default()
    }

    fn section(&self) -> Option<Section> {
        self.open.map(|open| open.header.section)
    }

    fn line_context(&self) -> LineContext {
        match self.section() {
            Some(Section::ActionInput) => LineContext::ActionInput,
            Some(Section::Thought | Section::Action | Section::FinalAnswer) | None => {
                LineContext::Prose
            }
        }
    }

    /// Reads a line; returns `false` if the answer ends before it.
    fn line(&mut self, raw: &'a str, below: &'a str) -> bool {
        let line = raw.trim_start_matches(is_blank);
        if line.is_empty() {
            return true;
        }
        let context = self.line_context();
        if self.quotes.hides(raw, context) {
            let is_header = context == LineContext::Prose
                && header_of(line.trim_start_matches(['>', ' '])).is_some();
            self.quoted = self
                .quoted
                .max(is_header.then_some(QuotedHeader::InQuotation));
            return true;
        }
        // Two spaces: models put a single one before a token.
        let is_data = self.open.is_some_and(|open: OpenSection<'_>| {
            open.header.section == Section::ActionInput && indent(raw) >= open.indent + 2
        });
        if is_data {
            self.quotes.track(raw, raw, LineContext::ActionInput);
            return true;
        }
        let header = header_of(line).filter(|header| !header.is_code());
        if self.is_end(line, header) {
            return false;
        }
        let mut after = raw;
        match self.candidate(raw, line, header, below) {
            Some(header) if self.is_own(header) => {
                after = self.begin(header, indent(raw), below);
                self.own.push(raw);
            }
            Some(header) => after = header.after,
            None => self.own.push(raw),
        }
        let context = self.line_context();
        self.quotes.track(raw, after, context);
        true
    }

    /// Whether a line begins an invented observation or a closing remark: the rest of the answer is made up. In a final
    /// answer only the remark counts, in its last paragraph.
    fn is_end(&self, line: &str, header: Option<Header<'_>>) -> bool {
        const OWN_WORDS: [&str; 3] = [
            "Please specify",
            "what Action you want to take",
            "Error in reasoning",
        ];
        let in_answer = self.section() == Some(Section::FinalAnswer);
        if line.starts_with("[Based on") {
            return !in_answer || self.offset(line) >= self.last_paragraph;
        }
        header.is_some_and(|header: Header<'_>| {
            let is_sure = matches!(header.style, HeaderStyle::Plain | HeaderStyle::Emphasised);
            let is_meant = !in_answer && header.kind == HeaderKind::Observation && is_sure;
            is_meant
                && !OWN_WORDS.iter().any(|own| line.contains(own))
                && !self.check.observes(self.from(header.after))
        })
    }

    /// Whether a header is the model's own, and not quoted from an untrusted text.
    fn is_own(&mut self, header: SectionStart<'a>) -> bool {
        let is_awaited =
            header.section == Section::ActionInput && self.section() == Some(Section::Action);
        let quoted = if is_awaited {
            None
        } else {
            self.check
                .quoted_as(header.section, self.from(header.after))
        };
        self.quoted = self.quoted.max(quoted);
        quoted.is_none()
    }

    /// The header of a line, quoted or not.
    fn candidate(
        &self,
        raw: &str,
        line: &'a str,
        header: Option<Header<'a>>,
        below: &str,
    ) -> Option<SectionStart<'a>> {
        if let Some(Header {
            kind: HeaderKind::Section(section),
            style,
            after,
            unclosed,
        }) = header
        {
            if self.accepts(section, style, after, below) {
                return Some(SectionStart {
                    end: self.offset(raw),
                    section,
                    style,
                    after,
                    unclosed,
                });
            }
            if style == HeaderStyle::Plain {
                return None;
            }
        }
        match self.section() {
            Some(Section::ActionInput) => None,
            // After `Thought` without a colon, a model may announce a later action.
            Some(Section::Action | Section::Thought | Section::FinalAnswer) | None
                if line.starts_with("Thought ") =>
            {
                None
            }
            Some(Section::Action) => self
                .input_inside(line)
                .or_else(|| self.header_inside(line, below)),
            Some(Section::Thought | Section::FinalAnswer) | None => self.header_inside(line, below),
        }
    }

    /// Whether a header at the beginning of a line begins a section, or is text of the open one.
    fn accepts(&self, section: Section, style: HeaderStyle, after: &str, below: &str) -> bool {
        let open = self.section();
        let is_sure = matches!(style, HeaderStyle::Plain | HeaderStyle::Emphasised);
        match (section, open) {
            (Section::FinalAnswer, _) if self.has_answer() => false,
            (Section::Thought, Some(Section::FinalAnswer)) => style == HeaderStyle::Plain,
            (Section::Action, Some(Section::FinalAnswer)) => self.is_call(after, below),
            (Section::FinalAnswer | Section::ActionInput, Some(Section::FinalAnswer)) => false,
            (Section::Action, _) => match style {
                HeaderStyle::Plain => true,
                HeaderStyle::Emphasised => {
                    tool_name(after).is_some() || self.is_word_with_input(after, below)
                }
                HeaderStyle::Variant | HeaderStyle::Listed => self.is_call(after, below),
            },
            (_, Some(Section::ActionInput)) => is_sure,
            (Section::Thought, Some(Section::Thought | Section::Action)) => is_sure,
            (Section::Thought, None) => true,
            (Section::ActionInput, _) => {
                let is_awaited = open == Some(Section::Action) || self.found.action.is_some();
                is_sure || is_awaited || after.trim_start().starts_with('{')
            }
            (Section::FinalAnswer, _) => {
                let is_listed = self
                    .open
                    .is_none_or(|open| open.header.style == HeaderStyle::Listed);
                style != HeaderStyle::Listed || is_listed
            }
        }
    }

    /// A header after the end of a sentence.
    fn header_inside(&self, line: &'a str, below: &str) -> Option<SectionStart<'a>> {
        // Fast path: most lines have no colon after a sentence.
        if !line
            .rsplit_once(':')
            .is_some_and(|(head, _)| head.len() > ACTION.len() && head.contains(['.', '!', '?']))
        {
            return None;
        }
        if !self.has_answer()
            && let Some(divided) = split_after_sentence(line, FINAL_ANSWER)
        {
            return Some(self.divided(divided, Section::FinalAnswer));
        }
        let in_answer = self.section() == Some(Section::FinalAnswer);
        if let Some(divided) = split_after_sentence(line, ACTION)
            .filter(|divided| !in_answer || self.is_call(divided.after, below))
        {
            return Some(self.divided(divided, Section::Action));
        }
        let awaits_input = !in_answer
            && self
                .found
                .action
                .is_some_and(|action| !action.name().is_empty());
        let divided = if awaits_input {
            split_after_sentence(line, ACTION_INPUT)
        } else {
            None
        };
        divided.map(|divided| self.divided(divided, Section::ActionInput))
    }

    /// `k8s.get Action Input: {}`: action and input on one line.
    fn input_inside(&self, line: &'a str) -> Option<SectionStart<'a>> {
        split_at_first(line, ACTION_INPUT)
            .map(|divided| self.divided(divided, Section::ActionInput))
    }

    fn divided(&self, line: SplitLine<'a>, section: Section) -> SectionStart<'a> {
        SectionStart {
            end: self.offset(line.before) + line.before.len(),
            section,
            style: HeaderStyle::Plain,
            after: line.after,
            unclosed: line.unclosed,
        }
    }

    /// Whether there is a final answer: only the first one counts.
    fn has_answer(&self) -> bool {
        self.section() == Some(Section::FinalAnswer) || self.found.final_answer.is_some()
    }

    /// Begins a section, whose first line may contain the next header. Returns the text after the last header of the
    /// line.
    fn begin(&mut self, header: SectionStart<'a>, indent: usize, below: &str) -> &'a str {
        let mut next = Some(header);
        let mut after = header.after;

        while let Some(header) = next {
            after = header.after;
            self.close(header.end);
            let is_late = self
                .found
                .final_answer
                .is_some_and(|answer| !answer.is_blank());
            self.open = Some(OpenSection {
                header,
                indent,
                is_late,
            });
            if header.section == Section::Action {
                self.found.replace_action();
            }
            next = match header.section {
                Section::Thought | Section::FinalAnswer => self.header_inside(header.after, below),
                Section::Action => self.input_inside(header.after),
                Section::ActionInput => None,
            };
            next = next.filter(|header| self.is_own(*header));
        }
        after
    }

    /// Stores the open section, which ends at `end`.
    fn close(&mut self, end: usize) {
        let Some(open) = self.open.take() else {
            return;
        };
        let header = open.header;
        let text = self
            .text
            .get(self.offset(header.after)..end)
            .unwrap_or_default();
        let piece = SectionText {
            text,
            unclosed: header.unclosed,
            indent: open.indent,
        };
        let (slot, is_empty) = match header.section {
            Section::Thought => (&mut self.found.thought, piece.is_blank()),
            Section::Action => (&mut self.found.action, piece.name().is_empty()),
            Section::ActionInput => (&mut self.found.action_input, piece.is_blank()),
            Section::FinalAnswer => (&mut self.found.final_answer, piece.is_blank()),
        };
        let is_nameless = header.section == Section::Action && is_empty;
        self.found.has_incomplete |= is_nameless;
        if slot.is_none() || !is_empty {
            *slot = Some(piece);
            if header.section == Section::Action {
                self.found.is_late = open.is_late;
            }
        }
    }

    /// Whether the name of a tool is after `Action:`, and an input follows.
    fn is_call(&self, after: &str, below: &str) -> bool {
        self.is_followed(after, below, |name| tool_name(name).is_some())
    }

    /// Whether a single word is after `Action:`, and an input follows.
    fn is_word_with_input(&self, after: &str, below: &str) -> bool {
        self.is_followed(after, below, |name| {
            let name = bare_name(name);
            !name.is_empty() && !name.contains(char::is_whitespace)
        })
    }

    /// Whether the text after `Action:`, in its line or the next one, is a wanted name and an input follows. Reads at
    /// most two lines.
    fn is_followed(&self, after: &str, below: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
        if let Some(SplitLine { before, .. }) = split_at_first(after, ACTION_INPUT) {
            return is_wanted(before);
        }
        let (name, below) = if after.trim().is_empty() {
            next_line(below)
        } else {
            (after, below)
        };
        let (next, _) = next_line(below);
        is_wanted(name)
            && !self.quotes.is_deep(next)
            && header_of(next).is_some_and(|header: Header<'_>| {
                header.kind == HeaderKind::Section(Section::ActionInput)
            })
    }
}
