//! A whole LLM service in this process, and a provider that answers with any bytes.
//!
//! The fuzz targets of `fuzz/providers` compile this file as well, so it uses only public parts of tarsy.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::proto::{
    ACCEPT_CODES, ACCEPT_FINISH, ACCEPT_OTHER_SOURCES, ACCEPT_PROVIDER_DATA, ACCEPT_RETRY,
    ACCEPT_URL_RETRIEVALS, ConversationMessage, GenerateRequest, GenerateResponse, LlmConfig,
    ProviderData, ToolCall, ToolDefinition,
};
use tarsy_llm::service::backend::{Backend, Backends};
use tarsy_llm::service::genai::Genai;
use tarsy_llm::service::google::Google;
use tarsy_llm::service::provider::Access;
use tarsy_llm::service::provider::key::Environment;
use tarsy_llm::service::provider::timeouts::Timeouts;
use tarsy_llm::service::{Options, Service};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

/// Too short for a back-off, so a failed answer is not asked for again.
const CALL_TIMEOUT: Duration = Duration::from_millis(450);
/// So often may a call be too late for its request.
const MAX_LATE: usize = 20;
/// Even on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(20);
/// The number of bytes by which an answer may exceed the bytes of the provider.
const MAX_GROWTH: usize = 64 * 1024;
const TIMEOUTS: Timeouts = Timeouts {
    first_chunk: Duration::from_millis(300),
    stall: Duration::from_millis(300),
    end: Duration::from_millis(20),
    whole: None,
};

/// An API with the words by which a request selects it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Api {
    pub(crate) provider: &'static str,
    backend: &'static str,
    model: &'static str,
    /// The formats of its provider data.
    formats: &'static [&'static str],
    /// A whole answer.
    pub(crate) good: &'static str,
}

