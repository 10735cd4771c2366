//! An LLM service that can be killed, and requests to it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use tarsy_config::LlmService;
use tarsy_core::execution::entry::{Answer, Role};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{ProviderPlan, ToolSpec};
use tarsy_core::timeline::DeltaKind;
use tarsy_drill::transcript::Transcript;
use tarsy_engine::ports::{Message, Model, ModelError, ModelRequest};
use tarsy_llm::client::Client;
use tarsy_llm::service::backend::{Backend, Backends};
use tarsy_llm::service::scripted::{Options, Scripted};
use tarsy_llm::service::{self, Service};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The timeout of every step of a test.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// A service on a runtime of its own, so that killing it closes its connections.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) token: CancellationToken,
    pub(super) served: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Server {
    pub(super) fn start(options: Options) -> Self {
        Self::start_at(
            "127.0.0.1:0".parse().unwrap(),
            options,
            Duration::from_secs(30),
        )
    }

    pub(super) fn start_at(address: SocketAddr, options: Options, drain_timeout: Duration) -> Self {
        Self::start_with(
            address,
            options,
            service::Options {
                settings: LlmService {
                    drain_timeout,
                    ..LlmService::default()
                },
                ..service::Options::default()
            },
        )
    }

    pub(super) fn start_with(
        address: SocketAddr,
        options: Options,
        of_service: service::Options,
    ) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let token = CancellationToken::new();
        let backends = Backends::new([Backend::Scripted(Scripted::new(options).unwrap())]);
        let service = Service::new(backends, of_service);
        let stop = token.clone();
        let served = runtime.spawn(async move {
            service
                .serve(TcpListener::from_std(listener).unwrap(), stop)
                .await
                .unwrap();
        });
        Self {
            address,
            token,
            served: Some(served),
            runtime: Some(runtime),
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::connect(&self.address.to_string()).unwrap()
    }

    pub(super) fn kill(mut self) -> SocketAddr {
        self.runtime.take().unwrap().shutdown_background();
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Options with one transcript, named `test`.
pub(super) fn script(answers: &str) -> Options {
    let transcript = Transcript::parse(&format!("name: test\nanswers:\n{answers}")).unwrap();
    Options {
        transcripts: vec![transcript],
        ..Options::default()
    }
}

/// A request of a new execution for the named transcript, with one tool.
pub(super) fn request(transcript: &str, prompt: &str) -> ModelRequest {
    let session_id = SessionId(Uuid::now_v7());
    let execution_id = ExecutionId::derive(session_id, 1, 1);
    ModelRequest {
        session_id,
        execution_id,
        request_id: format!("{execution_id}:1"),
        provider: ProviderPlan {
            name: "recording".into(),
            provider: "scripted".into(),
            backend: "scripted".into(),
            model: "none".into(),
            api_key_env: String::new(),
            base_url: String::new(),
            transcript: transcript.into(),
            context_window: 0,
            ..ProviderPlan::default()
        },
        messages: vec![
            message(Role::System, "You investigate alerts."),
            message(Role::User, prompt),
        ],
        tools: vec![ToolSpec {
            original_name: None,
            name: "drill.describe_pod".into(),
            description: "Describes a pod.".into(),
            parameters_schema: r#"{"type":"object"}"#.into(),
            read_only: true,
            approval: None,
        }],
        declared_tools: Vec::new(),
        clear_cache: false,
        timeout: STEP_TIMEOUT,
    }
}

pub(super) fn message(role: Role, content: &str) -> Message {
    Message {
        role,
        content: content.into(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: None,
        is_error: false,
        provider_data: None,
    }
}

/// The request after this answer, with a result for each of its calls.
pub(super) fn continued(mut request: ModelRequest, answer: &Answer) -> ModelRequest {
    request.messages.push(Message {
        tool_calls: answer.calls.clone(),
        provider_data: answer.provider_data.clone(),
        ..message(Role::Assistant, &answer.text)
    });
    for call in &answer.calls {
        request.messages.push(Message {
            tool_call_id: Some(call.id.clone()),
            tool_name: Some(call.tool.clone()),
            ..message(Role::Tool, "some evidence")
        });
    }
    request
}

pub(super) async fn ask(client: &Client, request: &ModelRequest) -> Result<Answer, ModelError> {
    within_timeout(client.generate(request.clone(), |_, _| {})).await
}

/// The answer with its deltas.
pub(super) async fn watch(
    client: &Client,
    request: &ModelRequest,
) -> (Result<Answer, ModelError>, Vec<(DeltaKind, String)>) {
    let shown = Mutex::new(Vec::new());
    let answer = within_timeout(client.generate(request.clone(), |kind, piece| {
        shown.lock().unwrap().push((kind, piece.to_owned()))
    }))
    .await;
    (answer, shown.into_inner().unwrap())
}

pub(super) async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(STEP_TIMEOUT, future)
        .await
        .expect("a step timed out")
}

/// Code, message and timeout flag of a failure.
pub(super) fn failed(result: Result<Answer, ModelError>) -> (String, String, bool) {
    match result {
        Err(ModelError::Failed {
            code,
            message,
            timeout,
            ..
        }) => (code, message, timeout),
        other => panic!("not a failure: {other:?}"),
    }
}

pub(super) fn assert_unavailable(result: Result<Answer, ModelError>) {
    assert!(
        matches!(result, Err(ModelError::Unavailable(_))),
        "not unavailable: {result:?}"
    );
}
