//! `tarsy models --probe` with a real LLM service and providers that answer a request for a tool call in every way.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::System;
use crate::interfaces::commands::Ran;
use crate::support::http::endpoint::{Endpoint, Reply, Request};
use crate::support::http::provider::{FakeProvider, Reply as Prepared};
use crate::support::process::Tarsy;

const CALL_AS_TEXT: &str = "Thought: I call it.\nAction: tarsy.echo\nAction Input: {\"word\": \"ready\", \"numbers\": [1, 2, 3]}";
const MARKUP: &str =
    "<tool_call>\n{\"name\": \"tarsy__echo\", \"arguments\": {\"word\": \"ready\"}}\n</tool_call>";
const ARGUMENTS: &str = r#"{"word": "ready", "numbers": [1, 2, 3]}"#;

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"id": "1", "object": "chat.completion.chunk", "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn text(text: &str, finish: &str) -> Vec<Value> {
    vec![
        chunk(&json!({"role": "assistant", "content": text}), &Value::Null),
        chunk(&json!({}), &json!(finish)),
    ]
}

/// A call whose arguments come in two pieces.
fn call(name: &str, arguments: &str) -> Vec<Value> {
    let (first, second) = arguments.split_at(arguments.len() / 2);
    let begun = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
        "function": {"name": name, "arguments": first}}]});
    let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": second}}]});
    vec![
        chunk(&begun, &Value::Null),
        chunk(&rest, &Value::Null),
        chunk(&json!({}), &json!("tool_calls")),
    ]
}

