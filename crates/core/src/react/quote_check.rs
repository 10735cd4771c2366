//! Decides whether a header of an answer is only quoted from an untrusted text, where no quotation mark says so.
//!
//! | header that an untrusted text has, too, with the same words | counts as the model's own |
//! |---|---|
//! | the call of a tool that may change something | never |
//! | the call of a read-only tool, with the same input | after the model was asked back |
//! | a final answer that continues with other words | after the model was asked back |
//! | a final answer whose first words are all the same | never |
//! | an input below a call of the model's own | always |

use super::header::Section;
use super::untrusted::{Overlap, UntrustedHeaders};
use crate::plan::ToolSpec;

/// A header that counts as text because it is quoted, from harmless to grave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuotedHeader {
    /// A thought or an input.
    Harmless,
    /// Any header in a fence or in another marked quotation.
    InQuotation,
    /// A final answer of an untrusted text.
    FinalAnswer,
    /// A call of an untrusted text; its tool only reads.
    ReadOnlyCall,
    /// A call of an untrusted text; its tool may change something.
    ChangingCall,
}

/// The texts and tools that the headers of an answer are compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuoteCheck<'a> {
    /// `None` when the untrusted texts of the conversation are not known.
    pub(super) untrusted: Option<&'a UntrustedHeaders>,
    /// The offered tools; `None` without a list.
    pub(super) tools: Option<&'a [ToolSpec]>,
    /// The model was asked back about its previous answer, which only quoted.
    pub(super) is_confirmed: bool,
}

impl QuoteCheck<'_> {
    /// The kind of quotation of this header; `None` for the model's own. `content` is the answer from the end of the
    /// header on.
    pub(super) fn quoted_as(&self, section: Section, content: &str) -> Option<QuotedHeader> {
        let untrusted = self.untrusted?;
        let quoted = match section {
            Section::Action => return self.call_quoted_as(untrusted, content),
            Section::FinalAnswer => QuotedHeader::FinalAnswer,
            Section::Thought | Section::ActionInput => QuotedHeader::Harmless,
        };
        let is_doubtful = match untrusted.overlap(section, content) {
            Overlap::None => false,
            Overlap::Prefix => !self.is_confirmed,
            Overlap::Full => true,
        };
        is_doubtful.then_some(quoted)
    }

    fn call_quoted_as(&self, untrusted: &UntrustedHeaders, content: &str) -> Option<QuotedHeader> {
        if !untrusted.has_action(content) {
            return None;
        }
        if !self.only_reads(content) {
            return Some(QuotedHeader::ChangingCall);
        }
        let is_the_same = UntrustedHeaders::input_of(content)
            .is_none_or(|input| untrusted.overlap(Section::ActionInput, input) != Overlap::None);
        (is_the_same && !self.is_confirmed).then_some(QuotedHeader::ReadOnlyCall)
    }

    /// Whether the plan lists the tool as read-only; `true` without a list.
    fn only_reads(&self, name: &str) -> bool {
        let name = UntrustedHeaders::tool_key(name);
        self.tools.is_none_or(|tools| {
            tools
                .iter()
                .any(|tool| tool.only_reads() && UntrustedHeaders::tool_key(&tool.name) == name)
        })
    }

    /// Whether an untrusted text has an observation that begins like this one.
    pub(super) fn observes(&self, content: &str) -> bool {
        self.untrusted
            .is_some_and(|untrusted| untrusted.has_observation(content))
    }

    /// Whether an untrusted text has the word *action* before the name of this tool, in any form.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.untrusted
            .is_some_and(|untrusted| untrusted.mentions_tool(name))
    }
}
