//! A model call with every kind of message.

use chrono::DateTime;
use serde_json::json;

use crate::calls::{NumberedCall, Rebuilt, RebuiltCall};
use crate::{ModelCallReport, Tokens};
use tarsy_core::execution::conversation::Message;
use tarsy_core::execution::entry::{Answer, ProviderData, Role, ToolCall, Usage};
use tarsy_core::execution::request::RequestBody;
use tarsy_core::execution::state::{MessageForm, MessageSource};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{ProviderPlan, ToolSpec};
use tarsy_core::testing::read_only_tool;

fn message(role: Role, content: &str) -> Message {
    Message {
        role,
        content: content.to_owned(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: None,
        is_error: false,
        provider_data: None,
    }
}

fn result(call: &str, content: &str) -> Message {
    let tool_call_id = Some(call.to_owned());
    let tool_name = Some("k8s.get".to_owned());

    Message {
        tool_call_id,
        tool_name,
        ..message(Role::Tool, content)
    }
}

fn own_form() -> Option<Box<ProviderData>> {
    let [provider, model, format] =
        ["google", "gemini-2.5-pro", "gemini-contents"].map(str::to_owned);
    Some(Box::new(ProviderData {
        provider,
        model,
        format,
        payload: vec![7; 3_412],
    }))
}

fn call(id: &str) -> ToolCall {
    let arguments = "{\"pod\": \"checkout-7d9f\"}".to_owned();
    ToolCall {
        id: id.to_owned(),
        tool: "k8s.get".to_owned(),
        arguments,
        read_only: true,
    }
}

/// The second turn of an agent: a result is blanked, and the provider has its own form of the answer before.
pub fn rebuilt() -> RebuiltCall {
    let asked = Message {
        tool_calls: vec![call("a"), call("b")],
        provider_data: own_form(),
        ..message(Role::Assistant, "I look at the pod.")
    };
    let messages = vec![
        message(Role::System, "You are an SRE.\nBe brief."),
        message(Role::User, "KubePodOOMKilled checkout-7d9f"),
        asked,
        result(
            "a",
            "[event 5]\n[this result was removed to save space; do not repeat the call to see it again]",
        ),
        Message {
            is_error: true,
            ..result("b", "[event 6]\n    pod not found")
        },
    ];
    let source = |entry: u32, event, form| MessageSource { entry, event, form };
    let sources = vec![
        source(1, None, MessageForm::Whole),
        source(2, None, MessageForm::Whole),
        source(3, None, MessageForm::Whole),
        source(4, Some(5), MessageForm::Blanked),
        source(5, Some(6), MessageForm::Whole),
    ];
    let tool = ToolSpec {
        description: "Reads an object.".to_owned(),
        parameters_schema: "{\"type\": \"object\"}".to_owned(),
        ..read_only_tool("k8s.get")
    };
    let provider = ProviderPlan {
        max_output_tokens: Some(8_192),
        ..ProviderPlan::default()
    };
    let request = RequestBody {
        name: "2".to_owned(),
        provider,
        messages,
        tools: vec![tool],
        declared_tools: Vec::new(),
        clear_cache: false,
    };
    let usage = Usage {
        input_tokens: 4_100,
        cached_tokens: 1_900,
        output_tokens: 60,
        thinking_tokens: 10,
    };
    let answer = Answer {
        text: "Cause: the limit is too low [6]".to_owned(),
        thinking: "The pod is gone.".to_owned(),
        usage,
        provider_data: own_form(),
        ..Answer::default()
    };
    let rebuilt = Rebuilt {
        request,
        sources,
        answer: Some(answer),
        summary: None,
    };
    RebuiltCall {
        call: NumberedCall {
            number: 1,
            call: stored(),
        },
        calls: 1,
        rebuilt: Ok(rebuilt),
    }
}

fn stored() -> ModelCallReport {
    ModelCallReport {
        execution_id: ExecutionId::derive(
            SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3da41c9e02").unwrap(),
            1,
            1,
        ),
        agent: "sre".to_owned(),
        at: DateTime::parse_from_rfc3339("2026-11-21T14:02:09Z")
            .unwrap()
            .to_utc(),
        iteration: 2,
        purpose: "iteration".to_owned(),
        entries_upto: 5,
        provider: "gemini".to_owned(),
        model: "gemini-2.5-pro".to_owned(),
        duration_ms: 2_300,
        usage: Some(Tokens {
            input: 4_100,
            cached: 1_900,
            output: 60,
            thinking: 10,
        }),
        response: Some(json!({"finish_reason": "stop"})),
        error: None,
    }
}

/// The same call, for which the provider gave no answer.
pub fn failed() -> RebuiltCall {
    let mut call = rebuilt();
    if let Ok(rebuilt) = &mut call.rebuilt {
        rebuilt.answer = None;
    }
    call.call.call.error = Some("429 RESOURCE_EXHAUSTED: too many requests".to_owned());
    call.call.call.response = Some(json!({"code": "rate_limited"}));
    (call.call.call.usage, call.call.call.model) = (None, "gemini-2.5-flash".to_owned());
    call
}
