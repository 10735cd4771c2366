//! Whether a header of an answer was quoted from outside, where no mark says so.
//!
//! | header, with its words outside | counts |
//! |---|---|
//! | the call of a tool that may change something | never |
//! | the same call of a read-only tool, with the same input | when the model was asked back |
//! | an end that goes on with other words | when the model was asked back |
//! | an end, all of its first words | never |
//! | an input below a call of the model's own | always |

use super::heading::Section;
use super::outside::{Outside, Said};
use crate::investigation::plan::ToolSpec;

/// Why a header counts as text, from harmless to grave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quoted {
    /// Neither a call nor an end.
    Other,
    /// It stands between fences or in another quotation.
    Marked,
    /// An end that stands outside.
    End,
    /// A call that stands outside.
    Call,
    /// The same of a tool that may change something.
    Change,
}

/// What an answer is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt<'a> {
    /// What came from outside; `None` when nothing is known of it.
    pub(super) outside: Option<&'a Outside>,
    /// What is offered; `None` without a list.
    pub(super) tools: Option<&'a [ToolSpec]>,
    /// The model was asked back about the answer before this one.
    pub(super) is_meant: bool,
}

impl Doubt<'_> {
    /// Why this header is text; `content` goes from its end to that of the answer.
    pub(super) fn about(&self, section: Section, content: &str) -> Option<Quoted> {
        let outside = self.outside?;
        let is_doubtful = |said| match said {
            Said::No => false,
            Said::Begun => !self.is_meant,
            Said::Whole => true,
        };
        match section {
            Section::Action => self.about_call(outside, content),
            Section::FinalAnswer => is_doubtful(outside.says(section, content)).then_some(Quoted::End),
            Section::Thought | Section::ActionInput => {
                is_doubtful(outside.says(section, content)).then_some(Quoted::Other)
            }
        }
    }

    fn about_call(&self, outside: &Outside, content: &str) -> Option<Quoted> {
        if !outside.calls(content) {
            return None;
        }
        if !self.only_reads(content) {
            return Some(Quoted::Change);
        }
        let is_the_same =
            Outside::input_of(content).is_none_or(|input| outside.says(Section::ActionInput, input) != Said::No);
        (is_the_same && !self.is_meant).then_some(Quoted::Call)
    }

    /// Whether the tool is known to change nothing.
    fn only_reads(&self, name: &str) -> bool {
        let name = Outside::name(name);
        self.tools.is_none_or(|tools| tools.iter().any(|tool| tool.read_only && Outside::name(&tool.name) == name))
    }

    /// Whether an observation of the answer stands outside.
    pub(super) fn observes(&self, content: &str) -> bool {
        self.outside.is_some_and(|outside| outside.observes(content))
    }

    /// Whether outside, in whatever form, this tool stands behind the word action.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.outside.is_some_and(|outside| outside.mentions(name))
    }
}