/// Every reader of streams that the service has.
pub(crate) const APIS: [Api; 4] = [
    Api {
        provider: "google",
        backend: "google-native",
        model: "gemini-3-flash-preview",
        formats: &["gemini.contents.v1"],
        good: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\"}]}\n\n",
    },
    Api {
        provider: "anthropic",
        backend: "genai",
        model: "claude-sonnet-4-5",
        formats: &["anthropic.blocks.v1"],
        good: concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
    },
    Api {
        provider: "openai",
        backend: "genai",
        model: "gpt-5-mini",
        formats: &["openai.items.v1", "openai.reasoning.v1"],
        good: concat!(
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"ok\"}\n\n",
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"id\":\"i\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"ok\"}]}],\"usage\":{\"input_tokens\":1,\"output_tokens\":1,\"total_tokens\":2}}}\n\n",
        ),
    },
    Api {
        provider: "openai-compatible",
        backend: "genai",
        model: "local",
        formats: &["openai.reasoning.v1"],
        good: concat!(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
    },
];

/// The answers that the provider gives next, and the bodies that it got.
#[derive(Debug, Default)]
struct Exchange {
    answers: VecDeque<Vec<Vec<u8>>>,
    bodies: Vec<Vec<u8>>,
}

/// The service and its provider.
pub(crate) struct Arena {
    runtime: Runtime,
    channel: Channel,
    provider: String,
    exchange: Arc<Mutex<Exchange>>,
}

impl Arena {
    pub(crate) fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let exchange: Arc<Mutex<Exchange>> = Arc::default();
        let shared = Arc::clone(&exchange);
        let (provider, channel) = runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let provider = format!("http://{}", listener.local_addr().expect("an address"));
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream, Arc::clone(&shared)));
                }
            });
            let address = serve(&provider).await;
            let channel = Channel::from_shared(format!("http://{address}")).expect("an address");
            (provider, channel.connect().await.expect("a connection"))
        });
        Self {
            runtime,
            channel,
            provider,
            exchange,
        }
    }

    /// The bytes are the answer of a provider, in pieces of the first byte's choice. The answer ends once, is not much
    /// longer than the bytes, and can be continued.
    pub(crate) fn answer(&self, api: Api, bytes: &[u8]) {
        let (size, body) = bytes
            .split_first()
            .map_or((1, bytes), |(size, rest)| (usize::from(*size) + 1, rest));
        let pieces = body.chunks(size).map(<[u8]>::to_vec).collect();
        let request = self.request(api, vec![message("user", "why?")]);
        let (responses, _bodies) = self.ask(vec![pieces], request.clone());
        let length: usize = responses.iter().map(length).sum();
        assert!(
            length <= 4 * body.len() + MAX_GROWTH,
            "{length} bytes for {} of {}",
            body.len(),
            api.provider
        );
        let is_answer = !matches!(
            responses.last(),
            Some(GenerateResponse {
                content: Some(Content::Error(_)),
                ..
            })
        );
        if is_answer {
            self.continued(api, request, &responses);
        }
    }

    /// The bytes are the provider data of a former answer, its text, the arguments of its calls, the result of a tool,
    /// or the schema of a tool: what is sent to the provider is JSON, or the request is refused.
    pub(crate) fn history(&self, api: Api, bytes: &[u8]) {
        let (choice, payload) = bytes
            .split_first()
            .map_or((0, bytes), |(choice, rest)| (usize::from(*choice), rest));
        let text = String::from_utf8_lossy(payload).into_owned();
        let data = ProviderData {
            provider: api.provider.to_owned(),
            model: api.model.to_owned(),
            format: api.formats[choice % api.formats.len()].to_owned(),
            payload: payload.to_vec(),
        };
        let own = |bit: usize| choice >> 4 & bit != 0;
        let mut tool_calls = calls_of(payload);
        if own(1) {
            let arguments = text.clone();
            tool_calls.push(ToolCall {
                id: "c".to_owned(),
                name: "s.a".to_owned(),
                arguments,
            });
        }
        let results = tool_calls.iter().map(|call| ConversationMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            is_error: own(2),
            ..message("tool", if own(4) { &text } else { "{}" })
        });
        let mut messages = vec![message("system", "sys"), message("user", "why?")];
        let results: Vec<_> = results.collect();
        let content = if own(8) { text.clone() } else { "t".to_owned() };
        let provider_data = Some(data);
        messages.push(ConversationMessage {
            content,
            tool_calls,
            provider_data,
            ..message("assistant", "")
        });
        messages.extend(results);
        messages.push(message("user", "go on"));
        let mut request = self.request(api, messages);
        if own(8) {
            request.tools[0].parameters_schema = text;
        }
        self.sent(api, request);
    }

    /// The answer goes back with its provider data, and a result for each call.
    fn continued(&self, api: Api, mut request: GenerateRequest, responses: &[GenerateResponse]) {
        let mut answer = message("assistant", "");
        for response in responses {
            match response.content.clone() {
                Some(Content::Text(text)) => answer.content.push_str(&text.content),
                Some(Content::ToolCall(call)) => {
                    let id = call.call_id;
                    answer.tool_calls.push(ToolCall {
                        id,
                        name: call.name,
                        arguments: call.arguments,
                    });
                }
                Some(Content::ProviderData(data)) => {
                    serde_json::from_slice::<Value>(&data.payload).expect("provider data are JSON");
                    answer.provider_data = Some(data);
                }
                _ => {}
            }
        }
        let result = |call: &ToolCall| ConversationMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            ..message("tool", "fine")
        };
        let results: Vec<_> = answer.tool_calls.iter().map(result).collect();
        request.messages.push(answer);
        request.messages.extend(results);
        request.messages.push(message("user", "go on"));
        self.sent(api, request);
    }

    /// Sends a request that gets a good answer. Either it is refused before it is sent, or it is JSON with messages.
    fn sent(&self, api: Api, request: GenerateRequest) {
        let ask = || self.ask(vec![vec![api.good.as_bytes().to_vec()]], request.clone());
        let is_late = |response: &GenerateResponse| matches!(&response.content, Some(Content::Error(error)) if error.code == "deadline_exceeded");
        // A busy machine may need longer to send a request than the call may take.
        let mut asked = std::iter::repeat_with(ask).take(MAX_LATE);
        let decided = asked.find(|(responses, bodies)| {
            !bodies.is_empty() || !responses.last().is_some_and(is_late)
        });
        let (responses, bodies) = decided.expect("a call that was not too late");
        match bodies.first() {
            Some(body) => {
                // Provider data go back as they came, also with a number that no parser can read.
                let fields: HashMap<String, &RawValue> =
                    serde_json::from_slice(body).expect("a request is JSON");
                let list = ["contents", "messages", "input"]
                    .iter()
                    .find_map(|key| fields.get(*key));
                let list =
                    list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok());
                assert!(
                    list.is_some_and(|list| !list.is_empty()),
                    "no messages in {fields:?}"
                );
            }
            None => {
                let refused = |response: &GenerateResponse| matches!(&response.content, Some(Content::Error(error)) if !error.retryable);
                assert!(
                    responses.last().is_some_and(refused),
                    "neither sent nor refused: {responses:?}"
                );
            }
        }
    }

    fn request(&self, api: Api, messages: Vec<ConversationMessage>) -> GenerateRequest {
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: "d".to_owned(),
            parameters_schema: r#"{"type":"object"}"#.to_owned(),
        };
        let accept = [
            ACCEPT_CODES,
            ACCEPT_FINISH,
            ACCEPT_OTHER_SOURCES,
            ACCEPT_PROVIDER_DATA,
            ACCEPT_RETRY,
            ACCEPT_URL_RETRIEVALS,
        ];
        GenerateRequest {
            messages,
            llm_config: Some(LlmConfig {
                provider: api.provider.to_owned(),
                backend: api.backend.to_owned(),
                model: api.model.to_owned(),
                api_key_env: "TEST_KEY".to_owned(),
                base_url: format!("{}/v1", self.provider),
                ..LlmConfig::default()
            }),
            tools: vec![tool("s.a"), tool("s.b")],
            accept: accept.map(str::to_owned).to_vec(),
            ..GenerateRequest::default()
        }
    }

    /// The whole answer, and the bodies that the provider got. The answer has exactly one end, which is its last part.
    fn ask(
        &self,
        answers: Vec<Vec<Vec<u8>>>,
        request: GenerateRequest,
    ) -> (Vec<GenerateResponse>, Vec<Vec<u8>>) {
        *self.exchange.lock().expect("no panic") = Exchange {
            answers: answers.into(),
            bodies: Vec::new(),
        };
        let began = Instant::now();
        let mut client = LlmServiceClient::new(self.channel.clone());
        let responses = self.runtime.block_on(async move {
            let mut request = tonic::Request::new(request);
            request.set_timeout(CALL_TIMEOUT);
            let mut stream = client
                .generate(request)
                .await
                .expect("a stream")
                .into_inner();
            let mut responses = Vec::new();
            while let Some(response) = stream.message().await.expect("a stream without a status") {
                responses.push(response);
            }
            responses
        });
        assert!(
            began.elapsed() < MAX_TIME,
            "the answer took {:?}",
            began.elapsed()
        );
        let ends = responses
            .iter()
            .filter(|response| response.is_final)
            .count();
        assert!(
            ends == 1 && responses.last().is_some_and(|last| last.is_final),
            "{ends} ends: {responses:?}"
        );
        let errors = responses
            .iter()
            .filter(|response| matches!(response.content, Some(Content::Error(_))));
        assert!(
            errors.clone().all(|error| error.is_final),
            "an error that is no end: {responses:?}"
        );
        (
            responses,
            std::mem::take(&mut self.exchange.lock().expect("no panic").bodies),
        )
    }
}

