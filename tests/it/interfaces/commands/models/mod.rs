//! `tarsy models` and `doctor` with a real LLM service, and with one that does not know the check.

mod probe;

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};
use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_server::{LlmService, LlmServiceServer};
use tarsy_llm::proto::{
    CheckProvidersRequest, CheckProvidersResponse, GenerateRequest, GenerateResponse, TextDelta,
    ToolCallDelta, UsageInfo,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;

use super::{Ran, run_with};
use crate::support::process::Tarsy;

/// The key of Gemini. No output may contain it.
const KEY: &str = "seeded-key-5d41402abc4b2a76";

const ANSWER: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"ready"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":18,"candidatesTokenCount":1,"thoughtsTokenCount":40,"totalTokenCount":59}}

"#;
const CALL: &str = r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"tarsy__echo","args":{"word":"ready","numbers":[1,2,3]}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":18,"candidatesTokenCount":1,"thoughtsTokenCount":40,"totalTokenCount":59}}

"#;
const WRONG_KEY: &str = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
const BUSY: &str = r#"{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3600s"}]}}"#;

/// An endpoint of Gemini that answers by the name of the model.
async fn gemini() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !is_whole(&request) {
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&request);
            let (status, body) = match text
                .split_once(":streamGenerateContent")
                .map_or("", |(path, _)| path)
            {
                path if path.ends_with("/good") && text.contains("functionDeclarations") => {
                    ("200 OK", CALL)
                }
                path if path.ends_with("/good") => ("200 OK", ANSWER),
                path if path.ends_with("/wrong-key") => ("400 Bad Request", WRONG_KEY),
                path if path.ends_with("/busy") => ("429 Too Many Requests", BUSY),
                _ => ("404 Not Found", "{}"),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .ok();
        }
    });
    address
}

/// Whether a request has arrived with its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length:")
            .and_then(|value| value.trim().parse().ok())
    });
    body.len() >= length.unwrap_or(0)
}

pub(super) const PROVIDERS: &str = "\
llm_providers:
  a-good: {provider: google, model: good, api_key_env: GEMINI_API_KEY, context_window: 1M, thinking: {level: high}}
  b-wrong-key: {provider: google, model: wrong-key}
  c-busy: {provider: google, model: busy}
  d-away: {provider: google, model: good, base_url: 'http://127.0.0.1:1'}
  e-no-key: {provider: openai, model: gpt-5-mini, api_key_env: OPENAI_API_KEY}
  f-forbidden-key: {provider: google, model: good, api_key_env: TEAM_KEY}
  g-forbidden-address: {provider: openai, model: m, base_url: 'https://evil.test/s3cret/v1'}
  h-recording: {provider: scripted}
defaults: {llm_provider: a-good}
";

/// A real LLM service, and a configuration for commands.
pub(super) struct System {
    folder: TempDir,
    pub(super) address: String,
    _service: Option<Tarsy>,
}

impl System {
    pub(super) async fn start() -> Self {
        let base_url = format!("http://{}", gemini().await);
        let env = [
            ("GEMINI_API_KEY", KEY),
            ("OPENAI_API_KEY", ""),
            ("TEAM_KEY", KEY),
            ("NO_PROXY", "127.0.0.1"),
            ("GOOGLE_GEMINI_BASE_URL", base_url.as_str()),
        ];
        let args = [
            "llm-service",
            "--listen",
            "127.0.0.1:0",
            "--allow-base-url",
            "http://127.0.0.1:1",
        ];
        let mut service = Tarsy::spawn("the service", &args, &env);
        let address = service.ready().await;
        Self {
            _service: Some(service),
            ..Self::before(address, PROVIDERS)
        }
    }

    fn before(address: String, config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tarsy.yaml"), config).unwrap();
        Self {
            folder,
            address,
            _service: None,
        }
    }

