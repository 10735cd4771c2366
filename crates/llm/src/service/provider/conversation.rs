//! The steps of a conversation, as every provider gets them: the results of an answer's calls are one step, in the
//! order of the calls.

use super::error::ProviderError;
use crate::proto::{ConversationMessage, ToolCall};

/// A step of a conversation.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    System(&'a ConversationMessage),
    User(&'a ConversationMessage),
    /// A former answer of a model.
    Answer {
        message: &'a ConversationMessage,
        /// Whether no message of the user follows.
        is_current: bool,
    },
    /// The results of the calls of the last answer, at least one.
    Results(Vec<&'a ConversationMessage>),
}

/// Reads the steps of a request.
///
/// # Errors
/// `invalid_request` when there is a second system message, or an unknown role.
pub(crate) fn steps(messages: &[ConversationMessage]) -> Result<Vec<Step<'_>>, ProviderError> {
    let last_user = messages.iter().rposition(|message| message.role == "user");
    let mut steps = Vec::with_capacity(messages.len());
    let mut has_system = false;
    for (index, message) in messages.iter().enumerate() {
        match message.role.as_str() {
            "system" if has_system => {
                let fault = "only one system message is possible";
                return Err(ProviderError::invalid_request(fault));
            }
            "system" => {
                has_system = true;
                steps.push(Step::System(message));
            }
            "user" => steps.push(Step::User(message)),
            "assistant" => steps.push(Step::Answer {
                message,
                is_current: last_user.is_none_or(|last| index > last),
            }),
            "tool" => match steps.last_mut() {
                Some(Step::Results(results)) => results.push(message),
                Some(Step::System(_) | Step::User(_) | Step::Answer { .. }) | None => {
                    steps.push(Step::Results(vec![message]));
                }
            },
            other => {
                let fault = format!("unknown role '{other}'");
                return Err(ProviderError::invalid_request(fault));
            }
        }
    }
    sort_results(&mut steps);
    Ok(steps)
}

/// Calls that ran in parallel end in any order; the model gets their results in the order of its calls.
fn sort_results(steps: &mut [Step<'_>]) {
    let mut calls: &[ToolCall] = &[];
    for step in steps {
        match step {
            Step::System(_) | Step::User(_) => {}
            Step::Answer { message, .. } => calls = &message.tool_calls,
            Step::Results(results) => results.sort_by_cached_key(|result| {
                position(calls, &result.tool_call_id).unwrap_or(usize::MAX)
            }),
        }
    }
}

/// The position of the call with this id.
pub(crate) fn position(calls: &[ToolCall], id: &str) -> Option<usize> {
    calls.iter().rposition(|call| call.id == id)
}
