//! An answer of many small pieces: the service holds a few of them, also when its client reads slowly.
//!
//! In the suite the answer has 20,000 pieces. In `./dev prove` it has 100,000, which together are larger than the
//! allowed growth of the memory; `TARSY_STREAM_PIECES` sets another number, a multiple of 100.

use std::sync::LazyLock;
use std::time::Duration;

use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::proto::{ConversationMessage, GenerateRequest, LlmConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::figures::by_depth;
use crate::support::process::{Tarsy, peak_memory};

static PIECES: LazyLock<usize> = LazyLock::new(|| by_depth("TARSY_STREAM_PIECES", 20_000, 100_000));
/// All pieces of the proof together have more than this, as events of the provider and as messages of the service.
const MAX_GROWTH_MIB: u64 = 24;
/// The client pauses after so many pieces.
const PAUSE_EVERY: usize = 4_000;

/// One piece and the end of an answer, by the path of the request.
fn events(path: &str) -> (&'static str, &'static str) {
    if path.contains("generateContent") || path.contains("GenerateContent") {
        return (
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"some words \"}],\"role\":\"model\"},\"index\":0,\"safetyRatings\":[{\"category\":\"HARM_CATEGORY_DANGEROUS_CONTENT\",\"probability\":\"NEGLIGIBLE\"}]}],\"modelVersion\":\"gemini-test\"}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        );
    }
    if path.contains("/messages") {
        return (
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words \"}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        );
    }
    (
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"local\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"some words \"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    )
}

const BEGIN_OF_ANTHROPIC: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";

async fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(BufReader::new(stream)));
        }
    });
    address
}

/// Writes a whole answer, as fast as the service reads it.
async fn answer(mut stream: BufReader<TcpStream>) -> Option<()> {
    let (mut length, mut path) = (0, String::new());
    loop {
        let mut line = String::new();
        stream
            .read_line(&mut line)
            .await
            .ok()
            .filter(|bytes| *bytes > 0)?;
        if path.is_empty() {
            path.clone_from(&line);
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length]).await.ok()?;
    let (piece, end) = events(&path);
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    let begin = if path.contains("/messages") {
        BEGIN_OF_ANTHROPIC
    } else {
        ""
    };
    let stream = stream.get_mut();
    stream
        .write_all(format!("{head}{begin}").as_bytes())
        .await
        .ok()?;
    let many = piece.repeat(100);
    for _hundred in 0..*PIECES / 100 {
        stream.write_all(many.as_bytes()).await.ok()?;
    }
    stream.write_all(end.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_stream_of_every_interface_stays_in_bounded_memory() {
    let provider = provider().await;
    let env = [("NO_PROXY", "127.0.0.1"), ("LONG_KEY", "a-key-of-tests")];
    let args = [
        "llm-service",
        "--listen",
        "127.0.0.1:0",
        "--allow-key-env",
        "LONG_KEY",
    ];
    let args = [&args[..], &["--allow-base-url", "http://127.0.0.1:*"]].concat();
    let mut service = Tarsy::spawn("service", &args, &env);
    let address = service.ready().await;
    let mut client = LlmServiceClient::connect(format!("http://{address}"))
        .await
        .unwrap();
    for (backend, name, model) in [
        ("google-native", "google", "gemini-2.5-flash"),
        ("genai", "anthropic", "claude-sonnet-4-5"),
        ("genai", "openai-compatible", "local"),
    ] {
        let config = LlmConfig {
            backend: backend.into(),
            provider: name.into(),
            model: model.into(),
            api_key_env: "LONG_KEY".into(),
            base_url: format!("http://{provider}/v1"),
            ..LlmConfig::default()
        };
        let message = ConversationMessage {
            role: "user".into(),
            content: "why?".into(),
            ..Default::default()
        };
        let request = GenerateRequest {
            messages: vec![message],
            llm_config: Some(config),
            ..GenerateRequest::default()
        };
        let before = peak_memory(&service);
        let mut stream = client.generate(request).await.unwrap().into_inner();
        let mut pieces = 0;
        while let Some(response) = stream.message().await.unwrap() {
            match response.content {
                Some(Content::Text(text)) => pieces += text.content.len() / "some words ".len(),
                Some(Content::Error(error)) => panic!("{name}: {error:?} after {pieces}"),
                _ => {}
            }
            if pieces % PAUSE_EVERY == 1 {
                // Provider and service fill their buffers meanwhile.
                tokio::time::sleep(Duration::from_millis(100)).await; // the slow reader itself
            }
        }
        let most = peak_memory(&service);
        println!("{name}: {before} MiB before, at most {most} MiB");
        assert_eq!(pieces, *PIECES, "{name}");
        assert!(
            most - before <= MAX_GROWTH_MIB,
            "{name}: {before} MiB before, {most} MiB at most"
        );
    }
}
