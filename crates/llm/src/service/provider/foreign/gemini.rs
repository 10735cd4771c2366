//! Gemini: contents with the parts of the answer, and one item with its sources (`google/replay.rs` writes both).

use serde::Deserialize as _;
use serde_json::Value;

use super::fields::{items, owned, text, texts};
use super::work::{Parsed, Sources, Work};
use tarsy_core::native::CodePart;

pub(super) fn read(contents: &[Value]) -> Parsed {
    let (mut work, mut calls) = (Work::default(), Vec::new());
    for content in contents {
        if let Some(sources) = content
            .get("sources")
            .and_then(|sources| Sources::deserialize(sources).ok())
        {
            sources
                .queries
                .iter()
                .for_each(|query| work.sources.add_query(query));
            sources
                .found
                .iter()
                .for_each(|page| work.sources.add_found(&page.title, &page.url));
            sources
                .read
                .iter()
                .for_each(|page| work.sources.add_read(&page.url, &page.status));
        }
        items(content, "parts").for_each(|part| read_part(part, &mut work, &mut calls));
    }
    // A signature covers the thoughts before it, on whichever part it stands.
    let parts = contents.iter().flat_map(|content| items(content, "parts"));
    if parts
        .into_iter()
        .any(|part| part.get("thoughtSignature").is_some())
    {
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
        let (code, language, id) = (
            owned(code, "code"),
            owned(code, "language"),
            owned(code, "id"),
        );
        work.code.push(CodePart {
            code,
            language,
            id,
            ..CodePart::default()
        });
    }
    if let Some(result) = part.get("codeExecutionResult") {
        let (result, outcome, id) = (
            owned(result, "output"),
            owned(result, "outcome"),
            owned(result, "id"),
        );
        work.code.push(CodePart {
            result,
            outcome,
            id,
            ..CodePart::default()
        });
    }
    if let Some(arguments) = part.get("toolCall").and_then(|call| call.get("args")) {
        texts(arguments, "queries").for_each(|query| work.sources.add_query(query));
    }
    if part
        .get("thought")
        .and_then(Value::as_bool)
        .unwrap_or(false)
    {
        work.thoughts.push(text(part, "text").to_owned());
    }
}
