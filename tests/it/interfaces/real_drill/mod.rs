//! `tarsy drill --provider`: the whole system with an endpoint in the place of a provider.

mod model;

use serde_json::{Value, json};

use self::model::{Model, Reply, Request};
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::{Tarsy, children_of, is_running};
use crate::support::wait::eventually;

const KEY: &str = "drill-key-of-the-test";
const POD: &str = "checkout-7d9f8b6c5-x2x9p";

/// Servers and a drill that runs on them.
struct Running {
    _nats: NatsServer,
    _database: TestDatabase,
    drill: Tarsy,
}

async fn start(model: &Model, arguments: &[&str]) -> Running {
    let fixed = ["--provider", "gemini", "--base-url", &model.url];
    start_with(&[&fixed, arguments].concat(), &[("GEMINI_API_KEY", KEY)]).await
}

async fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
    let (nats_url, database_url) = (nats.url(), database.url().to_owned());
    let env = [
        ("NATS_URL", nats_url.as_str()),
        ("DATABASE_URL", database_url.as_str()),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let drill = Tarsy::spawn(
        "drill",
        &[&["drill"], arguments].concat(),
        &[&env, variables].concat(),
    );
    Running {
        _nats: nats,
        _database: database,
        drill,
    }
}

/// The result of a drill with `--json`: the last line of its output.
async fn result(mut running: Running) -> (i32, Value) {
    let (code, shown) = running.drill.finished().await;
    let last = shown
        .lines()
        .last()
        .unwrap_or_else(|| panic!("no output: {}", running.drill.log()));
    (code, serde_json::from_str(last).unwrap())
}

fn first_calls() -> Reply {
    Reply::Calls(vec![
        (
            "deployment_history",
            json!({"namespace": "checkout", "deployment": "deployment/checkout"}),
        ),
        ("describe_pod", json!({"namespace": "checkout", "pod": POD})),
    ])
}

fn second_calls() -> Reply {
    Reply::Calls(vec![(
        "pod_logs",
        json!({"namespace": "checkout", "pod": POD, "previous": true, "tail": 200}),
    )])
}

fn right_report(request: &Request) -> Reply {
    let [history, pod, logs] =
        ["deployment_history", "describe_pod", "pod_logs"].map(|name| request.event(name));
    Reply::Text(format!(
        "Cause: the netty client of revision 43 leaks direct buffers, beside a heap of 480Mi in 512Mi.\n\
         Evidence: killed with exit code 137 [{pod}], a leak report [{logs}], okhttp → netty [{history}].\n\
         Do next: roll back to revision 42."
    ))
}

