//! Answers of every kind.

use tokio::sync::mpsc;

use super::conversation::{ask, backend, error, lines, request};
use crate::proto::generate_response::Content;
use crate::proto::{GenerateRequest, GenerateResponse};
use crate::service::call::{Call, Deadline};
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};
use crate::service::writer::ResponseWriter;

async fn answer_to(reply: Reply) -> Vec<String> {
    lines(&ask(&Endpoint::start(vec![reply]).await, &request()).await)
}

#[tokio::test]
async fn every_quirk_of_a_stream_gives_one_answer_at_any_size_of_reads() {
    let text = "héllo → 漢字 🚀";
    let rest = " fin\u{2028}né";
    let data = format!(
        concat!(
            r#"data [{{"parts":[{{"text":"look","thought":true}},{{"text":"{}{}"}},"#,
            r#"{{"text":"","thoughtSignature":"c2ln"}}],"role":"model"}},"#,
            r#"{{"sources":{{"queries":["q"],"found":[{{"title":"a","url":"https://a"}}]}}}}]"#
        ),
        text, rest
    );
    let expected = [
        "thinking look".to_owned(),
        format!("text {text}"),
        format!("text {rest}"),
        r#"grounding ["q"] https://a héllo@0..6[0]"#.to_owned(),
        "stop|STOP||r1|gemini-test".to_owned(),
        data,
        "usage 9 5 19 2 4 3".to_owned(),
        "end".to_owned(),
    ];
    for piece in [1, 3, 4_096] {
        assert_eq!(
            answer_to(Reply::fixture("gemini/quirks.sse").in_pieces_of(piece)).await,
            expected,
            "{piece}"
        );
    }
}

#[tokio::test]
async fn calls_keep_the_ids_of_the_provider_and_get_ids_where_it_gave_none() {
    let answer = answer_to(Reply::fixture("gemini/calls.sse")).await;
    assert_eq!(
        answer[..4],
        [
            "thinking need data",
            r#"call fc-1 server.get {"name":"web-1","count":1.0}"#,
            "call call_… server.list {}",
            "tool_calls|STOP||resp-1|gemini-test"
        ]
    );
    assert_eq!(answer[5..], ["usage 50 20 79 9 0 0", "end"]);
}

#[tokio::test]
async fn code_and_its_output_are_two_parts() {
    let answer = answer_to(Reply::fixture("gemini/code.sse")).await;
    let code = r"code-1|PYTHON|print(6*7)\n||";
    let result = r"code-1|||OUTCOME_OK|42\n";
    assert_eq!(
        answer[..5],
        [
            "text Let me compute.\n",
            code,
            result,
            "text It is 42.",
            "stop|STOP|||"
        ]
    );
    assert!(
        answer[5].contains("iVBORw0KGgo=") && answer[5].contains("c2lnLWNvZGU="),
        "{}",
        answer[5]
    );
}

#[tokio::test]
async fn an_answer_that_goes_on_is_asked_for_with_its_token() {
    let first = concat!(
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"CONTINUATION","continuationToken":"t1"}],"#,
        r#""usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":900,"totalTokenCount":910}}"#
    );
    let last = concat!(
        r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"#,
        r#""usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}"#
    );
    let endpoint = Endpoint::start(vec![Reply::events(&[first]), Reply::events(&[last])]).await;
    let answer = lines(&ask(&endpoint, &request()).await);
    let data = r#"data [{"parts":[{"text":"ab"}],"role":"model"}]"#;
    assert_eq!(
        answer,
        [
            "text a",
            "text b",
            "stop|STOP|||",
            data,
            "usage 20 905 925 0 0 0",
            "end"
        ]
    );
    let bodies = endpoint.bodies();
    assert_eq!(
        bodies[1],
        format!(
            r#"{},"continuationToken":"t1"}}"#,
            bodies[0].strip_suffix('}').unwrap()
        )
    );
}

