//! The backend for OpenAI-compatible servers, against one that others wrote: the proxy of `LiteLLM` from `PyPI`.
//!
//! It needs no weights of a model: it answers one model itself, and translates the others for a fake Gemini.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::http;
use crate::support::process::Tarsy;
use crate::support::process::ports::free_port;
use crate::support::wait::eventually_within;

/// `LiteLLM` needs half a minute on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(180);
const LOCAL: (&str, &str) = ("NO_PROXY", "127.0.0.1");
const KEY: (&str, &str) = ("LITELLM_KEY", "sk-right-key-of-litellm");

fn path(relative: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(relative)
        .to_str()
        .unwrap()
        .to_owned()
}

fn interpreter(variable: &str) -> Option<PathBuf> {
    std::env::var(variable)
        .ok()
        .filter(|python| !python.is_empty())
        .map(PathBuf::from)
}

#[tokio::test]
async fn a_provider_that_others_wrote_is_called_with_text_tools_and_failures() {
    let found = interpreter("TARSY_TEST_LLM_PYTHON").zip(interpreter("TARSY_TEST_LITELLM_PYTHON"));
    let Some((python, litellm)) = found else {
        // Printed directly, because the harness captures the output of tests.
        let line = "\nSKIPPED: llm::litellm: no Python with LiteLLM: TARSY_TEST_LITELLM_PYTHON is not set, ./dev test sets it\n\n";
        return std::io::stderr().write_all(line.as_bytes()).unwrap();
    };
    let args = [
        path("tests/llm/fake.py"),
        path("tests/fixtures/llm_litellm"),
    ];
    let args = args.each_ref().map(String::as_str);
    let mut gemini = Tarsy::spawn_program(&python, "the fake Gemini", &args, &[LOCAL]);
    let gemini_address = gemini.ready().await;
    let gemini_url = format!("http://{gemini_address}");

    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    // Its table of costs comes from the package and not from the network.
    let env = [
        LOCAL,
        KEY,
        ("GEMINI_ADDRESS", gemini_url.as_str()),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
    ];
    let args = [path("tests/llm/litellm_proxy.py"), port.to_string()];
    let _proxy = Tarsy::spawn_program(
        &litellm,
        "LiteLLM",
        &args.each_ref().map(String::as_str),
        &env,
    );
    let is_up = async || {
        http::try_get(&address, "/health/liveliness")
            .await
            .is_some_and(|answer| answer.status == 200)
    };
    eventually_within(START_TIMEOUT, "LiteLLM answers", is_up).await;

    let args = [
        "llm-service",
        "--listen",
        "127.0.0.1:0",
        "--allow-key-env",
        "LITELLM_KEY",
        "WRONG_KEY",
    ];
    let args = [&args[..], &["--allow-base-url", "http://127.0.0.1:*"]].concat();
    let mut service = Tarsy::spawn(
        "the service",
        &args,
        &[LOCAL, KEY, ("WRONG_KEY", "sk-wrong-key")],
    );
    let service_address = service.ready().await;
    let script = path("tests/llm/openai_compatible.py");
    let args = [script.as_str(), &service_address, &gemini_address, &address];
    let mut client = Tarsy::spawn_program(&python, "openai_compatible.py", &args, &[LOCAL]);
    let (code, output) = client.finished().await;
    println!("{output}");
    assert_eq!(code, 0, "{output}{}", client.log());
    assert!(!service.log().contains("sk-"), "{}", service.log());
}
