//! Gemini: contents with the parts of the answer, and one item with its sources (`google/replay.rs` writes both).

use serde::Deserialize as _;
use serde_json::Value;

use super::work::{Parsed, Sources, Work};
use crate::service::provider::fields::{items, owned, texts};
use tarsy_core::native::CodePart;

pub(super) fn parse(contents: &[Value]) -> Parsed {
    let mut work = Work::default();
    let mut calls = Vec::new();
    let mut is_signed = false;
    for content in contents {
        let sources = content.get("sources").map(Sources::deserialize);
        if let Some(Ok(sources)) = sources {
            for query in &sources.queries {
                work.sources.add_query(query);
            }
            for page in &sources.found {
                work.sources.add_found(&page.title, &page.url);
            }
            for page in &sources.read {
                work.sources.add_read(&page.url, &page.status);
            }
        }
        for part in items(content, "parts") {
            is_signed |= part.get("thoughtSignature").is_some();
            read_part(part, &mut work, &mut calls);
        }
    }
    // A signature of any part covers the thoughts before it.
    if is_signed {
        work.thoughts.clear();
    }
    Parsed {
        work,
        calls: Some(calls),
    }
}

fn read_part(part: &Value, work: &mut Work, calls: &mut Vec<String>) {
    if let Some(call) = part.get("functionCall") {
        calls.push(owned(call, "name"));
    }
    if let Some(code) = part.get("executableCode") {
        work.code.push(CodePart {
            code: owned(code, "code"),
            language: owned(code, "language"),
            id: owned(code, "id"),
            ..CodePart::default()
        });
    }
    if let Some(result) = part.get("codeExecutionResult") {
        work.code.push(CodePart {
            result: owned(result, "output"),
            outcome: owned(result, "outcome"),
            id: owned(result, "id"),
            ..CodePart::default()
        });
    }
    if let Some(arguments) = part.get("toolCall").and_then(|call| call.get("args")) {
        texts(arguments, "queries").for_each(|query| work.sources.add_query(query));
    }
    if part.get("thought") == Some(&Value::Bool(true)) {
        work.thoughts.push(owned(part, "text"));
    }
}
