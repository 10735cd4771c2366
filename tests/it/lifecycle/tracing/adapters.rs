//! The spans of requests to a provider, and of calls to a tool server over HTTP.

use super::{Traced, named, parent_of, trace_of};
use crate::support::http::provider::{FakeProvider, Reply};
use crate::support::system::Setup;
use crate::support::tool_server::{Form, ToolServer};

const KEY: &str = "key-of-the-provider";
const BUSY: &str = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
const CALL: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"web__look","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"totalTokenCount":110}}"#;
const FOUND: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Cause: the limit is too low [web.look]"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":200,"candidatesTokenCount":20,"totalTokenCount":220}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_a_provider_and_calls_over_http_are_in_the_trace() {
    let replies = vec![
        Reply::Error(503, BUSY),
        Reply::events(&[CALL]),
        Reply::events(&[FOUND]),
    ];
    let (provider, server) = (
        FakeProvider::start(replies).await,
        ToolServer::start(Form::Json).await,
    );
    let servers = format!("  web: {{url: '{}'}}\n", server.url());
    let sections = format!(
        "llm_providers:\n  first: {{provider: google, model: gemini-2.5-pro, api_key_env: FIRST_KEY, base_url: '{}'}}\n\
         defaults: {{llm_provider: first}}\n",
        provider.url()
    );
    let setup = Setup {
        servers: &servers,
        sections: &sections,
        ..Setup::default()
    };
    let options = [
        "--allow-key-env",
        "*_KEY",
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    let mut traced = Traced::start_with(setup, &options, &[("FIRST_KEY", KEY)]).await;
    let mut worker = traced.worker("w1").await;
    let session = traced.system.publish().await;
    traced.completed(session).await;
    let spans = traced.ended(&mut [&mut worker]).await;

    let chats = named(&spans, "chat gemini-2.5-pro");
    let attempts: Vec<_> = chats
        .iter()
        .filter(|span| span.service == "tarsy-llm-service")
        .collect();
    let of = |name: &str| {
        attempts
            .iter()
            .map(|span| span.attributes.get(name).map(String::as_str))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("tarsy.attempt"), [Some("1"), Some("2"), Some("1")]);
    assert_eq!(of("error.type"), [Some("unavailable"), None, None]);
    assert_eq!(of("gen_ai.provider.name"), [Some("gcp.gemini"); 3]);
    assert_eq!(
        attempts.iter().map(|span| span.failed).collect::<Vec<_>>(),
        [true, false, false]
    );
    for attempt in attempts {
        assert_eq!(attempt.trace_id, trace_of(session));
        assert_eq!(parent_of(&spans, attempt), "llm.v1.LLMService/Generate");
    }
    assert_eq!(
        named(&spans, "llm.v1.LLMService/Generate")
            .iter()
            .filter(|span| span.failed)
            .count(),
        0
    );

    let [tool] = named(&spans, "execute_tool web.look")[..] else {
        panic!("{spans:#?}")
    };
    let calls = server
        .seen()
        .into_iter()
        .filter(|seen| seen.message == "tools/call");
    let sent: Vec<String> = calls
        .map(|seen| seen.headers["traceparent"].to_str().unwrap().to_owned())
        .collect();
    assert_eq!(sent, [format!("00-{}-{}-01", trace_of(session), tool.id)]);
    assert!(!format!("{spans:?}").contains(KEY));
}
