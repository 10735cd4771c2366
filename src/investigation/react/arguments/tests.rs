//! Arguments in every form, and every text that is none.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::investigation::react::read;

fn arguments(input: &str) -> Value {
    Value::Object(read(&format!("Action: a.b\nAction Input: {input}"), None).arguments.unwrap())
}

#[test]
fn arguments_are_understood_in_every_form_that_models_use() {
    let table = [
        ("", json!({})),
        (
            "{\"labels\": {\"app\": \"web\"}, \"n\": 9007199254740993}",
            json!({"labels": {"app": "web"}, "n": 9_007_199_254_740_993_i64}),
        ),
        ("[\"a\", \"b\"]", json!({"input": ["a", "b"]})),
        ("\"some words\"", json!({"input": "some words"})),
        ("7", json!({"input": 7})),
        ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
        ("```\na: 1\n```", json!({"a": 1})),
        ("`{\"a\": 1}`", json!({"a": 1})),
        ("```json\n{\"a\": \"```\"}\n```\nI wait.", json!({"a": "```"})),
        ("```json {\"a\": \"```\"}```", json!({"a": "```"})),
        ("```\n{\"a\": 1}```", json!({"a": 1})),
        ("{\"a\": [1, 2,], \"b\": {\"c\": 3,},}", json!({"a": [1, 2], "b": {"c": 3}})),
        ("{'a': True, 'b': None, 'c': 'it''s'}", json!({"a": true, "b": null, "c": "it's"})),
        (
            "{host: db-3, since: 2h, rate: sum(x{a=\"1\", b=\"2\"})}",
            json!({"host": "db-3", "since": "2h", "rate": "sum(x{a=\"1\", b=\"2\"})"}),
        ),
        ("{\"a\": 1}\n\nI wait for the result.", json!({"a": 1})),
        ("host: db-3", json!({"host": "db-3"})),
        ("host=db-3", json!({"host": "db-3"})),
        ("host:db-3", json!({"host": "db-3"})),
        ("host: db-3, all=true\nlimit: 5", json!({"host": "db-3", "all": true, "limit": 5})),
        ("host: db-3, limit: 10", json!({"host": "db-3", "limit": 10})),
        ("tags: a,b,c, name: web", json!({"tags": "a,b,c", "name": "web"})),
        ("labels: app=web", json!({"labels": "app=web"})),
        ("url=http://x", json!({"url": "http://x"})),
        ("url: http://x:80/?a=1", json!({"url": "http://x:80/?a=1"})),
        ("http://x:80/y", json!({"input": "http://x:80/y"})),
        ("look here: now", json!({"input": "look here: now"})),
        ("a: {b: 1}", json!({"a": {"b": 1}})),
        ("a: []\nb: web", json!({"a": [], "b": "web"})),
        ("names:\n  - one\n  - two\nlabel: app=web", json!({"names": ["one", "two"], "label": "app=web"})),
        ("select:\n  app: web\n  env: prod", json!({"select": {"app": "web", "env": "prod"}})),
        (
            "db:\n  host: h\n  port: 1\ntags:\n- a\n- b: 1\n  c: 2",
            json!({"db": {"host": "h", "port": 1}, "tags": ["a", {"b": 1, "c": 2}]}),
        ),
        ("- a\n- b", json!({"input": ["a", "b"]})),
        ("- app=web\n- n: 1", json!({"input": ["app=web", {"n": 1}]})),
        ("host: db-3\n    all: true", json!({"host": "db-3", "all": true})),
        ("code: |\n  if x:\n    y()\nn: 1", json!({"code": "if x:\n  y()", "n": 1})),
        ("query: sum(x)\n  by (pod)", json!({"query": "sum(x) by (pod)"})),
        (
            "query: rate(x{a=\"1\", b=\"2\"}[5m]), step: 60",
            json!({"query": "rate(x{a=\"1\", b=\"2\"}[5m])", "step": 60}),
        ),
        ("{app=\"web\"}", json!({"input": "{app=\"web\"}"})),
        ("up == 0", json!({"input": "up == 0"})),
        ("x: nan", json!({"x": "nan"})),
        ("{not really", json!({"input": "{not really"})),
    ];
    for (input, expected) in table {
        assert_eq!(arguments(input), expected, "{input}");
    }
}

#[test]
fn an_input_below_its_header_keeps_its_indentation() {
    let reply = read("Action: a.b\nAction Input:\n\n    cfg:\n      host: h\n    n: 1\n", None);
    assert_eq!(reply.action_input.as_deref(), Some("cfg:\n  host: h\nn: 1"));
    assert_eq!(reply.arguments.map(Value::Object), Some(json!({"cfg": {"host": "h"}, "n": 1})));
}

#[test]
fn a_word_has_the_type_that_it_looks_like_and_loses_nothing() {
    let table = [
        ("True", json!(true)),
        ("FALSE", json!(false)),
        ("null", json!(null)),
        ("None", json!(null)),
        ("-3", json!(-3)),
        ("18446744073709551615", json!(u64::MAX)),
        ("99999999999999999999999999", json!("99999999999999999999999999")),
        ("2.75", json!(2.75)),
        ("1e400", json!("1e400")),
        ("007", json!("007")),
        ("1.2.3", json!("1.2.3")),
        ("Inf", json!("Inf")),
        ("-nan", json!("-nan")),
        ("  words  ", json!("words")),
        ("\"7\"", json!("7")),
        ("'it''s'", json!("it's")),
        ("'a' or 'b'", json!("'a' or 'b'")),
    ];
    for (word, expected) in table {
        assert_eq!(arguments(&format!("x: {word}"))["x"], expected, "{word}");
    }
}

#[test]
fn json_arguments_are_sent_as_the_model_wrote_them() {
    let sent = |input: &str| read(&format!("Action: a.b\nAction Input: {input}"), None).arguments_text.unwrap();
    assert_eq!(sent("{\"b\": 1.50, \"a\": 1e3}"), "{\"b\": 1.50, \"a\": 1e3}");
    assert_eq!(sent("b: 1"), "{\"b\":1}");
}

#[test]
fn lines_that_are_not_understood_are_named() {
    let reply = read("Action: a.b\nAction Input: host: db-3\n- bad\nall: true", None);
    assert_eq!(reply.arguments.map(Value::Object), Some(json!({"host": "db-3", "all": true})));
    assert_eq!(reply.problem.as_deref(), Some("not understood: - bad"));
}

proptest! {
    #[test]
    fn every_object_that_a_model_writes_as_json_arrives(key in "[a-z]{1,6}", text in "\\PC{0,20}", number in any::<i64>()) {
        let object = json!({key: text, "n": number, "deep": [{"x": null}, true]});
        prop_assert_eq!(&arguments(&object.to_string()), &object);
        prop_assert_eq!(arguments(&format!("```json\n{object:#}\n```")), object);
    }
}
