//! OpenAI: the output items of the Responses API, and the reasoning of chat completions.

use serde_json::Value;

use super::fields::{items, owned, text, texts};
use super::work::{Parsed, Work};
use tarsy_core::native::CodePart;

pub(super) fn read(output: &[Value]) -> Parsed {
    let (mut work, mut calls) = (Work::default(), Vec::new());
    for item in output {
        match text(item, "type") {
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
    let is_bound =
        |detail: &Value| detail.get("signature").is_some() || detail.get("data").is_some();
    for part in parts {
        if !items(part, "details").any(is_bound) {
            work.thoughts.push(owned(part, "reasoning"));
        }
    }
    Parsed { work, calls: None }
}
