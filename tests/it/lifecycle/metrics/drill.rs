//! A real Prometheus with the rules of the chart scrapes all roles while they investigate: every expression of an
//! alert or a dashboard returns data, or this file has the reason why it does not.

use serde_json::{Value, json};

use super::expressions::{
    Expression, annotation_expressions, panel_expressions, rule_files, rules, without_thresholds,
};
use super::{Fleet, QUERY_INTERVAL, TEST_TIMEOUT, query_is, scrape_config};
use crate::support::http;
use crate::support::monitoring::{Server, flag, program};

/// Places of expressions that return nothing while all is well, and the reason.
const EMPTY: [(&str, &str); 4] = [
    (
        "TarsyNoWorkers",
        "it compares with the workers that are missing",
    ),
    (
        "TarsyTokenSpend",
        "it compares with the samples of one day ago",
    ),
    ("tarsy-overview.json: Alerts that fire", "no alert fires"),
    (
        "tarsy-llm.json: Switches to another provider",
        "it shows switches only, and no provider has failed",
    ),
];

/// The results of a query; Prometheus has to accept it.
async fn query(server: &Server, expression: &str) -> Vec<Value> {
    let body: String = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("query", expression)
        .finish();
    ask(server, &format!("/api/v1/query?{body}")).await["result"]
        .as_array()
        .unwrap()
        .clone()
}

/// The data of an answer of Prometheus, which has to be a success. The answer to HTTP/1.0 comes in one piece.
async fn ask(server: &Server, path: &str) -> Value {
    let answer = http::send(
        server.address(),
        format!("GET {path} HTTP/1.0\r\nhost: tarsy\r\n\r\n").as_bytes(),
    )
    .await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()["data"].clone()
}

/// The expressions that never return data within the time of a test.
async fn without_data(server: &Server, expressions: Vec<Expression>) -> Vec<Expression> {
    let mut left = expressions;
    let all_have_data = async {
        while !left.is_empty() {
            let mut empty = Vec::new();
            for expression in left.drain(..) {
                if query(server, &expression.text).await.is_empty() {
                    empty.push(expression);
                }
            }
            left = empty;
            if left
                .iter()
                .all(|expression| reason_of(expression).is_some())
            {
                return;
            }
            tokio::time::sleep(5 * QUERY_INTERVAL).await; // pacing of the queries
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, all_have_data).await.ok();
    left
}

fn reason_of(expression: &Expression) -> Option<&'static str> {
    EMPTY
        .iter()
        .find(|(place, _)| *place == expression.place)
        .map(|(_, reason)| *reason)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_expression_of_alerts_and_dashboards_returns_data_in_a_drill() {
    let Some(prometheus) = program("TARSY_TEST_PROMETHEUS") else {
        return;
    };
    let fleet = Fleet::start().await;
    let config = fleet.system.file("prometheus.yml");
    let files: Vec<String> = rule_files()
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let mut text = scrape_config(&fleet);
    text["rule_files"] = json!(files);
    text["global"]["evaluation_interval"] = json!("1s");
    std::fs::write(&config, text.to_string()).unwrap();
    let flags = [
        flag("config.file", &config),
        flag("storage.tsdb.path", fleet.system.file("prometheus")),
        flag("web.listen-address", "127.0.0.1:0"),
    ];
    let server = Server::start(&prometheus, &flags).await;
    // A rate needs a sample from before the first increment.
    let every_role =
        ["llm-service", "receive", "web", "worker"].map(|job| (job.to_owned(), "1".to_owned()));
    query_is(&server, "up", &every_role).await;
    for sessions in ["1", "2"] {
        fleet.investigate().await;
        let finished = "sum+by+(job)(tarsy_sessions_finished_total)";
        query_is(
            &server,
            finished,
            &[("worker".to_owned(), sessions.to_owned())],
        )
        .await;
    }

    let alerts = rules("alert").into_iter().chain(annotation_expressions());
    let alerts = alerts.map(|rule| Expression {
        text: without_thresholds(&rule.text),
        ..rule
    });
    let all: Vec<Expression> = alerts
        .chain(rules("record"))
        .chain(panel_expressions())
        .collect();
    let count = all.len();
    let empty = without_data(&server, all).await;
    println!("{} of {count} expressions return data", count - empty.len());
    for expression in &empty {
        let reason = reason_of(expression);
        println!(
            "  {}: no data, {}",
            expression.place,
            reason.unwrap_or("without a reason")
        );
        assert!(reason.is_some(), "{expression:?} returns no data");
    }
    assert_eq!(
        empty.len(),
        EMPTY.len(),
        "an expression that is listed as empty returns data: {empty:?}"
    );
    assert_rules_are_evaluated(&server).await;
}

/// Every rule was evaluated without an error, and no alert fires in a drill that goes well.
async fn assert_rules_are_evaluated(server: &Server) {
    let answer = ask(server, "/api/v1/rules").await;
    let groups = answer["groups"].as_array().unwrap();
    let evaluated: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    assert_eq!(
        evaluated.len(),
        rules("alert").len() + rules("record").len()
    );
    for rule in evaluated {
        assert_eq!(rule["health"], "ok", "{rule}");
        assert_ne!(rule["state"], "firing", "{rule}");
    }
}