    /// The system with the service of another one.
    fn keeping(self, other: Self) -> Self {
        Self {
            _service: other._service,
            ..self
        }
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let config = self.folder.path().join("tarsy.yaml").display().to_string();
        let env = [
            ("TARSY_LLM_ADDR", self.address.as_str()),
            ("TARSY_CONFIG", config.as_str()),
        ];
        let ran = run_with(&env, args, b"").await;
        assert!(
            !ran.out.contains(KEY) && !ran.err.contains(KEY) && !ran.out.contains("s3cret"),
            "{ran:#?}"
        );
        ran
    }
}

/// Name, state, variable and state of the key, and code of the problem, of each provider.
fn states(ran: &Ran) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |model: Value| {
        [
            &model["name"],
            &model["state"],
            &model["key_env"],
            &model["key"],
            &model["problem"]["code"],
        ]
        .map(word)
        .join(" ")
    };
    ran.json().into_iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_says_for_each_provider_whether_it_can_be_called() {
    let system = System::start().await;
    let ran = system.run(&["models", "--json"]).await.exits(1);
    assert_eq!(
        states(&ran),
        [
            "a-good ready GEMINI_API_KEY set ",
            "b-wrong-key ready GEMINI_API_KEY set ",
            "c-busy ready GEMINI_API_KEY set ",
            "d-away ready GEMINI_API_KEY set ",
            "e-no-key unusable OPENAI_API_KEY not_set credentials",
            "f-forbidden-key unusable TEAM_KEY not_permitted credentials",
            "g-forbidden-address unusable OPENAI_API_KEY not_set invalid_request",
            "h-recording ready  not_needed ",
        ]
    );
    let models = ran.json();
    let fix = |number: usize| {
        models[number]["problem"]["fix"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        fix(4),
        "set OPENAI_API_KEY (or OPENAI_API_KEY_FILE) where the LLM service runs, and start it again"
    );
    assert_eq!(
        fix(5),
        "set TEAM_KEY where the LLM service runs: tarsy llm-service --allow-key-env 'TEAM_KEY'"
    );
    assert_eq!(
        fix(6),
        "tarsy llm-service --allow-base-url 'https://evil.test', or another base_url"
    );
    assert_eq!(
        (&models[0]["used"], &models[1]["used"]),
        (&json!(["default"]), &json!([]))
    );
    assert_eq!(models[0]["thinking"], json!({"level": "high"}));
    let one = system.run(&["models", "a-good"]).await.exits(0);
    assert!(
        one.out
            .starts_with("ok    a-good  good (google, backend google-native)\n"),
        "{}",
        one.out
    );
    let sum = "no problem found without a call; --probe asks each model\n";
    assert!(
        one.out.contains("GEMINI_API_KEY is set") && one.out.ends_with(sum),
        "{}",
        one.out
    );
    let unknown = system.run(&["models", "gemini"]).await.exits(1);
    assert!(
        unknown
            .err
            .contains("there is no provider \"gemini\"; defined: a-good, "),
        "{}",
        unknown.err
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_asks_each_model_and_names_the_cause_of_a_failure() {
    let system = System::start().await;
    let ran = system
        .run(&["models", "--probe", "--timeout", "20s", "--json"])
        .await
        .exits(1);
    assert_eq!(
        states(&ran)[..4],
        [
            "a-good ready GEMINI_API_KEY set ",
            "b-wrong-key unusable GEMINI_API_KEY set credentials",
            "c-busy unusable GEMINI_API_KEY set rate_limited",
            "d-away unusable GEMINI_API_KEY set unavailable",
        ]
    );
    let models = ran.json();
    let mut answer = models[0]["answer"].clone();
    for time in ["first_chunk_ms", "took_ms"] {
        assert!(
            answer[time].as_u64().is_some_and(|ms| ms < 20_000),
            "{answer}"
        );
        answer.as_object_mut().unwrap().remove(time);
    }
    let expected = json!({"input_tokens": 18, "output_tokens": 1, "thinking_tokens": 40, "finish": "tool_calls", "text": ""});
    assert_eq!(answer, expected);
    let problem =
        |number: usize, key: &str| models[number]["problem"][key].as_str().unwrap().to_owned();
    assert_eq!(problem(1, "provider_status"), "400 INVALID_ARGUMENT");
    assert_eq!(
        problem(1, "fix"),
        "put a key that the provider accepts into GEMINI_API_KEY where the LLM service runs"
    );
    assert_eq!(problem(2, "provider_status"), "429 RESOURCE_EXHAUSTED");
    assert_eq!(
        problem(2, "fix"),
        "wait 3600 s, or raise the limits of the account at the provider"
    );
    assert_eq!(
        problem(3, "fix"),
        "check base_url, and the network and proxy of the LLM service"
    );
    let recording = json!({"strategy": null, "native": null, "react": null,
        "notes": ["it replays recordings: no model is asked"]});
    assert_eq!(
        (&models[7]["probe"], &models[7]["answer"]),
        (&recording, &Value::Null)
    );
    let shown = system
        .run(&["models", "a-good", "--probe"])
        .await
        .exits(0)
        .out;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("ended by tool_calls; first chunk after 0.")
            && shown.contains("40 thinking"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_fails_a_provider_in_use_that_cannot_work_and_warns_of_others() {
    let system = System::start().await;
    let found = |ran: Ran| -> Vec<String> {
        let models = ran
            .json()
            .into_iter()
            .filter(|check| check["check"].as_str().unwrap().starts_with("model "));
        models
            .map(|check| {
                format!(
                    "{} {}",
                    check["check"].as_str().unwrap(),
                    check["verdict"].as_str().unwrap()
                )
            })
            .collect()
    };
    let using = |provider: &str| {
        let config = PROVIDERS.replace(
            "defaults: {llm_provider: a-good}",
            &format!("defaults: {{llm_provider: {provider}}}"),
        );
        System::before(system.address.clone(), &config)
    };
    let (without_key, wrong_key) = (using("e-no-key"), using("b-wrong-key"));
    let (unprobed, probed) = (["doctor", "--no-probe", "--json"], ["doctor", "--json"]);
    // Each of them waits for servers that are not there.
    let (good, ran, wrong, asked) = tokio::join!(
        system.run(&unprobed),
        without_key.run(&unprobed),
        wrong_key.run(&unprobed),
        wrong_key.run(&probed)
    );
    let checks = found(good.exits(1));
    assert_eq!(checks[0], "model a-good ok");
    assert!(
        checks.contains(&"model e-no-key warn".to_owned()),
        "{checks:?}"
    );
    let failed = ran
        .exits(1)
        .json()
        .into_iter()
        .find(|check| check["check"] == "model e-no-key")
        .unwrap();
    assert_eq!(failed["verdict"], "fail");
    assert!(
        failed["fix"]
            .as_str()
            .unwrap()
            .starts_with("set OPENAI_API_KEY "),
        "{failed}"
    );
    let checks = found(wrong.exits(1));
    assert_eq!(
        checks[0], "model b-wrong-key ok",
        "a key is set; only the provider knows that it is wrong"
    );
    let checks = found(asked.exits(1));
    assert_eq!(checks[0], "model b-wrong-key fail");
}

const VERTEX_AI: &str = "\
llm_providers:
  a-machine: {provider: google, model: gemini-2.5-flash, project: p}
  b-token: {provider: google, model: gemini-2.5-flash, project: p, credentials_env: VERTEX_TOKEN}
  c-account: {provider: google, model: gemini-2.5-flash, project: p, credentials_env: VERTEX_ACCOUNT}
  d-person: {provider: google, model: gemini-2.5-flash, project: p, credentials_env: VERTEX_PERSON}
  e-unset: {provider: google, model: gemini-2.5-flash, project: p, credentials_env: VERTEX_UNSET}
  f-model: {provider: google, model: no/model, project: p}
  g-claude: {provider: anthropic, model: claude-sonnet-4-5@20250929, project: p, location: eu, credentials_env: VERTEX_TOKEN}
  h-claude: {provider: anthropic, model: no/model, project: p}
defaults: {llm_provider: a-machine}
";

/// A service whose metadata server is at this address, with credentials of every kind.
async fn with_metadata_server(host: &str) -> System {
    let pem = include_str!("../../../../fixtures/google/account.pem");
    let account =
        json!({"type": "service_account", "client_email": "sre@p.test", "private_key": pem,
        "token_uri": "https://oauth2.googleapis.com/token"})
        .to_string();
    let env = [
        ("GCE_METADATA_HOST", host),
        ("VERTEX_TOKEN", KEY),
        ("VERTEX_ACCOUNT", account.as_str()),
        ("VERTEX_PERSON", r#"{"type": "authorized_user"}"#),
    ];
    let args = [
        "llm-service",
        "--listen",
        "127.0.0.1:0",
        "--allow-key-env",
        "VERTEX_*",
    ];
    let mut service = Tarsy::spawn("the service", &args, &env);
    let address = service.ready().await;
    System {
        _service: Some(service),
        ..System::before(address, VERTEX_AI)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vertex_ai_names_its_credentials_and_whether_they_are_there() {
    let metadata = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let system = with_metadata_server(&metadata.local_addr().unwrap().to_string()).await;
    let ran = system.run(&["models", "--json"]).await.exits(1);
    assert_eq!(
        states(&ran),
        [
            "a-machine ready  not_needed ",
            "b-token ready VERTEX_TOKEN set ",
            "c-account ready VERTEX_ACCOUNT set ",
            "d-person unusable VERTEX_PERSON set credentials",
            "e-unset unusable VERTEX_UNSET not_set credentials",
            "f-model unusable  not_needed invalid_request",
            "g-claude ready VERTEX_TOKEN set ",
            "h-claude unusable  not_needed invalid_request",
        ]
    );
    let used: Vec<String> = ran
        .json()
        .iter()
        .map(|model| model["credentials"].as_str().unwrap().to_owned())
        .collect();
    let machine = "the account of the machine, by the metadata server of GCE_METADATA_HOST";
    assert_eq!(
        used,
        [
            machine,
            "a token that another program renews",
            "a key of a service account",
            "",
            "",
            machine,
            "a token that another program renews",
            machine
        ]
    );
    let (mut asked, _) = metadata.accept().await.unwrap();
    let mut bytes = Vec::new();
    asked.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, b"", "no token is asked for");
    let shown = system.run(&["models", "c-account"]).await.exits(0).out;
    assert!(
        shown.contains("  credentials  a key of a service account\n"),
        "{shown}"
    );
    let checks = system
        .run(&["doctor", "--no-probe", "--json"])
        .await
        .exits(1)
        .json();
    let check = checks
        .iter()
        .find(|check| check["check"] == "model a-machine")
        .unwrap();
    assert_eq!(check["verdict"], "ok", "{check}");
    assert!(
        check["detail"]
            .as_str()
            .unwrap()
            .ends_with(&format!("; uses {machine}")),
        "{check}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_metadata_server_is_reported_at_once_with_what_to_do() {
    // One refuses the connection, one answers nothing (RFC 5737).
    for host in ["127.0.0.1:1", "192.0.2.1"] {
        let system = with_metadata_server(host).await;
        let begun = Instant::now();
        let ran = system
            .run(&["models", "a-machine", "--json"])
            .await
            .exits(1);
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{host}: {:?}",
            begun.elapsed()
        );
        assert_eq!(
            states(&ran),
            ["a-machine unusable  not_set credentials"],
            "{host}"
        );
        let problem = &ran.json()[0]["problem"];
        let message = "No metadata server answers within 500ms, and credentials_env is not set";
        assert_eq!(problem["message"], message, "{host}");
        let fix = problem["fix"].as_str().unwrap();
        assert!(
            fix.ends_with(
                "or set credentials_env of llm_providers.a-machine to the variable with the key of a service account"
            ),
            "{fix}"
        );
        let checks = system
            .run(&["doctor", "--no-probe", "--json"])
            .await
            .exits(1)
            .json();
        let check = checks
            .iter()
            .find(|check| check["check"] == "model a-machine")
            .unwrap();
        assert_eq!(check["verdict"], "fail", "{check}");
    }
}

/// A service like the existing one: it answers, and does not know the check.
#[derive(Debug)]
struct Existing;

#[tonic::async_trait]
impl LlmService for Existing {
    type GenerateStream = BoxStream<'static, Result<GenerateResponse, Status>>;

    async fn generate(
        &self,
        request: Request<GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let usage = UsageInfo {
            input_tokens: 9,
            output_tokens: 1,
            ..UsageInfo::default()
        };
        let answer = match request.into_inner().tools.first() {
            None => Content::Text(TextDelta {
                content: "ready".to_owned(),
            }),
            Some(tool) => Content::ToolCall(ToolCallDelta {
                call_id: "1".to_owned(),
                name: tool.name.clone(),
                arguments: r#"{"word": "ready", "numbers": [1, 2, 3]}"#.to_owned(),
            }),
        };
        let chunks = [Some(answer), Some(Content::Usage(usage)), None].map(|content| {
            Ok(GenerateResponse {
                is_final: content.is_none(),
                content,
            })
        });
        Ok(Response::new(stream::iter(chunks).boxed()))
    }

    async fn check_providers(
        &self,
        _request: Request<CheckProvidersRequest>,
    ) -> Result<Response<CheckProvidersResponse>, Status> {
        Err(Status::unimplemented("Method not found!"))
    }
}

async fn existing() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    let service = LlmServiceServer::new(Existing);
    let incoming = TcpIncoming::from(listener);
    (
        address,
        tokio::spawn(async move {
            Server::builder()
                .add_service(service)
                .add_service(health_service)
                .serve_with_incoming(incoming)
                .await
                .unwrap()
        }),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_cannot_tell_leaves_the_state_unknown_until_a_probe() {
    let (address, service) = existing().await;
    let config =
        "llm_providers: {gemini: {provider: google, model: good, api_key_env: GEMINI_API_KEY}}";
    let system = System::before(address, config);
    let ran = system.run(&["models"]).await.exits(0);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.starts_with("? gemini good (google, backend google-native) used by default key"),
        "{text}"
    );
    assert!(
        text.contains("this LLM service cannot tell") && text.ends_with("1 provider, 1 unknown"),
        "{text}"
    );
    let ran = system.run(&["models", "--probe", "--json"]).await.exits(0);
    assert_eq!(states(&ran), ["gemini ready GEMINI_API_KEY unknown "]);
    let checks = system.run(&["doctor", "--no-probe", "--json"]).await.json();
    let check = checks
        .iter()
        .find(|check| check["check"] == "model gemini")
        .unwrap();
    assert_eq!(check["verdict"], "warn", "{check}");
    service.abort();
}

#[tokio::test]
async fn without_a_service_or_a_file_the_command_says_what_to_do() {
    let system = System::before(
        "127.0.0.1:1".to_owned(),
        "llm_providers: {m: {provider: openai, model: m}}",
    );
    let ran = system.run(&["models", "--json"]).await.exits(1);
    assert_eq!(
        states(&ran),
        ["m unusable  unknown llm_service_unavailable"]
    );
    assert_eq!(
        ran.json()[0]["problem"]["fix"],
        "tarsy llm-service, or set TARSY_LLM_ADDR"
    );
    let ran = run_with(&[("TARSY_LLM_ADDR", "127.0.0.1:1")], &["models"], b"")
        .await
        .exits(1);
    assert!(
        ran.err.contains("tarsy init writes a first tarsy.yaml"),
        "{}",
        ran.err
    );
}