/// The answer of a model by its name. The second request has no tools.
fn answer(model: &str, has_tools: bool) -> Reply {
    let refusal = |status, message: &str| {
        Reply::json(&json!({"error": {"message": message, "type": "invalid_request_error"}}))
            .with_status(status)
    };
    let events = match (model, has_tools) {
        ("whole", _) => call("tarsy__echo", ARGUMENTS),
        ("thinks", _) => {
            let thought = chunk(
                &json!({"content": "<think>I call it.</think>"}),
                &Value::Null,
            );
            [vec![thought], call("tarsy__echo", ARGUMENTS)].concat()
        }
        ("list-as-text", _) => call(
            "tarsy__echo",
            r#"{"word": "ready", "numbers": "[1, 2, 3]"}"#,
        ),
        ("no-tools", true) => return refusal(400, "this model does not support tools"),
        ("other-name", true) => call("functions__echo", ARGUMENTS),
        ("unfit", true) => call("tarsy__echo", r#"{"word": 7}"#),
        ("talks", true) => text("I will call it.", "stop"),
        ("markup", true) => text(MARKUP, "stop"),
        ("hidden", true) => text(&format!("<think>{MARKUP}</think>"), "stop"),
        ("mute", _) => text("Hello.", "stop"),
        ("endless", _) => text("I begin with", "length"),
        ("filtered", _) => text("I", "content_filter"),
        (_, false) => text(CALL_AS_TEXT, "stop"),
        _ => return refusal(401, "Incorrect API key provided"),
    };
    Reply::events(&events)
}

fn policy(request: &Request) -> Reply {
    let body = request.json();
    answer(
        body["model"].as_str().unwrap_or_default(),
        body.get("tools").is_some(),
    )
}

/// A real LLM service whose providers are at this address, and a configuration with these models.
async fn system(address: &str, models: &[&str]) -> System {
    let base_url = format!("{address}/v1");
    let env = [
        ("OPENAI_API_KEY", super::KEY),
        ("GEMINI_API_KEY", super::KEY),
        ("NO_PROXY", "127.0.0.1"),
        ("OPENAI_BASE_URL", base_url.as_str()),
        ("GOOGLE_GEMINI_BASE_URL", address),
    ];
    let mut service = Tarsy::spawn(
        "the service",
        &["llm-service", "--listen", "127.0.0.1:0"],
        &env,
    );
    let address = service.ready().await;
    let providers: String = models
        .iter()
        .map(|model| format!("  {model}: {{provider: openai, model: {model}, api: chat}}\n"))
        .collect();
    let config = format!(
        "llm_providers:\n{providers}defaults: {{llm_provider: {}}}\n",
        models[0]
    );
    System {
        _service: Some(service),
        ..System::before(address, &config)
    }
}

/// Name, strategy, outcome of each request, and code of the problem, of each provider.
fn seen(ran: &Ran) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |model: Value| {
        let probe = &model["probe"];
        let values = [
            &model["name"],
            &probe["strategy"],
            &probe["native"]["outcome"],
            &probe["react"]["outcome"],
        ];
        [values.map(word).join(" "), word(&model["problem"]["code"])].join(" ")
    };
    ran.json().into_iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_names_the_strategy_that_fits_each_way_of_calling_a_tool() {
    let models = [
        "whole",
        "thinks",
        "list-as-text",
        "no-tools",
        "other-name",
        "unfit",
        "talks",
        "markup",
        "hidden",
        "mute",
        "endless",
        "filtered",
        "locked",
    ];
    let endpoint = Endpoint::start(policy).await;
    let system = system(&endpoint.url(), &models).await;
    let ran = system.run(&["models", "--probe", "--json"]).await.exits(1);
    assert_eq!(
        seen(&ran),
        [
            "endless - cut_off - max_tokens",
            "filtered - cut_off cut_off no_strategy",
            "hidden react call_in_reasoning called -",
            "list-as-text native-thinking called_fitted - -",
            "locked - failed - credentials",
            "markup react call_in_text called -",
            "mute - no_call no_call no_strategy",
            "no-tools react failed called -",
            "other-name react other_name called -",
            "talks react no_call called -",
            "thinks native-thinking called - -",
            "unfit react unfit_arguments called -",
            "whole native-thinking called - -",
        ]
    );
    let all = ran.json();
    let of = |name: &str| all.iter().find(|model| model["name"] == name).unwrap();
    let probe = |name: &str, key: &str| of(name)["probe"]["native"][key].clone();
    assert_eq!(probe("thinks", "reasoning_tag"), "<think>");
    assert_eq!(probe("other-name", "called"), "functions.echo");
    assert_eq!(
        (probe("markup", "markup"), probe("hidden", "markup")),
        (json!("<tool_call>"), json!("<tool_call>"))
    );
    assert_eq!(
        (probe("endless", "reason"), probe("filtered", "reason")),
        (json!("max_tokens"), json!("safety"))
    );
    assert_eq!(
        of("locked")["problem"]["provider_status"],
        "401 invalid_request_error"
    );
    let times =
        ["first_chunk_ms", "took_ms"].map(|time| of("whole")["answer"][time].as_u64().unwrap());
    assert!(times[0] <= times[1], "{times:?}");

    let one = system
        .run(&["models", "whole", "--probe"])
        .await
        .exits(0)
        .out;
    assert!(
        one.contains("  strategy     native-thinking fits\n"),
        "{one}"
    );
    let shown = system
        .run(&["models", "markup", "--probe"])
        .await
        .exits(0)
        .out;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "strategy react fits: set iteration_strategy: react for the agents of this provider",
        "the server leaves the call in the text, in the markup <tool_call>: tarsy asks for a structured call once and",
        "with react, a call came as text, and its arguments fit the schema",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = system
        .run(&["models", "no-tools", "--probe"])
        .await
        .exits(0)
        .out;
    assert!(
        shown.contains("this model does not support tools"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_offers_its_tool_alone_and_asks_four_models_at_once() {
    let gates: Vec<Arc<Notify>> = (0..6).map(|_| Arc::default()).collect();
    let reply = |gate: &Arc<Notify>| Prepared::events(&call("tarsy__echo", ARGUMENTS)).behind(gate);
    let provider = FakeProvider::start(gates.iter().map(reply).collect()).await;
    let system = system(&provider.url(), &["a", "b", "c", "d", "e", "f"]).await;
    let asked = async {
        provider.asked(4).await;
        assert_eq!(provider.requests().len(), 4);
        // The third answer lets the next model be asked, whichever model it belongs to.
        gates[2].notify_one();
        provider.asked(5).await;
        assert_eq!(provider.requests().len(), 5);
        gates.iter().for_each(|gate| gate.notify_one());
    };
    let (ran, ()) = tokio::join!(system.run(&["models", "--probe", "--json"]), asked);
    assert_eq!(seen(&ran.exits(0)).len(), 6);
    let request = provider.requests()[0].json();
    let names: Vec<&Value> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["tarsy__echo"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_of_gemini_leaves_out_the_tools_of_google() {
    let answer = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "tarsy__echo",
        "args": {"word": "ready", "numbers": [1, 2, 3]}}}]}, "finishReason": "STOP"}]});
    let endpoint = Endpoint::start(move |_| Reply::events(std::slice::from_ref(&answer))).await;
    let system = system(&endpoint.url(), &["unused"]).await;
    let config = "llm_providers:\n  g: {provider: google, model: gemini-2.5-flash, native_tools: {google_search: true, \
                  code_execution: true}, native_tools_mode: combine}\n";
    let system = System::before(system.address.clone(), config).keeping(system);
    let ran = system.run(&["models", "--probe", "--json"]).await.exits(0);
    assert_eq!(seen(&ran), ["g native-thinking called - -"]);
    let body = endpoint.accepted()[0].json();
    let tools: Vec<&String> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|tool| tool.as_object().unwrap().keys())
        .collect();
    assert_eq!(tools, ["functionDeclarations"]);
}
