//! Reads the chunks of an answer from JSON, in the JSON mapping of protocol buffers.

use std::sync::OnceLock;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::Deserializer;

use crate::proto::{DESCRIPTORS, GenerateResponse};

const CHUNK: &str = "llm.v1.GenerateResponse";

/// The text is not a chunk.
#[derive(Debug, thiserror::Error)]
#[error("not a GenerateResponse: {0}")]
pub struct InvalidChunk(String);

/// Parses one JSON object. Field names are those of the protocol, or the same in camel case.
///
/// # Errors
/// When the text is not JSON, or has unknown fields or invalid values.
pub fn chunk(text: &str) -> Result<GenerateResponse, InvalidChunk> {
    let mut deserializer = Deserializer::from_str(text);
    let message = DynamicMessage::deserialize(descriptor()?, &mut deserializer);
    let message = message.map_err(|error| InvalidChunk(error.to_string()))?;
    deserializer
        .end()
        .map_err(|error| InvalidChunk(error.to_string()))?;
    message
        .transcode_to()
        .map_err(|error| InvalidChunk(error.to_string()))
}

fn descriptor() -> Result<MessageDescriptor, InvalidChunk> {
    static CHUNKS: OnceLock<Option<MessageDescriptor>> = OnceLock::new();
    // The descriptors are compiled into the program, so this fails for every text or for none.
    CHUNKS
        .get_or_init(|| {
            DescriptorPool::decode(DESCRIPTORS)
                .ok()?
                .get_message_by_name(CHUNK)
        })
        .clone()
        .ok_or_else(|| InvalidChunk(format!("no descriptor of {CHUNK}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::generate_response::Content;
    use crate::proto::{
        CodeExecutionDelta, ErrorInfo, GroundingDelta, GroundingSupport, TextDelta,
    };

    fn content(content: Content) -> GenerateResponse {
        GenerateResponse {
            content: Some(content),
            is_final: false,
        }
    }

    #[test]
    fn both_spellings_of_names_and_quoted_numbers_are_accepted() {
        let support = GroundingSupport {
            start_index: 3,
            end_index: 9,
            text: "é".into(),
            grounding_chunk_indices: vec![0, -1],
            ..GroundingSupport::default()
        };
        let grounding = GroundingDelta {
            web_search_queries: vec!["q".into()],
            grounding_supports: vec![support],
            ..GroundingDelta::default()
        };
        let read = |text: &str| chunk(text).unwrap();
        for text in [
            r#"{"grounding":{"web_search_queries":["q"],"grounding_supports":[{"start_index":3,"end_index":"9","text":"é","grounding_chunk_indices":[0,-1]}]}}"#,
            r#"{"grounding":{"webSearchQueries":["q"],"groundingSupports":[{"startIndex":"3","endIndex":9.0,"text":"\u00e9","groundingChunkIndices":["0",-1]}]}}"#,
        ] {
            assert_eq!(
                read(text),
                content(Content::Grounding(grounding.clone())),
                "{text}"
            );
        }
        let code = CodeExecutionDelta {
            code: "x".into(),
            ..CodeExecutionDelta::default()
        };
        assert_eq!(
            read(r#"{"codeExecution":{"code":"x","result":null}}"#),
            content(Content::CodeExecution(code))
        );
        assert_eq!(
            read(r#"{"text":{}}"#),
            content(Content::Text(TextDelta::default()))
        );
        assert_eq!(
            read(r#" {"isFinal":true} "#),
            GenerateResponse {
                content: None,
                is_final: true
            }
        );
        let wait = prost_types::Duration {
            seconds: 2,
            nanos: 500_000_000,
        };
        let error = ErrorInfo {
            code: "busy".into(),
            retry_after: Some(wait),
            ..ErrorInfo::default()
        };
        assert_eq!(
            read(r#"{"error":{"code":"busy","retry_after":"2.5s"}}"#),
            content(Content::Error(error))
        );
    }

    #[test]
    fn an_invalid_chunk_is_rejected_with_the_reason() {
        for (text, reason) in [
            ("not json", "expected ident"),
            ("[]", "invalid type"),
            ("{} {}", "trailing characters"),
            (r#"{"txt":{}}"#, "unrecognized field name 'txt'"),
            (r#"{"text":{"content":4}}"#, "invalid type"),
            (r#"{"usage":{"input_tokens":"many"}}"#, "invalid digit"),
            (r#"{"text":{},"thinking":{}}"#, "oneof"),
        ] {
            let error = chunk(text).unwrap_err().to_string();
            assert!(
                error.starts_with("not a GenerateResponse: ") && error.contains(reason),
                "{text}: {error}"
            );
        }
    }
}
