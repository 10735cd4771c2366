//! The backends of real providers, compared with recordings of the existing service and with the official SDKs.
//!
//! The comparison itself is Python, in `tests/llm/`: a foreign client with its own stubs, a fake provider, and the
//! table of intended differences. Here are the processes: one provider, and services that get its address.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::support::process::Tarsy;

/// Cases of this project.
const OWN_CASES: &str = "tests/fixtures/llm";
/// Cases that only an official SDK is compared with.
const SDK_CASES: &str = "tests/fixtures/llm_sdk";
/// Recordings that lie beside the checkout where it has been prepared for that.
const SHARED_CASES: &str = "../shared/llm_cases";

/// The variables of every Python process.
const PYTHON_ENV: [(&str, &str); 2] = [("NO_PROXY", "127.0.0.1"), ("PYTHONDONTWRITEBYTECODE", "1")];

/// Printed directly, because the harness captures the output of tests.
fn print_skipped(what: &str) {
    std::io::stderr()
        .write_all(format!("\nSKIPPED: llm::differential::{what}\n\n").as_bytes())
        .unwrap();
}

/// The interpreter that has gRPC and the SDKs; `None` after printing why the test is skipped.
fn interpreter(test: &str) -> Option<PathBuf> {
    let python = std::env::var("TARSY_TEST_LLM_PYTHON")
        .ok()
        .filter(|python| !python.is_empty());
    if python.is_none() {
        print_skipped(&format!(
            "{test}: no Python with gRPC: TARSY_TEST_LLM_PYTHON is not set, ./dev test sets it"
        ));
    }
    python.map(PathBuf::from)
}

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// A provider that answers with the cases of a folder, and services that send their requests to it.
struct System {
    python: PathBuf,
    cases: PathBuf,
    provider: String,
    processes: Vec<Tarsy>,
}

impl System {
    async fn start(python: PathBuf, cases: &str) -> Self {
        let cases = path(cases);
        let script = path("tests/llm/fake.py");
        let args = [script.to_str().unwrap(), cases.to_str().unwrap()];
        let mut process = Tarsy::spawn_program(&python, "the fake provider", &args, &PYTHON_ENV);
        let provider = process.ready().await;
        Self {
            python,
            cases,
            provider,
            processes: vec![process],
        }
    }

    /// Starts a service that has the key of every case, and returns its address.
    async fn service(&mut self) -> String {
        let address = &self.provider;
        let mut env = vec![
            ("NO_PROXY".to_owned(), "127.0.0.1".to_owned()),
            (
                "GOOGLE_GEMINI_BASE_URL".to_owned(),
                format!("http://{address}"),
            ),
            ("ANTHROPIC_BASE_URL".to_owned(), format!("http://{address}")),
            ("OPENAI_BASE_URL".to_owned(), format!("http://{address}/v1")),
            ("XAI_API_BASE".to_owned(), format!("http://{address}/v1")),
        ];
        for entry in std::fs::read_dir(&self.cases).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            env.extend(
                file.strip_suffix(".case.json")
                    .map(|name| (format!("CASE_KEY_{name}"), name.to_owned())),
            );
        }
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let url = format!("http://{address}");
        let args = [
            "llm-service",
            "--listen",
            "127.0.0.1:0",
            "--allow-key-env",
            "CASE_KEY_*",
            "--allow-base-url",
            &url,
        ];
        let mut process = Tarsy::spawn("the service", &args, &env);
        let ready = process.ready().await;
        self.processes.push(process);
        ready
    }

    /// Runs a program of `tests/llm/` and returns what it prints.
    async fn run(&self, program: &str, addresses: &[&str], rest: &[&str]) -> String {
        let script = path("tests/llm").join(program);
        let args = [
            &[script.to_str().unwrap()],
            addresses,
            &[self.provider.as_str()],
            rest,
        ]
        .concat();
        let mut process = Tarsy::spawn_program(&self.python, program, &args, &PYTHON_ENV);
        let (code, output) = process.finished().await;
        assert_eq!(
            code,
            0,
            "{program} found a fault:\n{output}{}",
            process.log()
        );
        output
    }
}

/// Runs a program with one service and the cases of a folder.
async fn compare(test: &str, program: &str, cases: &str) {
    let Some(python) = interpreter(test) else {
        return;
    };
    let mut system = System::start(python, cases).await;
    let service = system.service().await;
    system
        .run(program, &[&service], &[system.cases.to_str().unwrap()])
        .await;
}

#[tokio::test]
async fn the_comparison_finds_every_planted_fault() {
    let Some(python) = interpreter("the_comparison_finds_every_planted_fault") else {
        return;
    };
    let args = [path("tests/llm/planted.py"), path(OWN_CASES)];
    let args: Vec<&str> = args.iter().map(|path| path.to_str().unwrap()).collect();
    let mut process = Tarsy::spawn_program(&python, "planted.py", &args, &PYTHON_ENV);
    let (code, output) = process.finished().await;
    assert_eq!(code, 0, "{output}{}", process.log());
}

#[tokio::test]
async fn every_case_has_the_expected_stream_and_requests() {
    compare(
        "every_case_has_the_expected_stream_and_requests",
        "differential.py",
        OWN_CASES,
    )
    .await;
}

#[tokio::test]
async fn recorded_cases_differ_only_as_the_table_says() {
    let test = "recorded_cases_differ_only_as_the_table_says";
    if !path(SHARED_CASES).is_dir() {
        return print_skipped(&format!(
            "{test}: there are no recordings in {SHARED_CASES}"
        ));
    }
    compare(test, "differential.py", SHARED_CASES).await;
}

#[tokio::test]
async fn signatures_return_byte_for_byte_through_another_process() {
    let Some(python) = interpreter("signatures_return_byte_for_byte_through_another_process")
    else {
        return;
    };
    let mut system = System::start(python, OWN_CASES).await;
    let (first, second) = (system.service().await, system.service().await);
    for case in ["signatures", "anthropic_calls", "openai_items"] {
        system
            .run(
                "round_trip.py",
                &[&first, &second],
                &[system.cases.to_str().unwrap(), case],
            )
            .await;
    }
}

#[tokio::test]
async fn the_official_sdk_of_gemini_sends_the_same_requests() {
    compare(
        "the_official_sdk_of_gemini_sends_the_same_requests",
        "witness_gemini.py",
        OWN_CASES,
    )
    .await;
}

#[tokio::test]
async fn the_official_sdk_of_anthropic_sends_the_same_requests() {
    compare(
        "the_official_sdk_of_anthropic_sends_the_same_requests",
        "witness_anthropic.py",
        SDK_CASES,
    )
    .await;
}

#[tokio::test]
async fn the_official_sdk_of_openai_sends_the_same_requests() {
    compare(
        "the_official_sdk_of_openai_sends_the_same_requests",
        "witness_openai.py",
        SDK_CASES,
    )
    .await;
}
