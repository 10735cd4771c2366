//! The request for a summary. The alert, the call and the result are in fences that none of them can close.

use super::LongResult;
use crate::code::fence_around;
use crate::execution::conversation::Message;
use crate::execution::entry::{Entry, Role};
use crate::plan::AgentPlan;
use crate::prompt::{line, render};
use crate::readable::cut::{ReadBack, cut};

const SYSTEM: &str = include_str!("../../prompts/summarise_system.md");
const USER: &str = include_str!("../../prompts/summarise_user.md");

/// The limit of the alert and its instructions in the request, in tokens.
const MAX_TASK_TOKENS: u32 = 2_000;
/// The limit of the text before the call, and of its arguments, in tokens.
const MAX_REASON_TOKENS: u32 = 500;
/// The limit of the result in the request, in tokens, whatever the window of the model is.
const MAX_RESULT_TOKENS: u64 = 100_000;
/// The window of a model for which none is configured.
const DEFAULT_WINDOW: u64 = 128_000;
/// The shortest result in a request.
const MIN_RESULT_TOKENS: u32 = 500;

/// The messages that ask for a summary of `text`, the whole result.
pub fn messages(
    plan: &AgentPlan,
    entries: &[Entry],
    long: &LongResult,
    text: &str,
) -> Vec<Message> {
    let answer = entries.iter().rev().find_map(Entry::answer);
    let call = answer.and_then(|answer| answer.calls.iter().find(|call| call.id == long.call_id));
    let task = shortened(&plan.user_prompt, MAX_TASK_TOKENS);
    let reason = answer.map_or("", |answer| &answer.text);
    let reason = shortened(reason, MAX_REASON_TOKENS);
    let arguments = call.map_or("", |call| &call.arguments);
    let arguments = shortened(arguments, MAX_REASON_TOKENS);
    let result = shortened(text, result_tokens(plan));
    let fence = fence_around(&[&task, &reason, &arguments, &result]);
    let values = [
        ("fence", fence),
        ("tool", line(&plan.shown(&long.tool))),
        ("bytes", long.bytes.to_string()),
        ("task", task),
        ("reason", reason),
        ("arguments", arguments),
        ("result", result),
    ];
    let values: Vec<(&str, &str)> = values
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    // English has about three words in four tokens; half of them leaves room.
    let words = (long.max_tokens / 2).clamp(50, 500).to_string();
    vec![
        Message::text(Role::System, &render(SYSTEM, &[("words", &words)])),
        Message::text(Role::User, &render(USER, &values)),
    ]
}

/// Half of the window of the model, because bytes per token are an estimate.
fn result_tokens(plan: &AgentPlan) -> u32 {
    let configured = plan
        .summaries
        .as_ref()
        .map_or(0, |summaries| summaries.provider.context_window);
    let window = if configured == 0 {
        DEFAULT_WINDOW
    } else {
        configured
    };
    u32::try_from((window / 2).min(MAX_RESULT_TOKENS))
        .unwrap_or(u32::MAX)
        .max(MIN_RESULT_TOKENS)
}

fn shortened(text: &str, max_tokens: u32) -> String {
    cut(text, max_tokens, ReadBack::No).unwrap_or_else(|| text.to_owned())
}