fn message(role: &str, content: &str) -> ConversationMessage {
    ConversationMessage {
        role: role.to_owned(),
        content: content.to_owned(),
        ..ConversationMessage::default()
    }
}

fn length(response: &GenerateResponse) -> usize {
    match &response.content {
        Some(Content::Text(text)) => text.content.len(),
        Some(Content::Thinking(text)) => text.content.len(),
        Some(Content::ToolCall(call)) => {
            call.name.len() + call.arguments.len() + call.call_id.len()
        }
        Some(Content::ProviderData(data)) => data.payload.len(),
        Some(_) | None => 0,
    }
}

/// The calls in the provider data of Gemini: data whose calls are not those of their message are not used.
fn calls_of(payload: &[u8]) -> Vec<ToolCall> {
    let contents: Value = serde_json::from_slice(payload).unwrap_or_default();
    let parts = contents
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|content| content["parts"].as_array())
        .flatten();
    let calls = parts.filter_map(|part| part["functionCall"]["name"].as_str());
    let call = |(number, name): (usize, &str)| ToolCall {
        id: format!("c{number}"),
        name: name.replace("__", "."),
        arguments: "{}".to_owned(),
    };
    calls.enumerate().map(call).collect()
}

async fn serve(provider: &str) -> String {
    let provider = provider.to_owned();
    // The key is permitted with every address that a variable names, so this one serves all APIs.
    let read = move |name: &str| match name {
        "TEST_KEY" => Some("a-key-of-tests".to_owned()),
        "OPENAI_BASE_URL" => Some(provider.clone()),
        _ => None,
    };
    let access = Access::new(
        vec!["TEST_KEY".to_owned()],
        Vec::new(),
        Environment::new(read),
    );
    let backends = Backends::new([
        Backend::Google(Google::new(access.clone(), TIMEOUTS)),
        Backend::Genai(Genai::new(access, TIMEOUTS)),
    ]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let service = Service::new(backends, Options::default());
    tokio::spawn(service.serve(listener, CancellationToken::new()));
    address
}

/// Answers the requests of one connection. Requests without a prepared answer get an error.
async fn answer(stream: TcpStream, exchange: Arc<Mutex<Exchange>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    let body = body(&mut stream).await?;
    let pieces = {
        let mut exchange = exchange.lock().ok()?;
        exchange.bodies.push(body);
        exchange.answers.pop_front()
    };
    let stream = stream.get_mut();
    let Some(pieces) = pieces else {
        let refused = "HTTP/1.1 400 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        return stream.write_all(refused.as_bytes()).await.ok();
    };
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
    stream
        .write_all(format!("{head}\r\n\r\n").as_bytes())
        .await
        .ok()?;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await.ok()?;
    }
    stream.write_all(b"0\r\n\r\n").await.ok()?;
    stream.shutdown().await.ok()
}

async fn body(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(body)
}
