//! Maps Gemini's open set of finish reasons to those of the protocol.

use crate::service::provider::finish::Finish;

/// The reason of an answer that continues in another response.
pub(super) const CONTINUATION: &str = "CONTINUATION";

/// The kind of a reason of the provider.
pub(super) fn parse(reason: &str) -> Finish {
    match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::MaxTokens,
        "SAFETY"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT" => Finish::Safety,
        "RECITATION" | "IMAGE_RECITATION" => Finish::Recitation,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => Finish::MalformedToolCall,
        "MISSING_THOUGHT_SIGNATURE" => Finish::MissingSignature,
        "LANGUAGE"
        | "OTHER"
        | "NO_IMAGE"
        | "IMAGE_OTHER"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => Finish::Other,
        _ => Finish::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::provider::ErrorCode;
    use crate::service::provider::finish::Written;

    #[test]
    fn every_reason_has_a_word() {
        for (reason, written, word) in [
            ("STOP", Written::Text, "stop"),
            ("STOP", Written::Calls, "tool_calls"),
            ("MAX_TOKENS", Written::Calls, "max_tokens"),
            ("SPII", Written::Text, "safety"),
            (
                "MALFORMED_FUNCTION_CALL",
                Written::Text,
                "malformed_tool_call",
            ),
            ("LANGUAGE", Written::Text, "other"),
            ("INVENTED_TOMORROW", Written::Text, "unknown"),
        ] {
            assert_eq!(parse(reason).word(written), word, "{reason}");
        }
    }

    #[test]
    fn an_answer_without_content_is_an_error_that_says_why() {
        for (reason, written, code) in [
            (
                "STOP",
                Written::Nothing,
                Some((ErrorCode::EmptyResponse, true)),
            ),
            (
                "INVENTED_TOMORROW",
                Written::Nothing,
                Some((ErrorCode::EmptyResponse, true)),
            ),
            (
                "SAFETY",
                Written::Thoughts,
                Some((ErrorCode::Blocked, false)),
            ),
            (
                "MAX_TOKENS",
                Written::Nothing,
                Some((ErrorCode::MaxTokens, false)),
            ),
            (
                "MALFORMED_FUNCTION_CALL",
                Written::Thoughts,
                Some((ErrorCode::MalformedToolCall, true)),
            ),
            (
                "MISSING_THOUGHT_SIGNATURE",
                Written::Nothing,
                Some((ErrorCode::ThoughtSignature, false)),
            ),
            ("STOP", Written::Thoughts, None),
            ("SAFETY", Written::Text, None),
        ] {
            let error = parse(reason).error(reason, written);
            assert_eq!(
                error.map(|error| (error.code, error.retryable)),
                code,
                "{reason} {written:?}"
            );
        }
    }
}
