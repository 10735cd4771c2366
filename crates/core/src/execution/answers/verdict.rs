//! Decides by the finish reason whether an answer counts. The page `docs/models.md` has the same table for people.
//!
//! | reason | iteration | the same again | conclusion, synthesis, single call | the same again | summary |
//! |---|---|---|---|---|---|
//! | `stop`, `tool_calls` | take | take | take | take | take |
//! | `max_tokens`, `paused`, `malformed_tool_call`, a call in the text | ask again | fail | ask again | keep | none |
//! | `context_window` | make room, ask again | fail | make room, ask again | keep | none |
//! | `safety`, `recitation`, `error` | fail | fail | switch provider, or ask again | keep | none |
//! | `other`, with calls of a strategy that binds tools | take | take | ask again | keep | none |
//! | `other` | ask again | fail | ask again | keep | none |
//!
//! *Fail* is a failed iteration: the next provider takes over if the plan has one, else the model is asked again; three
//! such answers in a row force the conclusion. *Keep* is the end, with a mark. The answer to a question is an iteration
//! or a conclusion as any other. No call of an answer that does not count is run, and no text of it ends anything.

use crate::execution::decide::Purpose;
use crate::execution::entry::Finish;
use crate::plan::Strategy;
use crate::vocabulary::ErrorCode;

/// The decision about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer counts.
    Take,
    /// The answer does not count; the model gets the reason and is asked again.
    AskAgain,
    /// The answer does not count, and the next provider takes over; without one, the model is asked again.
    Switch(ErrorCode),
    /// The answer does not count: the iteration has failed with this code.
    Fail(ErrorCode),
    /// The model is not asked again: the answer counts, with a mark.
    Keep,
}

/// An answer, as far as the verdict depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub finish: Finish,
    /// The answer has structured calls, and calls are allowed.
    pub has_calls: bool,
    /// A call stands in its text, and it has no structured one.
    pub has_text_call: bool,
    /// The number of answers directly before it that did not count because of their end.
    pub before: u32,
}

/// The verdict on an answer.
pub fn verdict(ended: Ended, strategy: Strategy, purpose: Purpose) -> Verdict {
    let code = ended.code();
    let is_first = ended.before == 0;

    let iterates = purpose == Purpose::Iteration && strategy.uses_tools();
    match ended.kind() {
        Kind::Whole => Verdict::Take,
        Kind::Unknown if iterates && ended.has_calls && strategy.binds_tools() => Verdict::Take,
        Kind::Cut | Kind::Unknown | Kind::Refused if purpose == Purpose::Summary => {
            Verdict::Fail(code)
        }
        Kind::Refused if iterates => Verdict::Fail(code),
        Kind::Cut | Kind::Unknown if iterates && !is_first => Verdict::Fail(code),
        Kind::Cut | Kind::Unknown | Kind::Refused if !is_first => Verdict::Keep,
        Kind::Refused => Verdict::Switch(code),
        Kind::Cut | Kind::Unknown => Verdict::AskAgain,
    }
}

impl Ended {
    fn kind(self) -> Kind {
        match self.finish {
            Finish::Stop | Finish::ToolCalls if self.has_text_call => Kind::Cut,
            Finish::Stop | Finish::ToolCalls => Kind::Whole,
            Finish::MaxTokens
            | Finish::MalformedToolCall
            | Finish::ContextWindow
            | Finish::Paused => Kind::Cut,
            Finish::Safety | Finish::Recitation | Finish::Error => Kind::Refused,
            Finish::Other => Kind::Unknown,
        }
    }

    /// The code of the failure: where the LLM service has one for an answer without a text, the same.
    pub fn code(self) -> ErrorCode {
        match self.finish {
            Finish::Stop | Finish::ToolCalls => ErrorCode::CallInText,
            Finish::MaxTokens => ErrorCode::MaxTokens,
            Finish::MalformedToolCall => ErrorCode::MalformedToolCall,
            Finish::ContextWindow => ErrorCode::ContextWindowExceeded,
            Finish::Safety | Finish::Recitation => ErrorCode::Blocked,
            Finish::Error => ErrorCode::Provider,
            Finish::Paused | Finish::Other => ErrorCode::PartialStream,
        }
    }
}

