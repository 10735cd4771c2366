//! A conversation as the items of OpenAI's Responses API.
//!
//! They are built here and not by the crate, which keeps neither the ids nor the summaries of former items.

use serde_json::{Map, Value, json};

use super::rebuild::call_id;
use crate::proto::ConversationMessage;
use crate::service::genai::target::Selection;
use crate::service::provider::fields::kind;
use crate::service::provider::names;

/// A text of the system, the user or the model.
pub(super) fn message(role: &str, content: &str) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

/// A former answer from its text and its calls.
pub(super) fn rebuilt(
    message: &ConversationMessage,
    text: &str,
    selection: Selection<'_>,
) -> Vec<Value> {
    let mut items = Vec::new();
    if !text.trim().is_empty() {
        items.push(self::message("assistant", text));
    }
    for call in &message.tool_calls {
        let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
        items.push(json!({
            "type": "function_call",
            "call_id": call_id(&call.id, selection),
            "name": names::in_history(&call.name),
            "arguments": if is_object { &call.arguments } else { "{}" },
        }));
    }
    items
}

/// The result of a call. The interface has no field for failures.
pub(super) fn result(message: &ConversationMessage, selection: Selection<'_>) -> Value {
    let id = call_id(&message.tool_call_id, selection);
    json!({ "type": "function_call_output", "call_id": id, "output": message.content })
}

/// The items of a former answer as they were. Thoughts that are not encrypted are refused, because nothing is stored at
/// the provider; without them, the ids of the other items are refused, too.
pub(super) fn acceptable(mut items: Vec<Value>) -> Vec<Value> {
    let is_refused = |item: &Value| {
        kind(item) == "reasoning" && !item.get("encrypted_content").is_some_and(Value::is_string)
    };
    if !items.iter().any(is_refused) {
        return items;
    }
    items.retain(|item| !is_refused(item));
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.shift_remove("id");
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_as_they_are_unless_their_thoughts_are_lost() {
        let encrypted =
            json!({"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"});
        let plain = json!({"type":"reasoning","id":"rs_2","summary":[]});
        let call =
            json!({"type":"function_call","id":"fc_1","call_id":"1","name":"n","arguments":"{}"});
        let whole = vec![encrypted, call.clone()];
        assert_eq!(acceptable(whole.clone()), whole);
        let without_id = json!({"type":"function_call","call_id":"1","name":"n","arguments":"{}"});
        assert_eq!(acceptable(vec![plain, call]), [without_id]);
    }
}
