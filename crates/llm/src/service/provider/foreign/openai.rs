//! OpenAI: the output items of the Responses API, and the reasoning of chat completions.

use serde_json::Value;

use super::work::{Parsed, Work};
use crate::service::provider::fields::{items, kind, owned, text, texts};
use tarsy_core::native::CodePart;

pub(super) fn parse(output: &[Value]) -> Parsed {
    let mut work = Work::default();
    let mut calls = Vec::new();
    for item in output {
        match kind(item) {
            "function_call" => calls.push(owned(item, "name")),
            "message" => items(item, "content")
                .flat_map(|part| items(part, "annotations"))
                .for_each(|annotation| {
                    work.sources
                        .add_found(text(annotation, "title"), text(annotation, "url"));
                }),
            "web_search_call" => search(item, &mut work),
            "file_search_call" => {
                texts(item, "queries").for_each(|query| work.sources.add_query(query))
            }
            "code_interpreter_call" => work.code.push(run(item)),
            "reasoning" if text(item, "encrypted_content").is_empty() => {
                let pieces = items(item, "summary").chain(items(item, "content"));
                work.thoughts
                    .extend(pieces.map(|piece| owned(piece, "text")));
            }
            _ => {}
        }
    }
    Parsed {
        work,
        calls: Some(calls),
    }
}

/// A search, or a page that was opened.
fn search(item: &Value, work: &mut Work) {
    let Some(action) = item.get("action") else {
        return;
    };
    work.sources.add_query(text(action, "query"));
    texts(action, "queries").for_each(|query| work.sources.add_query(query));
    items(action, "sources").for_each(|source| {
        work.sources
            .add_found(text(source, "title"), text(source, "url"))
    });
    work.sources
        .add_read(text(action, "url"), text(item, "status"));
}

fn run(item: &Value) -> CodePart {
    let logs: Vec<&str> = items(item, "outputs")
        .map(|output| text(output, "logs"))
        .collect();
    let outcome = if text(item, "status") == "failed" {
        "OUTCOME_FAILED"
    } else {
        "OUTCOME_OK"
    };
    CodePart {
        code: owned(item, "code"),
        result: logs.concat(),
        outcome: outcome.to_owned(),
        ..CodePart::default()
    }
}

/// Reasoning of chat completions. Details with a signature or with encrypted data bind the whole text.
pub(super) fn read_reasoning(parts: &[Value]) -> Parsed {
    let mut work = Work::default();
    for part in parts {
        if !items(part, "details")
            .any(|detail| detail.get("signature").is_some() || detail.get("data").is_some())
        {
            work.thoughts.push(owned(part, "reasoning"));
        }
    }
    Parsed { work, calls: None }
}
