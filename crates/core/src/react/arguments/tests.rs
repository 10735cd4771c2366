//! Arguments in every form that models write, and inputs that are plain text.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::react::read;

fn arguments(input: &str) -> Value {
    Value::Object(
        read(&format!("Action: a.b\nAction Input: {input}"), None)
            .arguments
            .unwrap(),
    )
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
        (
            "```json\n{\"a\": \"```\"}\n```\nI wait.",
            json!({"a": "```"}),
        ),
        ("```json {\"a\": \"```\"}```", json!({"a": "```"})),
        ("```\n{\"a\": 1}```", json!({"a": 1})),
        (
            "{\"a\": [1, 2,], \"b\": {\"c\": 3,},}",
            json!({"a": [1, 2], "b": {"c": 3}}),
        ),
        (
            "{'a': True, 'b': None, 'c': 'it''s'}",
            json!({"a": true, "b": null, "c": "it's"}),
        ),
        (
            "{host: db-3, since: 2h, rate: sum(x{a=\"1\", b=\"2\"})}",
            json!({"host": "db-3", "since": "2h", "rate": "sum(x{a=\"1\", b=\"2\"})"}),
        ),
        ("{\"a\": 1}\n\nI wait for the result.", json!({"a": 1})),
        ("host: db-3", json!({"host": "db-3"})),
        ("host=db-3", json!({"host": "db-3"})),
        ("host:db-3", json!({"host": "db-3"})),
        (
            "host: db-3, all=true\nlimit: 5",
            json!({"host": "db-3", "all": true, "limit": 5}),
        ),
        (
            "host: db-3, limit: 10",
            json!({"host": "db-3", "limit": 10}),
        ),
        (
            "tags: a,b,c, name: web",
            json!({"tags": "a,b,c", "name": "web"}),
        ),
        ("labels: app=web", json!({"labels": "app=web"})),
        ("url=http://x", json!({"url": "http://x"})),
        ("url: http://x:80/?a=1", json!({"url": "http://x:80/?a=1"})),
        ("http://x:80/y", json!({"input": "http://x:80/y"})),
        ("look here: now", json!({"input": "look here: now"})),
        ("a: {b: 1}", json!({"a": {"b": 1}})),
        ("a: []\nb: web", json!({"a": [], "b": "web"})),
        (
            "names:\n  - one\n  - two\nlabel: app=web",
            json!({"names": ["one", "two"], "label": "app=web"}),
        ),
        (
            "select:\n  app: web\n  env: prod",
            json!({"select": {"app": "web", "env": "prod"}}),
        ),
        (
            "db:\n  host: h\n  port: 1\ntags:\n- a\n- b: 1\n  c: 2",
            json!({"db": {"host": "h", "port": 1}, "tags": ["a", {"b": 1, "c": 2}]}),
        ),
        ("- a\n- b", json!({"input": ["a", "b"]})),
        ("- app=web\n- n: 1", json!({"input": ["app=web", {"n": 1}]})),
        (
            "host: db-3\n    all: true",
            json!({"host": "db-3", "all": true}),
        ),
        (
            "code: |\n  if x:\n    y()\nn: 1",
            json!({"code": "if x:\n  y()", "n": 1}),
        ),
        (
            "query: sum(x)\n  by (pod)",
            json!({"query": "sum(x) by (pod)"}),
        ),
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
fn the_first_separator_ends_the_key_and_the_rest_is_the_value() {
    let table = [
        ("a: b: c", json!({"a": "b: c"})),
        ("key = value", json!({"key": "value"})),
        ("a = 1, b = on", json!({"a": 1, "b": "on"})),
        (
            "a = 1, b = 2 ORDER BY c",
            json!({"input": "a = 1, b = 2 ORDER BY c"}),
        ),
        (
            "host: db-3\npod:\ntags: []",
            json!({"host": "db-3", "pod": "", "tags": []}),
        ),
        ("host=,pod=", json!({"host": "", "pod": ""})),
        (
            "spec:\n  pod:\n  n: 1",
            json!({"spec": {"pod": null, "n": 1}}),
        ),
        ("host:db-3, port:80", json!({"host": "db-3", "port": 80})),
        ("since:12:30", json!({"since": "12:30"})),
        (
            "at: 2031-05-01T10:00:00Z",
            json!({"at": "2031-05-01T10:00:00Z"}),
        ),
        (
            "\"a\": 1,\n\"b c\": \"x\",\n'd': true",
            json!({"a": 1, "b c": "x", "d": true}),
        ),
        (
            "host: db-3, note: it's slow, n: 2",
            json!({"host": "db-3", "note": "it's slow", "n": 2}),
        ),
        (
            "a: \"b, c: d\", e: 'f, g: h'",
            json!({"a": "b, c: d", "e": "f, g: h"}),
        ),
        (
            "---\n# for the disk\na: 1 # one\nb: \"x # y\"\nchannel: #ops",
            json!({"a": 1, "b": "x # y", "channel": "#ops"}),
        ),
        (
            "a: |\n  if x:\n\n    y()\n\nb: >\n  one\n  two",
            json!({"a": "if x:\n\n  y()", "b": "one two"}),
        ),
        (
            "a:\n  - - 1\n    - 2\n  -\n    b: 3",
            json!({"a": [[1, 2], {"b": 3}]}),
        ),
        (
            "- name: web\n  ports:\n  - 80\n  - 443\n  env:\n    - {k: v}\n- name: db",
            json!({"input": [{"name": "web", "ports": [80, 443], "env": [{"k": "v"}]}, {"name": "db"}]}),
        ),
        ("99999999999: 1", json!({"input": "99999999999: 1"})),
    ];
    for (input, expected) in table {
        assert_eq!(arguments(input), expected, "{input}");
    }
}

#[test]
fn json_that_a_strict_parser_refuses_is_understood() {
    let table = [
        (
            "{\"a\": 1, // one\n \"b\": 2, /* two */ # three\n \"c\": 3}",
            json!({"a": 1, "b": 2, "c": 3}),
        ),
        (
            "{\"a\": 1\n \"b\": \"x\" \"c\": [1, 2,],}",
            json!({"a": 1, "b": "x", "c": [1, 2]}),
        ),
        (
            "{'a': 'it\\'s', 'b': (1, 2), 'c': None, 'd': False}",
            json!({"a": "it's", "b": "(1, 2)", "c": null, "d": false}),
        ),
        (
            "{\"sql\": \"SELECT a\nFROM b\"}",
            json!({"sql": "SELECT a\nFROM b"}),
        ),
        (
            "{\"re\": \"\\d+\\.\\w \\\"x\\\"\\n\"}",
            json!({"re": "\\d+\\.\\w \"x\"\n"}),
        ),
        (
            "{\"a\": \"\"\"x\n\"y\" z\"\"\"}",
            json!({"a": "x\n\"y\" z"}),
        ),
        (
            "{\"a\": NaN, \"b\": -Infinity, \"c\": 18446744073709551615}",
            json!({"a": "NaN", "b": "-Infinity", "c": u64::MAX}),
        ),
        (
            "params: {\n  \"a\": 1,\n  \"b\": [1,\n 2]\n}\nn: 2",
            json!({"params": {"a": 1, "b": [1, 2]}, "n": 2}),
        ),
        (
            "params:\n  {\"a\": \"b: c\",\n  \"d\": [1,\n  2,\n]}\nn: 2",
            json!({"params": {"a": "b: c", "d": [1, 2]}, "n": 2}),
        ),
        (
            "list: [\n  a,\n  b\n]\nn: 2",
            json!({"list": ["a", "b"], "n": 2}),
        ),
        ("tags: [a, b\nn: 1", json!({"tags": "[a, b", "n": 1})),
        (
            "- {a: 1,\n   b: 2}\n- c",
            json!({"input": [{"a": 1, "b": 2}, "c"]}),
        ),
        ("{\"a\" 1}", json!({"input": "{\"a\" 1}"})),
        ("{\"a\": 1", json!({"input": "{\"a\": 1"})),
    ];
    for (input, expected) in table {
        assert_eq!(arguments(input), expected, "{input}");
    }
}

#[test]
fn queries_arrive_as_they_were_written() {
    for query in [
        "sum(rate(http_errors_total{code=\"500\", job=~\"web.*\"}[5m])) by (pod)",
        "histogram_quantile(0.99, sum(rate(took_bucket{le=\"0.5\"}[5m])) by (le, job)) > 1",
        "up{job=\"web\"} == 0",
        "SELECT a, b FROM t WHERE x = 1, y = 2",
        "UPDATE t SET a=1, b=2 WHERE c='d, e=3'",
        "app=web,env=prod",
        "kubectl get pods -l app=web,tier=db -o json",
        "https://example.com/find?a=1,b=2#c",
        "{app=\"web\"} |= \"error\" | json",
        "C:\\temp\\x",
    ] {
        assert_eq!(
            arguments(&format!("query: {query}")),
            json!({"query": query})
        );
        assert_eq!(
            arguments(&json!({"query": query}).to_string()),
            json!({"query": query})
        );
    }
    for query in [
        "sum(rate(http_errors_total{code=\"500\"}[5m])) by (pod)",
        "job:errors:rate5m",
        "avg:cpu.load{host:db-3}",
        "status:500 AND host:web",
        "a = 1 AND b = 2",
        "SELECT a, b\nFROM t\nWHERE x = 1",
        "{a: 1} | json",
        "<a>\n<b>x</b>\n</a>",
        "C:\\temp",
    ] {
        assert_eq!(arguments(query), json!({"input": query}));
    }
    assert_eq!(
        arguments("query: sum(x)\n  - sum(y)\nstep: 60"),
        json!({"query": "sum(x) - sum(y)", "step": 60})
    );
}

#[test]
fn an_input_below_its_header_keeps_its_indentation() {
    let reply = read(
        "Action: a.b\nAction Input:\n\n    cfg:\n      host: h\n    n: 1\n",
        None,
    );
    assert_eq!(reply.action_input.as_deref(), Some("cfg:\n  host: h\nn: 1"));
    assert_eq!(
        reply.arguments.map(Value::Object),
        Some(json!({"cfg": {"host": "h"}, "n": 1}))
    );
}

#[test]
fn a_word_gets_the_type_that_it_looks_like_if_that_loses_nothing() {
    let table = [
        ("True", json!(true)),
        ("FALSE", json!(false)),
        ("null", json!(null)),
        ("None", json!(null)),
        ("-3", json!(-3)),
        ("18446744073709551615", json!(u64::MAX)),
        (
            "99999999999999999999999999",
            json!("99999999999999999999999999"),
        ),
        ("2.75", json!(2.75)),
        ("1e400", json!("1e400")),
        ("007", json!("007")),
        ("+5", json!(5)),
        ("+0200", json!("+0200")),
        ("-.5", json!(-0.5)),
        (".", json!(".")),
        ("+", json!("+")),
        ("", json!("")),
        ("~", json!("~")),
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
    let sent = |input: &str| {
        read(&format!("Action: a.b\nAction Input: {input}"), None)
            .arguments_text
            .unwrap()
    };
    assert_eq!(
        sent("{\"b\": 1.50, \"a\": 1e3}"),
        "{\"b\": 1.50, \"a\": 1e3}"
    );
    assert_eq!(sent("b: 1"), "{\"b\":1}");
}

#[test]
fn lines_that_are_not_understood_are_reported() {
    let table = [
        (
            "host: db-3\n- bad\nall: true",
            json!({"host": "db-3", "all": true}),
            "- bad",
        ),
        (
            "{\"a\": 1}\n\nI wait for the result.",
            json!({"a": 1}),
            "I wait for the result.",
        ),
        ("{\"a\": 1,}\nI wait.", json!({"a": 1}), "I wait."),
        ("{\"a\": 1}\n{\"b\": 2}", json!({"a": 1}), "{\"b\": 2}"),
        (
            "The arguments:\n{\"a\": 1}",
            json!({"a": 1}),
            "The arguments:",
        ),
        (
            "These:\n```json\n{\"a\": 1}\n```",
            json!({"a": 1}),
            "These:",
        ),
        (
            "a: 1\none\nb: 2\ntwo\nc: 3\nthree\nd: 4\nfour",
            json!({"a": 1, "b": 2, "c": 3, "d": 4}),
            "one / two / three and 1 more lines",
        ),
    ];
    for (input, expected, left_out) in table {
        let reply = read(&format!("Action: a.b\nAction Input: {input}"), None);
        assert_eq!(
            reply.arguments.map(Value::Object),
            Some(expected),
            "{input}"
        );
        assert_eq!(
            reply.problem,
            Some(format!("not understood: {left_out}")),
            "{input}"
        );
    }
    for whole in ["{\"a\": 1}\n```", "note: x\nand more\nand more"] {
        assert_eq!(
            read(&format!("Action: a.b\nAction Input: {whole}"), None).problem,
            None,
            "{whole}"
        );
    }
}

#[test]
fn a_very_long_input_is_json_or_text() {
    let long = "x".repeat(100_000);
    let reply = |input: &str| read(&format!("Action: a.b\nAction Input: {input}"), None);
    assert_eq!(
        reply(&format!("{{\"a\": \"{long}\"}}"))
            .arguments
            .map(Value::Object),
        Some(json!({"a": long}))
    );
    let kept = reply(&format!("a: {long}"));
    assert_eq!(
        kept.arguments.map(Value::Object),
        Some(json!({"input": format!("a: {long}")}))
    );
    assert_eq!(
        kept.problem.as_deref(),
        Some("not understood: more text than is looked into")
    );
}

proptest! {
    #[test]
    fn every_object_that_a_model_writes_as_json_is_parsed(key in "[a-z]{1,6}", text in "\\PC{0,20}", number in any::<i64>()) {
        let object = json!({key: text, "n": number, "deep": [{"x": null}, true]});
        prop_assert_eq!(&arguments(&object.to_string()), &object);
        prop_assert_eq!(arguments(&format!("```json\n{object:#}\n```")), object);
    }
}
