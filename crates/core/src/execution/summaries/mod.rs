//! Summaries of long results: the choice of results, the request for a summary, and the result that the summary
//! replaces.
//!
//! A result is stored first, cut as always. Then a model is asked, and its summary is the fact `summarised`, which
//! replaces the text of the result in the conversation. So a crash loses at most a summary: it is made again if it was
//! not committed. Without a summary the cut result stays.

pub mod request;

use super::answers::verdict::{Ended, Verdict, verdict};
use super::decide::Purpose;
use super::entry::{Answer, Entry, Summary};
use super::results::{plain, with_text};
use crate::plan::{AgentPlan, Strategy};
use crate::read_result;
use crate::readable::cut::{ReadBack, bytes_of};
use crate::readable::presentation::Shown;
use crate::readable::text::beginning;

/// Summaries that are made at the same time and committed together.
pub const MAX_AT_ONCE: usize = 4;

/// A result that needs a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongResult {
    pub call_id: String,
    /// The full name, `server.tool`.
    pub tool: String,
    /// Number of the result's event.
    pub event: u32,
    /// Bytes of the whole result.
    pub bytes: u64,
    /// The longest summary.
    pub max_tokens: u32,
}

/// The result of this entry, if the plan wants a summary of it. An error is short or is cut: its words count.
pub(super) fn long_result(
    plan: &AgentPlan,
    entry: &Entry,
    event: Option<u32>,
) -> Option<LongResult> {
    let summaries = plan.summaries.as_ref()?;
    let result = entry.result()?;
    let event = event?;

    if result.is_error || result.tool == read_result::TOOL {
        return None;
    }
    let over = summaries.over_tokens(&result.tool)?;
    let shown = plain(&result.tool, &result.content).len();
    let shown = u64::try_from(shown).unwrap_or(u64::MAX);
    // Marks and tables leave nothing out that a summary would have: only a cut text is a part of its result.
    let is_complete = result
        .facts
        .as_ref()
        .is_some_and(|facts| !facts.has(Shown::Cut));
    let bytes = if is_complete {
        shown
    } else {
        result.whole_bytes.max(shown)
    };
    let is_long = bytes > u64::try_from(bytes_of(over)).unwrap_or(u64::MAX);
    is_long.then(|| LongResult {
        call_id: result.call_id.clone(),
        tool: result.tool.clone(),
        event,
        bytes,
        max_tokens: over.min(plan.limits.max_tool_result_tokens),
    })
}

/// The summary from the model's answer.
pub fn made(long: &LongResult, answer: &Answer) -> Summary {
    let text = answer.text.trim();
    let limit = bytes_of(long.max_tokens);
    let usage = answer.usage;

    let ended = Ended {
        finish: answer.finish,
        has_calls: false,
        has_text_call: false,
        before: 0,
    };
    if verdict(ended, Strategy::SingleCall, Purpose::Summary) != Verdict::Take {
        let error = format!("the summary does not count: {}", answer.finish.in_words());
        return Summary {
            usage,
            ..missing(long, error)
        };
    }
    let kept = beginning(text, limit);
    let content = if kept.len() < text.len() {
        format!("{kept}\n[the summary is cut here]")
    } else {
        kept.to_owned()
    };
    let error = if content.is_empty() {
        "the model gave an empty summary".to_owned()
    } else {
        String::new()
    };
    Summary {
        call_id: long.call_id.clone(),
        content,
        error,
        usage,
    }
}

/// The fact that there is no summary.
pub fn missing(long: &LongResult, error: String) -> Summary {
    Summary {
        call_id: long.call_id.clone(),
        error,
        ..Summary::default()
    }
}

/// The reason why no model is asked for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
pub enum NotAsked {
    #[strum(serialize = "the result is not stored")]
    NotStored,
    #[strum(serialize = "no time is left in this iteration")]
    NoTime,
    #[strum(serialize = "no provider")]
    NoProvider,
}

crate::words!(NotAsked, ALL);

/// The fact that no model was asked for a summary.
pub fn not_asked(long: &LongResult, why: NotAsked) -> Summary {
    missing(long, why.as_str().to_owned())
}

impl Summary {
    /// Whether a model was asked for it. The error of a call has its code in front, so none is one of these.
    pub(crate) fn was_asked_for(&self) -> bool {
        NotAsked::ALL.iter().all(|why| self.error != why.as_str())
    }
}

/// The entry of a result with the summary in place of its text.
pub(super) fn in_place(entry: &Entry, summary: &Summary, read_back: ReadBack) -> Entry {
    let whole = match read_back {
        ReadBack::With(tool) => format!("{tool} shows the whole result"),
        ReadBack::No => "the whole result is stored".to_owned(),
    };
    let head = format!("[a summary of the result by a model; {whole}]");
    with_text(entry, &format!("{head}\n{}", summary.content))
}

#[cfg(test)]
mod tests;
