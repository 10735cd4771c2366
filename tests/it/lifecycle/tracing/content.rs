//! Tests of texts in traces: those of people, models and tools are exported only on request, and masked.

use super::{Traced, named};

const SECRET: &str = "v4lue-of-a-variable";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_exported_on_request_and_masked() {
    let request = [
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ("CLUSTER_TOKEN", SECRET),
    ];
    let mut traced = Traced::start(&[], &request).await;
    let mut worker = traced.worker("w1").await;
    let file = traced.system.file("secret.txt");
    std::fs::write(
        &file,
        format!("the checkout is down, its password is {SECRET}"),
    )
    .unwrap();
    let mut submit = traced.spawn("submit", &["submit", file.to_str().unwrap()]);
    let (code, out) = submit.finished().await;
    assert_eq!(code, 0, "{}", submit.log());
    traced
        .completed(tarsy_core::ids::SessionId::parse(out.trim()).unwrap())
        .await;
    let spans = traced.ended(&mut [&mut worker]).await;

    let chats = named(&spans, "chat");
    let input = &chats[0].attributes["gen_ai.input.messages"];
    assert!(
        input.contains("the checkout is down, its password is [masked]"),
        "{input}"
    );
    assert!(
        chats
            .iter()
            .all(|span| span.attributes["gen_ai.output.messages"].contains("assistant"))
    );
    for tool in named(&spans, "execute_tool") {
        assert!(
            tool.attributes["gen_ai.tool.call.arguments"].starts_with('{'),
            "{tool:?}"
        );
        assert!(
            tool.attributes.contains_key("gen_ai.tool.call.result"),
            "{tool:?}"
        );
    }
    assert!(!format!("{spans:?}").contains(SECRET));
}
