//! The answers that did not count, and the one that counts if no other comes.

use super::State;
use crate::execution::answers::verdict::{Ended, Verdict, verdict};
use crate::execution::decide::Purpose;
use crate::execution::entry::{About, Answer, Entry, FailureSource, Finish, Mark, ToolResult};
use crate::react;
use crate::read_result;
use crate::text_calls::{self, Labels};
use crate::visible::is_blank;
use crate::vocabulary::ErrorCode;

/// An answer that ends the execution if no other one comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerSoFar {
    pub analysis: String,
    pub mark: Option<Mark>,
}

impl State {
    /// Whether the next answer counts, as its reason to end and the answers before it decide.
    pub fn verdict(&self, answer: &Answer) -> Verdict {
        verdict(self.end_of(answer), self.plan.strategy, self.purpose())
    }

    /// The reason for which an answer does not count, as a word of events and metrics; `None` for one that does.
    pub fn why_not_taken(&self, answer: &Answer) -> Option<&'static str> {
        match self.verdict(answer) {
            Verdict::Take | Verdict::Keep => None,
            Verdict::AskAgain | Verdict::Switch(_) | Verdict::Fail(_) => {
                let has_ended = matches!(answer.finish, Finish::Stop | Finish::ToolCalls);
                Some(if has_ended {
                    ErrorCode::CallInText.as_str()
                } else {
                    answer.finish.as_str()
                })
            }
        }
    }

    /// An answer, as far as the verdict depends on it.
    pub fn end_of(&self, answer: &Answer) -> Ended {
        let has_calls = !self.next_is_last() && !answer.calls.is_empty();
        let has_text_call = self.has_text_call(answer);
        Ended {
            finish: answer.finish,
            has_calls,
            has_text_call,
            before: self.cut_answers,
        }
    }

    /// Whether a call stands in the text of an answer without structured calls. In the `ReAct` format the parser
    /// decides about a text that is no last answer.
    fn has_text_call(&self, answer: &Answer) -> bool {
        let is_parsed = self.plan.strategy.writes_calls() && !self.next_is_last();
        answer.calls.is_empty() && !is_parsed && self.text_call(&answer.text).is_some()
    }

    /// The first call that the model has left in a text of its own, from its markup on.
    pub(crate) fn text_call<'t>(&self, text: &'t str) -> Option<&'t str> {
        let labels = if self.plan.strategy.binds_tools() {
            Labels::Call
        } else {
            Labels::Format
        };
        text_calls::first(text, &self.plan.tools, labels, |snippet| {
            self.texts_from_outside()
                .any(|outside| text_calls::has_snippet(outside, snippet))
        })
    }

    /// The texts of the conversation that the model may quote.
    fn texts_from_outside(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(Entry::text_from_outside)
    }

    /// The purpose of the next model call.
    fn purpose(&self) -> Purpose {
        match self.concluding {
            Some(_) => Purpose::Conclusion,
            None if self.plan.strategy.synthesises() => Purpose::Synthesis,
            None => Purpose::Iteration,
        }
    }

    /// Whether an answer is empty: no text that is shown, and no calls. Reasoning is no text.
    pub(crate) fn is_empty_answer(&self, answer: &Answer) -> bool {
        is_blank(&answer.text) && answer.calls.is_empty()
    }

    /// Consecutive empty answers.
    pub fn empty_answers(&self) -> u32 {
        self.empty_answers
    }

    /// Whether the last answer of the current provider was cut off at its output limit, maybe before its first word.
    /// Another failure in between changes nothing.
    pub(crate) fn was_cut_at_limit(&self) -> bool {
        let mut of_provider = self
            .entries
            .iter()
            .rev()
            .take_while(|entry| entry.switched_to().is_none());
        let last = of_provider.find_map(|entry: &Entry| {
            if let Entry::Failed {
                source: FailureSource::Model,
                code,
                ..
            } = entry
            {
                (ErrorCode::parse(code) == ErrorCode::MaxTokens).then_some(Finish::MaxTokens)
            } else {
                entry.answer().map(|answer| answer.finish)
            }
        });
        last == Some(Finish::MaxTokens)
    }

    /// The tools of servers whose calls were sent and have a result.
    pub(crate) fn answered_tools(&self) -> impl Iterator<Item = &str> {
        self.results_of_servers().map(|result| result.tool.as_str())
    }

    /// Whether a tool of a server has given a result that is no error, or a sub-agent an answer.
    pub(crate) fn has_answer_of_tool(&self) -> bool {
        self.results_of_servers().any(|result| !result.is_error) || self.has_answer_of_sub_agent()
    }

    fn results_of_servers(&self) -> impl Iterator<Item = &ToolResult> {
        let results = self.entries.iter().filter_map(Entry::result);
        results.filter(|result| result.not_sent.is_none() && !read_result::is_own(&result.tool))
    }

    /// Counts an answer that does not count, and keeps the text of a last one that was cut off.
    pub(super) fn judge(&mut self, answer: &Answer) {
        let verdict = self.verdict(answer);
        let is_empty = self.is_empty_answer(answer);
        match verdict {
            // An empty answer between two that were cut off changes nothing.
            Verdict::Take if is_empty => {}
            Verdict::Take => self.cut_answers = 0,
            Verdict::Keep | Verdict::AskAgain | Verdict::Switch(_) | Verdict::Fail(_) => {
                self.cut_answers += 1
            }
        }
        if verdict != Verdict::Take {
            let analysis = if self.next_is_last() {
                self.text_of(answer)
            } else {
                String::new()
            };
            if !is_blank(&analysis) {
                self.so_far = Some(AnswerSoFar {
                    analysis,
                    mark: Some(Mark::Incomplete),
                });
            }
        } else if is_empty {
            self.empty_answers += 1;
        } else {
            self.empty_answers = 0;
            self.failures.in_a_row = 0;
        }
    }

    /// The message of the loop that was appended last. After one about a final answer, that answer stands until another
    /// one comes.
    pub(super) fn read_feedback(&mut self, about: Option<&About>) {
        self.has_feedback |= about != Some(&About::Waited);
        if let Some(About::Answer(_)) = about {
            self.was_asked_again = true;
            let last = self.entries.iter().rev().find_map(|entry| entry.answer());
            let analysis = last
                .map(|answer| self.text_of(answer))
                .filter(|text| !is_blank(text));
            if let Some(analysis) = analysis {
                self.so_far = Some(AnswerSoFar {
                    analysis,
                    mark: None,
                });
            }
        }
    }

    /// The text of an answer as an analysis, up to a call that stands in it.
    fn text_of(&self, answer: &Answer) -> String {
        let analysis = match self.plan.strategy.writes_calls() {
            true => react::conclude(&answer.text, &self.untrusted).analysis,
            false => answer.text.clone(),
        };
        self.without_call(&analysis).to_owned()
    }

    /// The text up to the call that the model has left in it.
    pub fn without_call<'t>(&self, text: &'t str) -> &'t str {
        self.text_call(text)
            .and_then(|call| text.strip_suffix(call))
            .map_or(text, str::trim_end)
    }
}