#[tokio::test]
async fn a_broken_answer_goes_on_from_its_last_token_once_for_each_token() {
    let first = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"continuationToken":"t1"}]}"#;
    let last = r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#;
    for ending in [Ending::Cut, Ending::Hang, Ending::Whole] {
        let endpoint = Endpoint::start(vec![
            Reply::events(&[first]).ending(ending),
            Reply::events(&[last]),
        ])
        .await;
        let answer = lines(&ask(&endpoint, &request()).await);
        assert_eq!(
            answer[..3],
            ["text a", "text b", "stop|STOP|||"],
            "{ending:?}"
        );
        assert!(endpoint.bodies()[1].ends_with(r#","continuationToken":"t1"}"#));
        let cut = Reply::events(&[r#"{"candidates":[{"content":{"parts":[{"text":"c"}]}}]}"#])
            .ending(Ending::Cut);
        let endpoint = Endpoint::start(vec![Reply::events(&[first]).ending(ending), cut]).await;
        assert_eq!(
            error(&ask(&endpoint, &request()).await).code,
            "partial_stream_error"
        );
        assert_eq!(endpoint.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_complete_answer_counts_although_its_response_does_not_end() {
    for ending in [Ending::Hang, Ending::Cut] {
        let answer = answer_to(Reply::fixture("gemini/answer.sse").ending(ending)).await;
        assert_eq!(answer[0], "text Healthy.");
        assert_eq!(answer[answer.len() - 2..], ["usage 80 3 83 0 0 0", "end"]);
    }
}

#[tokio::test]
async fn a_client_that_accepts_nothing_gets_only_what_it_knows() {
    let endpoint = Endpoint::start(vec![Reply::fixture("gemini/answer.sse")]).await;
    let old = GenerateRequest {
        accept: Vec::new(),
        ..request()
    };
    assert_eq!(
        lines(&ask(&endpoint, &old).await),
        ["text Healthy.", "usage 80 3 83 0 0 0", "end"]
    );
}

#[tokio::test]
async fn the_request_has_its_address_and_its_key_in_a_header() {
    let endpoint = Endpoint::start(vec![Reply::fixture("gemini/answer.sse")]).await;
    ask(&endpoint, &request()).await;
    let received = endpoint.requests().remove(0);
    assert_eq!(
        received.target,
        "POST /v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse"
    );
    let headers = received.headers.to_lowercase();
    assert!(
        headers.contains(&format!("x-goog-api-key: {}\r\n", super::conversation::KEY)),
        "{headers}"
    );
    assert!(
        headers.contains("content-type: application/json\r\n"),
        "{headers}"
    );
}

/// The endpoint has sent everything long before the client reads its last part, so at most the buffers are full.
#[tokio::test]
async fn a_stream_of_a_hundred_thousand_pieces_is_not_collected() {
    const PIECES: usize = 100_000;
    let event = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n";
    let end = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";
    let endpoint = Endpoint::start(vec![Reply::stream(event.repeat(PIECES) + end)]).await;
    let google = backend(endpoint.address);
    let request = request();
    let (sender, mut receiver) = mpsc::channel(32);
    let writer = ResponseWriter::new(sender, &request.accept);
    let answered = async move {
        google
            .generate(&Call {
                request: &request,
                deadline: Deadline::default(),
                writer: &writer,
            })
            .await;
        drop(writer);
    };
    let read = async {
        let mut pieces = 0;
        let mut others = Vec::new();
        while let Some(Ok(response)) = receiver.recv().await {
            assert!(receiver.len() <= 32);
            match response {
                GenerateResponse {
                    content: Some(Content::Text(text)),
                    ..
                } => pieces += text.content.len(),
                other => others.push(other),
            }
        }
        (pieces, others)
    };
    let ((), (pieces, others)) = tokio::join!(answered, read);
    assert_eq!(pieces, PIECES);
    let data = format!(
        r#"data [{{"parts":[{{"text":"{}"}}],"role":"model"}}]"#,
        "x".repeat(PIECES)
    );
    assert_eq!(
        lines(&others),
        ["stop|STOP|||".to_owned(), data, "end".to_owned()]
    );
}

#[tokio::test]
async fn half_a_letter_costs_no_answer() {
    let piece = |text: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
    };
    let stop =
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":NaN}}"#;
    let events = [piece("a \\ud83d"), piece("\\ude00 b \\ude00")];
    let reply = Reply::events(&[&events[0], &events[1], stop]);
    let answer = lines(&ask(&Endpoint::start(vec![reply]).await, &request()).await);
    assert_eq!(answer[..2], ["text a ", "text 😀 b \u{FFFD}"]);
}
