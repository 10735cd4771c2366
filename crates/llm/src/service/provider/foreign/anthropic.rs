//! Anthropic: the content blocks of the answer, with those of the tools that ran at the provider.

use serde_json::Value;

use super::work::{Parsed, Work};
use crate::service::provider::fields::{items, kind, owned, text};
use tarsy_core::native::CodePart;

pub(super) fn parse(blocks: &[Value]) -> Parsed {
    let mut work = Work::default();
    let mut calls = Vec::new();
    for block in blocks {
        let content = block.get("content").unwrap_or(&Value::Null);
        match kind(block) {
            "tool_use" => calls.push(owned(block, "name")),
            "thinking" if text(block, "signature").is_empty() => {
                work.thoughts.push(owned(block, "thinking"))
            }
            "text" => items(block, "citations").for_each(|citation| {
                work.sources
                    .add_found(text(citation, "title"), text(citation, "url"));
            }),
            "server_tool_use" => server_call(block, &mut work),
            "web_search_tool_result" => items(block, "content").for_each(|page| {
                work.sources
                    .add_found(text(page, "title"), text(page, "url"));
            }),
            "web_fetch_tool_result" => work
                .sources
                .add_read(text(content, "url"), text(content, "error_code")),
            "code_execution_tool_result" | "bash_code_execution_tool_result" => {
                work.code.push(output(content, text(block, "tool_use_id")));
            }
            _ => {}
        }
    }
    Parsed {
        work,
        calls: Some(calls),
    }
}

/// A call of a tool that ran at the provider.
fn server_call(block: &Value, work: &mut Work) {
    let input = block.get("input").unwrap_or(&Value::Null);
    work.sources.add_query(text(input, "query"));
    let command = text(input, "command");
    let (code, language) = if command.is_empty() {
        (text(input, "code"), "python")
    } else {
        (command, "bash")
    };
    if !code.is_empty() {
        work.code.push(CodePart {
            code: code.to_owned(),
            language: language.to_owned(),
            id: owned(block, "id"),
            ..CodePart::default()
        });
    }
}

fn output(content: &Value, id: &str) -> CodePart {
    let parts = [
        text(content, "stdout"),
        text(content, "stderr"),
        text(content, "error_code"),
    ];
    let result: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let has_failed = content
        .get("return_code")
        .and_then(Value::as_i64)
        .map_or(result.is_empty(), |code| code != 0);
    let outcome = if has_failed {
        "OUTCOME_FAILED"
    } else {
        "OUTCOME_OK"
    };
    CodePart {
        result: result.join("\n"),
        outcome: outcome.to_owned(),
        id: id.to_owned(),
        ..CodePart::default()
    }
}
