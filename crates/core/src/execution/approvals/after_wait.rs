//! The message to the model after calls have waited: how long, and what people wrote.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::execution::entry::{ApprovalEnded, ApprovalOutcome, Entry};
use crate::execution::results::indented;
use crate::execution::state::{EndedWait, State};
use crate::prompt::line;
use crate::readable::format;
use crate::visible::visible;

/// A wait that is longer is stated.
const SHORT_WAIT: Duration = Duration::from_mins(10);
/// Characters of a comment.
const MAX_COMMENT: usize = 2_000;

/// The message that the model gets before its next answer; `None` if it knows of every wait.
pub(crate) fn after_wait(state: &State) -> Option<Entry> {
    let waits = state.untold_waits();
    let longest = waits.iter().map(|wait| wait.ended.waited_secs).max()?;
    let longest = Duration::from_secs(longest);
    let passed = (longest > SHORT_WAIT).then(|| {
        format!(
            "{} have passed; what the results above show may have changed.",
            format::span(longest)
        )
    });
    let comments = waits.iter().filter_map(|wait| comment(state, wait));
    let parts: Vec<String> = passed.into_iter().chain(comments).collect();
    let content = parts.join("\n");
    (!content.is_empty()).then_some(Entry::AfterWait { content })
}

/// The words of the person who decided, indented below a line of tarsy.
fn comment(state: &State, wait: &EndedWait) -> Option<String> {
    let comment: String = visible(wait.ended.comment.as_deref()?)
        .trim()
        .chars()
        .take(MAX_COMMENT)
        .collect();
    if comment.is_empty() {
        return None;
    }
    let who = who(&wait.ended);
    let has = decided(wait.ended.outcome);
    let tool = state.plan().shown(&wait.tool);
    Some(format!(
        "A person{who} who {has} {tool} wrote:\n{}",
        indented(&comment)
    ))
}

/// The person, the channel and the time, as far as they are known.
fn who(ended: &ApprovalEnded) -> String {
    let name = ended.by.last().map(|name| line(&visible(name)));
    let channel = ended.channel.map(|channel| channel.as_str().to_owned());
    let at = ended
        .decided_at
        .map(|at: DateTime<Utc>| at.format("%H:%M UTC").to_string());
    let known: Vec<String> = [name, channel, at].into_iter().flatten().collect();
    if known.is_empty() {
        String::new()
    } else {
        format!(" ({})", known.join(", "))
    }
}

fn decided(outcome: ApprovalOutcome) -> &'static str {
    match outcome {
        ApprovalOutcome::Denied => "denied",
        ApprovalOutcome::DeniedSession => "denied every call of",
        ApprovalOutcome::Approved | ApprovalOutcome::Lapsed | ApprovalOutcome::Frozen => "approved",
        ApprovalOutcome::Expired
        | ApprovalOutcome::Withdrawn
        | ApprovalOutcome::ToolChanged
        | ApprovalOutcome::NotAsked => "decided about",
    }
}
