//! Maps the finish reasons of all providers of this backend to those of the protocol.

use crate::service::provider::finish::Finish;

/// The kind of a reason of a provider.
pub(super) fn parse(reason: &str) -> Finish {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "stop_sequence" | "stop_token" | "completed" | "complete" | "eos"
        | "eos_token" | "end" => Finish::Stop,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Finish::ToolCall,
        "length" | "max_tokens" | "max_output_tokens" | "max_length" | "max_len"
        | "model_length" | "error_limit" | "incomplete" => Finish::MaxTokens,
        "model_context_window_exceeded" => Finish::ContextWindow,
        "content_filter"
        | "content_filtered"
        | "refusal"
        | "guardrail_intervened"
        | "safety"
        | "sensitive"
        | "error_toxic" => Finish::Safety,
        "recitation" => Finish::Recitation,
        "malformed_tool_use" | "malformed_model_output" | "malformed_function_call" => {
            Finish::MalformedToolCall
        }
        "pause_turn" => Finish::Paused,
        "error"
        | "abort"
        | "network_error"
        | "insufficient_system_resource"
        | "cancelled"
        | "user_cancel" => Finish::Error,
        "load" | "unload" => Finish::Other,
        _ => Finish::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::provider::finish::Written;

    #[test]
    fn every_reason_has_a_word() {
        for (reason, written, word) in [
            ("end_turn", Written::Text, "stop"),
            ("tool_use", Written::Calls, "tool_calls"),
            ("tool_calls", Written::Text, "malformed_tool_call"),
            ("function_call", Written::Text, "malformed_tool_call"),
            ("completed", Written::Calls, "tool_calls"),
            ("length", Written::Text, "max_tokens"),
            ("max_output_tokens", Written::Text, "max_tokens"),
            ("refusal", Written::Text, "safety"),
            ("pause_turn", Written::Text, "paused"),
            (
                "model_context_window_exceeded",
                Written::Text,
                "context_window",
            ),
            ("COMPLETE", Written::Text, "stop"),
            ("insufficient_system_resource", Written::Text, "error"),
            ("invented_tomorrow", Written::Text, "unknown"),
        ] {
            assert_eq!(parse(reason).word(written), word, "{reason}");
        }
    }
}