fn competent(request: &Request) -> Reply {
    match request.turn() {
        0 => first_calls(),
        1 => second_calls(),
        _ => right_report(request),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_finds_the_cause_solves_the_drill() {
    let model = Model::start(competent).await;
    let (code, result) = result(start(&model, &["--json"]).await).await;
    assert_eq!(
        (code, &result["outcome"]),
        (0, &json!("solved")),
        "{result:#}"
    );
    let counted = ["turns", "calls", "misses"].map(|key| result[key].as_i64().unwrap());
    assert_eq!((counted, &result["cost_usd"]), ([3, 3, 0], &Value::Null));
    assert_eq!(
        result["models"][0]["usage"],
        json!({"input": 3_000, "cached": 0, "output": 300, "thinking": 0})
    );
    assert!(
        result["report"]
            .as_str()
            .unwrap()
            .starts_with("Cause: the netty client"),
        "{result:#}"
    );
    assert!(!result.to_string().contains(KEY));

    let first = &model.requests()[0];
    assert!(
        first
            .head
            .contains("/v1beta/models/gemini-2.5-flash:streamGenerateContent"),
        "{}",
        first.head
    );
    assert!(
        first
            .head
            .to_lowercase()
            .contains(&format!("x-goog-api-key: {KEY}")),
        "{}",
        first.head
    );
    let told = first.body.to_string().to_lowercase();
    let answers = [
        "netty",
        "leak",
        "off-heap",
        "480m",
        "revision 43",
        "oom-killed.",
        "rubric",
    ];
    assert!(
        answers.iter().all(|answer| !told.contains(answer)),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_behind_the_interface_of_openai_solves_the_drill() {
    let model = Model::start(competent).await;
    let base_url = format!("{}/v1/", model.url);
    let arguments = [
        "--provider",
        "openai-compatible:qwen3:8b",
        "--base-url",
        &base_url,
        "--json",
    ];
    let (code, result) = result(start_with(&arguments, &[]).await).await;
    assert_eq!(
        (code, &result["outcome"]),
        (0, &json!("solved")),
        "{result:#}"
    );
    let counted = ["turns", "calls", "misses"].map(|key| result[key].as_i64().unwrap());
    assert_eq!(counted, [3, 3, 0]);
    assert_eq!(
        result["models"][0]["usage"],
        json!({"input": 3_000, "cached": 0, "output": 300, "thinking": 0})
    );
    let requests = model.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.head.starts_with("POST /v1/chat/completions ")),
        "{requests:#?}"
    );
    assert_eq!(
        (requests.len(), &requests[0].body["model"]),
        (3, &json!("qwen3:8b"))
    );
    assert!(
        !requests[0]
            .head
            .to_lowercase()
            .contains("authorization: bearer s"),
        "no key is set"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_of_the_file_keeps_its_settings_in_a_drill() {
    let model = Model::start(competent).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tarsy.yaml");
    let provider = format!(
        "{{provider: vllm, model: team-model, base_url: '{}/v1/', api_key_env: TEAM_KEY, temperature: 0.5, \
         price: {{input: 1, output: 10}}}}",
        model.url
    );
    std::fs::write(&file, format!("llm_providers: {{team: {provider}}}\n")).unwrap();
    let variables = [("TARSY_CONFIG", file.to_str().unwrap()), ("TEAM_KEY", KEY)];
    let (code, result) =
        result(start_with(&["--provider", "team", "--json"], &variables).await).await;
    assert_eq!(
        (code, &result["outcome"]),
        (0, &json!("solved")),
        "{result:#}"
    );
    let cost = result["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.006).abs() < 1e-6, "{cost}");
    assert!(!result.to_string().contains(KEY));
    let first = &model.requests()[0];
    assert_eq!(
        (&first.body["model"], &first.body["temperature"]),
        (&json!("team-model"), &json!(0.5))
    );
    assert!(
        first
            .head
            .to_lowercase()
            .contains(&format!("authorization: bearer {KEY}")),
        "{}",
        first.head
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_blames_the_symptom_does_not_solve_it() {
    let model = Model::start(|request| match request.turn() {
        0 => first_calls(),
        _ => Reply::Text(
            "Cause: too little memory.\nEvidence: it has 640Mi [99].\nDo next: drain the node."
                .to_owned(),
        ),
    })
    .await;
    let mut running = start(&model, &[]).await;
    let (code, shown) = running.drill.finished().await;
    assert_eq!(code, 4, "{shown}\n{}", running.drill.log());
    for part in [
        "Drill oom-killed, google gemini-2.5-flash: wrong",
        "no  cause.off-heap",
        "no  citations.invented  [99] is not the result of a tool",
        "no  numbers.invented    no cited result has 640Mi",
        "no  actions.do_next     the line Do next says \"drain the node\"",
        "The cause is: Revision 43",
        "3 turns, 2 tool calls",
        "3 calls, ",
        "Cost: unknown",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        running
            .drill
            .log()
            .contains("REAL: google gemini-2.5-flash, key of GEMINI_API_KEY")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_not_recorded_tells_the_model_nothing() {
    let model = Model::start(|request| match request.turn() {
        0 => Reply::Calls(vec![
            (
                "query_range",
                json!({"query": "rate(container_cpu_usage_seconds_total[5m])"}),
            ),
            (
                "describe_pod",
                json!({"namespace": "checkout", "pod": "checkout"}),
            ),
        ]),
        1 => first_calls(),
        2 => second_calls(),
        _ => right_report(request),
    })
    .await;
    let (code, result) = result(start(&model, &["--json"]).await).await;
    let counted = ["turns", "calls", "misses"].map(|key| result[key].as_i64().unwrap());
    assert_eq!((code, counted), (0, [4, 5, 1]), "{result:#}");
    let asked = &model.requests()[1];
    let miss = asked.results("query_range").concat();
    assert!(
        miss.contains("This source was not recorded for that request."),
        "{miss}"
    );
    let absent = asked.results("describe_pod").concat();
    assert!(
        absent.contains("(NotFound): pods \\\"checkout\\\" not found"),
        "{absent}"
    );
    for leaked in [
        POD,
        "working_set",
        "there are answers",
        "restarts_total",
        "oom-killed",
    ] {
        assert!(
            !miss.contains(leaked) && !absent.contains(leaked),
            "{leaked}: {miss} {absent}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drill_with_a_real_model_survives_the_kill_of_its_worker() {
    let model = Model::start(competent).await;
    let mut running = start(&model, &["--kill"]).await;
    let (code, shown) = running.drill.finished().await;
    assert_eq!(code, 0, "{shown}\n{}", running.drill.log());
    assert!(
        shown.contains("resumed") && shown.contains("gemini-2.5-flash: solved"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_refuses_every_call_makes_the_drill_void() {
    let model = Model::start(|_| Reply::Refused).await;
    let (code, result) = result(start(&model, &["--json"]).await).await;
    assert_eq!(
        (code, &result["outcome"], &result["report"]),
        (1, &json!("void"), &Value::Null),
        "{result:#}"
    );
    let counted = ["turns", "calls"].map(|key| result[key].as_i64().unwrap());
    assert_eq!(
        (counted, &result["checks"][0]["id"]),
        ([0, 0], &json!("end")),
        "{result:#}"
    );
}

#[tokio::test]
async fn without_a_key_one_sentence_says_which_variable_to_set() {
    let none = [
        ("GEMINI_API_KEY", ""),
        ("GOOGLE_API_KEY", ""),
        ("OPENAI_API_KEY", " "),
    ];
    for (arguments, expected) in [
        (
            vec!["--provider", "gemini"],
            "tarsy: gemini needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY, or the same name with _FILE to the path of a file that holds it",
        ),
        (
            vec!["--provider", "openai:x"],
            "tarsy: openai needs a key: set OPENAI_API_KEY, or the same name with _FILE to the path of a file that holds it",
        ),
        (
            vec![
                "--provider",
                "vllm:x",
                "--base-url",
                "http://127.0.0.1:1/v1/",
            ],
            "tarsy: no server answers at http://127.0.0.1:1: start it, or name its address with --base-url",
        ),
    ] {
        let mut drill = Tarsy::spawn("drill", &[&["drill"], &arguments[..]].concat(), &none);
        let (code, shown) = drill.finished().await;
        assert_eq!(
            (code, shown.as_str(), drill.log().trim()),
            (78, "", expected)
        );
    }
    for (provider, expected) in [
        ("gemni", "no provider \"gemni\""),
        ("vllm:x", "where does vllm run? write --base-url"),
    ] {
        let mut drill = Tarsy::spawn("drill", &["drill", "--provider", provider], &[]);
        assert_eq!(drill.finished().await.0, 1);
        assert!(drill.log().contains(expected), "{}", drill.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_every_process_of_a_drill_with_a_real_model() {
    let model = Model::start(|_| Reply::Hang).await;
    let mut running = start(&model, &[]).await;
    eventually("a request", async || !model.requests().is_empty()).await;
    let mut processes = children_of(running.drill.pid(), "tarsy");
    for worker in children_of(running.drill.pid(), "worker") {
        processes.extend(children_of(
            worker.as_raw_nonzero().get().cast_unsigned(),
            "evidence-server",
        ));
    }
    assert!(
        processes.len() >= 4,
        "the LLM service, two workers and an evidence server: {processes:?}"
    );
    running.drill.interrupt();
    let (code, _) = running.drill.finished().await;
    assert_eq!(code, 130, "{}", running.drill.log());
    eventually("the end of every process", async || {
        processes.iter().all(|pid| !is_running(*pid))
    })
    .await;
}
