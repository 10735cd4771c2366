//! Interprets a model's answer to a probe. Pure: the rules are those for the answers of an investigation.

use serde::Serialize;

use super::{ArgumentFit, TOOL, called, tool};
use tarsy_core::execution::answers::verdict::{Ended, Verdict, verdict};
use tarsy_core::execution::decide::Purpose;
use tarsy_core::plan::Strategy;
use tarsy_core::react::{Reply, ReplyKind};
use tarsy_core::text_calls::{self, Labels};
use tarsy_core::visible::is_blank;
use tarsy_core::vocabulary::ErrorCode;
use tarsy_llm::client::Observed;

/// The classification of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A whole call of the tool, whose arguments fit its schema.
    Called,
    /// The same, with arguments that had one sensible reading.
    CalledFitted,
    /// A call of the tool whose arguments do not fit its schema.
    UnfitArguments,
    /// A call of a name that the tool does not have.
    OtherName,
    /// A call in the text, in the markup of a model.
    CallInText,
    CallInReasoning,
    /// A text without a call.
    NoCall,
    /// Neither a call nor a text.
    Empty,
    /// An answer that was cut off, blocked or paused.
    CutOff,
    /// No answer.
    Failed,
}

/// The interpretation of an answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interpretation {
    pub outcome: Outcome,
    /// The name that was called, if the tool has another one.
    pub called: Option<String>,
    /// The reason why the call, the answer or the request cannot be used.
    pub reason: Option<String>,
    /// The markup of a call in the text or the reasoning.
    pub markup: Option<String>,
    /// The first tag around reasoning in the text.
    pub reasoning_tag: Option<String>,
    /// The tags of reasoning have no certain reading.
    pub is_unsure: bool,
}

impl Interpretation {
    fn new(outcome: Outcome, observed: &Observed) -> Self {
        Self {
            outcome,
            called: None,
            reason: None,
            markup: None,
            reasoning_tag: observed.reasoning_tag.clone(),
            is_unsure: observed.is_unsure,
        }
    }

    /// A request without an answer, for this reason.
    pub(super) fn failed(reason: String) -> Self {
        Self {
            reason: Some(reason),
            ..Self::new(Outcome::Failed, &Observed::default())
        }
    }

    /// Whether an investigation would send the call.
    pub fn fits(&self) -> bool {
        matches!(self.outcome, Outcome::Called | Outcome::CalledFitted)
    }
}

/// The answer to a request with the tool; `fit` is that of the call that counts.
pub(super) fn native(observed: &Observed, fit: Option<&ArgumentFit>) -> Interpretation {
    let has_calls = !observed.answer.calls.is_empty();
    let markup = if has_calls {
        None
    } else {
        markup(&observed.answer.text)
    };
    let ended = Ended {
        finish: observed.answer.finish,
        has_calls,
        has_text_call: markup.is_some(),
        before: 0,
    };
    if verdict(ended, Strategy::NativeThinking, Purpose::Iteration) != Verdict::Take {
        return not_counted(ended, markup, observed);
    }
    match (called(observed), fit) {
        (Some(call), Some(fit)) => of_call(&call.tool, fit, observed),
        (Some(_), None) | (None, _) => without_call(observed),
    }
}

/// The answer to a request for a call as text.
pub(super) fn react(
    observed: &Observed,
    reply: &Reply,
    fit: Option<&ArgumentFit>,
) -> Interpretation {
    let markup = if reply.kind == ReplyKind::Action {
        None
    } else {
        markup(&observed.answer.text)
    };
    let ended = Ended {
        finish: observed.answer.finish,
        has_calls: false,
        has_text_call: markup.is_some(),
        before: 0,
    };
    if verdict(ended, Strategy::React, Purpose::Iteration) != Verdict::Take {
        return not_counted(ended, markup, observed);
    }
    let name = reply.action.as_deref().unwrap_or_default();
    match (reply.kind, fit) {
        (ReplyKind::Action, Some(fit)) => of_call(name, fit, observed),
        (ReplyKind::UnknownTool, _) => Interpretation {
            called: Some(name.to_owned()),
            ..Interpretation::new(Outcome::OtherName, observed)
        },
        (ReplyKind::Malformed, _) if !is_blank(&observed.answer.text) => Interpretation {
            reason: reply.problem.clone(),
            ..Interpretation::new(Outcome::NoCall, observed)
        },
        (ReplyKind::Action, None) | (ReplyKind::Malformed | ReplyKind::Final, _) => {
            without_call(observed)
        }
    }
}

/// An answer whose end does not let it count.
fn not_counted(ended: Ended, markup: Option<String>, observed: &Observed) -> Interpretation {
    let (outcome, reason) = if ended.code() == ErrorCode::CallInText {
        (Outcome::CallInText, None)
    } else {
        (Outcome::CutOff, Some(ended.finish.as_str().to_owned()))
    };
    Interpretation {
        markup,
        reason,
        ..Interpretation::new(outcome, observed)
    }
}

fn of_call(name: &str, fit: &ArgumentFit, observed: &Observed) -> Interpretation {
    if name != TOOL {
        return Interpretation {
            called: Some(name.to_owned()),
            ..Interpretation::new(Outcome::OtherName, observed)
        };
    }
    match fit {
        ArgumentFit::AsWritten => Interpretation::new(Outcome::Called, observed),
        ArgumentFit::Fitted => Interpretation::new(Outcome::CalledFitted, observed),
        ArgumentFit::Unfit(faults) => Interpretation {
            reason: Some(faults.clone()),
            ..Interpretation::new(Outcome::UnfitArguments, observed)
        },
    }
}

fn without_call(observed: &Observed) -> Interpretation {
    if !is_blank(&observed.answer.text) {
        return Interpretation::new(Outcome::NoCall, observed);
    }
    let markup = markup(&observed.answer.thinking);
    let outcome = if markup.is_some() {
        Outcome::CallInReasoning
    } else {
        Outcome::Empty
    };
    Interpretation {
        markup,
        ..Interpretation::new(outcome, observed)
    }
}

/// The markup of the first call in a text.
fn markup(text: &str) -> Option<String> {
    let call = text_calls::first(text, &[tool()], Labels::Call, |_| false);
    call.map(|call| text_calls::markup_of(call).to_owned())
}