/// The kind of a finish reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The model has ended the answer.
    Whole,
    /// A shorter or better answer may be whole.
    Cut,
    /// The same provider will hardly give another answer.
    Refused,
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSES: [Purpose; 4] = [
        Purpose::Iteration,
        Purpose::Conclusion,
        Purpose::Synthesis,
        Purpose::Summary,
    ];

    /// Every cell of the table: reason, strategy, purpose, calls, and how many such answers stand before it.
    fn cells() -> Vec<(Ended, Strategy, Purpose)> {
        let mut cells = Vec::new();
        for (finish, strategy) in Finish::ALL
            .into_iter()
            .flat_map(|finish| Strategy::ALL.map(|one| (finish, one)))
        {
            for (purpose, before) in PURPOSES
                .into_iter()
                .flat_map(|purpose| [0, 1, 2].map(|before| (purpose, before)))
            {
                for (has_calls, has_text_call) in [(true, false), (false, true), (false, false)] {
                    cells.push((
                        Ended {
                            finish,
                            has_calls,
                            has_text_call,
                            before,
                        },
                        strategy,
                        purpose,
                    ));
                }
            }
        }
        cells
    }

    #[test]
    fn only_an_answer_that_ended_by_itself_or_has_whole_calls_counts_without_a_mark() {
        let mut taken = 0;
        for (ended, strategy, purpose) in cells() {
            let verdict = verdict(ended, strategy, purpose);
            let has_whole_calls =
                ended.has_calls && strategy.binds_tools() && purpose == Purpose::Iteration;
            let is_whole =
                matches!(ended.finish, Finish::Stop | Finish::ToolCalls) && !ended.has_text_call;
            let counts = is_whole || (ended.finish == Finish::Other && has_whole_calls);
            assert_eq!(
                verdict == Verdict::Take,
                counts,
                "{ended:?} {strategy:?} {purpose:?}"
            );
            taken += usize::from(counts);
        }
        assert_eq!(cells().len(), 10 * 5 * 4 * 3 * 3);
        assert_eq!(
            taken,
            2 * 5 * 4 * 3 * 2 + 3,
            "whole answers, and `other` with calls of the one strategy"
        );
    }

    #[test]
    fn the_last_answer_is_asked_for_once_more_and_then_kept_with_a_mark() {
        for (ended, strategy, purpose) in cells() {
            let verdict = verdict(ended, strategy, purpose);
            let is_last = matches!(purpose, Purpose::Conclusion | Purpose::Synthesis)
                || (purpose == Purpose::Iteration && !strategy.uses_tools());
            let counts = verdict == Verdict::Take;
            assert_eq!(
                verdict == Verdict::Keep,
                is_last && !counts && ended.before > 0,
                "{ended:?} {strategy:?}"
            );
            if is_last && !counts && ended.before == 0 {
                assert!(
                    matches!(verdict, Verdict::AskAgain | Verdict::Switch(_)),
                    "{ended:?}"
                );
            }
        }
    }

    #[test]
    fn an_iteration_is_asked_again_at_most_once_and_then_fails_with_its_reason() {
        let iterations = cells().into_iter().filter(|(_, strategy, purpose)| {
            strategy.uses_tools() && *purpose == Purpose::Iteration
        });
        for (ended, strategy, purpose) in iterations {
            let verdict = verdict(ended, strategy, purpose);
            let may_ask = verdict == Verdict::AskAgain && ended.before == 0;
            assert!(
                verdict == Verdict::Take || may_ask || verdict == Verdict::Fail(ended.code()),
                "{ended:?}"
            );
        }
    }

    #[test]
    fn no_text_of_an_answer_that_was_cut_is_a_summary() {
        for (ended, strategy, purpose) in cells()
            .into_iter()
            .filter(|(.., purpose)| *purpose == Purpose::Summary)
        {
            let is_taken = verdict(ended, strategy, purpose) == Verdict::Take;
            assert_eq!(is_taken, ended.kind() == Kind::Whole, "{ended:?}");
        }
    }
}
