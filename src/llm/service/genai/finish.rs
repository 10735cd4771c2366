//! Why the model stopped: the words of all providers of this backend.

use crate::llm::service::provider::finish::Finish;

/// The kind of a reason of a provider.
pub(super) fn of(reason: &str) -> Finish {
    match reason {
        "stop" | "end_turn" | "stop_sequence" | "completed" | "complete" | "eos" | "tool_calls" | "tool_use"
        | "function_call" => Finish::Stop,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "model_context_window_exceeded"
        | "incomplete" => Finish::MaxTokens,
        "content_filter" | "content_filtered" | "refusal" | "guardrail_intervened" | "safety" => Finish::Safety,
        "malformed_tool_use" | "malformed_model_output" => Finish::MalformedToolCall,
        "pause_turn" | "load" | "unload" | "cancelled" | "error" => Finish::Other,
        _ => Finish::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::service::provider::finish::Written;

    #[test]
    fn every_reason_has_a_word() {
        for (reason, written, word) in [
            ("end_turn", Written::Text, "stop"),
            ("tool_use", Written::Calls, "tool_calls"),
            ("completed", Written::Calls, "tool_calls"),
            ("length", Written::Text, "max_tokens"),
            ("max_output_tokens", Written::Text, "max_tokens"),
            ("refusal", Written::Text, "safety"),
            ("pause_turn", Written::Text, "other"),
            ("invented_tomorrow", Written::Text, "unknown"),
        ] {
            assert_eq!(of(reason).word(written), word, "{reason}");
        }
    }
}
