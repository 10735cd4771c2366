use std::time::Instant;

use serde_json::json;

use super::*;

async fn compare(schema: &Value, arguments: Value) -> Comparison {
    let Value::Object(arguments) = arguments else {
        panic!("not an object")
    };
    let checks = Arc::new(ArgumentChecks::default());
    let first = checks
        .compare(&schema.to_string(), &mut arguments.clone())
        .await;
    // The schema that was compiled and kept finds the same.
    assert_eq!(
        checks
            .compare(&schema.to_string(), &mut arguments.clone())
            .await,
        first
    );
    first
}

/// The lines about faults in the message for the model.
async fn faults(schema: &Value, arguments: Value) -> Vec<String> {
    match compare(schema, arguments).await {
        Comparison::Unfit(text) => {
            let lines: Vec<&str> = text.lines().collect();
            let [head, faults @ .., tail] = lines.as_slice() else {
                panic!("{text}")
            };
            assert_eq!(
                *head,
                "the call was not sent, because its arguments do not fit the schema of the tool:"
            );
            assert_eq!(*tail, "Correct the arguments and call the tool again.");
            faults
                .iter()
                .map(|line| line.trim_start_matches("- ").to_owned())
                .collect()
        }
        Comparison::Fit => Vec::new(),
        Comparison::Unchecked => vec!["unchecked".to_owned()],
    }
}

/// A schema as `pydantic` writes them.
fn pods() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["namespace"],
    "$defs": {"Order": {"enum": ["asc", "desc"], "type": "string"}},
    "properties": {
        "namespace": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": null},
        "order": {"$ref": "#/$defs/Order"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    }})
}

#[tokio::test]
async fn arguments_that_fit_pass_and_each_fault_names_its_place_and_its_rule() {
    let secret = "s3cret-that-stays-here";
    for (arguments, expected) in [
        (
            json!({"namespace": "checkout", "limit": 5, "order": "asc", "labels": {"app": "web"}}),
            &[][..],
        ),
        (json!({"namespace": "checkout", "limit": null}), &[]),
        (json!({"namespace": "checkout", "limit": 5.0}), &[]),
        (
            json!({}),
            &["the arguments: \"namespace\" is a required property"],
        ),
        (
            json!({"namespace": "Not One"}),
            &["/namespace: value does not match \"^[a-z0-9-]+$\""],
        ),
        (
            json!({"namespace": "checkout", "limit": secret}),
            &["/limit: value is not of type \"integer\", and value is not of type \"null\""],
        ),
        (
            json!({"namespace": "checkout", "order": secret}),
            &["/order: value is not one of \"asc\" or \"desc\""],
        ),
        (
            json!({"namespace": "checkout", "labels": {"app": 1}}),
            &["/labels/app: value is not of type \"string\""],
        ),
        (
            json!({"namespace": "checkout", "pod": secret}),
            &["the arguments: Additional properties are not allowed ('pod' was unexpected)"],
        ),
    ] {
        let found = faults(&pods(), arguments.clone()).await;
        assert_eq!(found, expected, "{arguments}");
        assert!(!found.concat().contains(secret), "a fault repeats no value");
    }
}

#[tokio::test]
async fn arguments_with_one_sensible_reading_are_written_as_the_schema_wants_them() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["name"],
    "$defs": {"Labels": {"type": "object", "properties": {"app": {"type": "string"}, "tier": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "note": {"type": "string", "nullable": true},
        "kind": {"enum": ["pod", "node"], "nullable": true},
        "limit": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
        "labels": {"$ref": "#/$defs/Labels"},
        "pattern": {"type": ["string", "object"]},
        "any": {},
    }});
    for (given, sent) in [
        (
            json!({"name": "a", "note": null, "kind": null, "any": null}),
            json!({"name": "a", "note": null, "kind": null, "any": null}),
        ),
        (json!({"name": "a", "limit": null}), json!({"name": "a"})),
        (
            json!({"name": "a", "names": "[\"b\"]"}),
            json!({"name": "a", "names": ["b"]}),
        ),
        (
            json!({"name": "a", "labels": "{\"app\":\"b\",\"tier\":null}"}),
            json!({"name": "a", "labels": {"app": "b"}}),
        ),
        (
            json!({"name": "a", "labels": {"tier": null}, "names": null}),
            json!({"name": "a", "labels": {}}),
        ),
        (
            json!({"name": "[1]", "pattern": "{}", "any": "{}"}),
            json!({"name": "[1]", "pattern": "{}", "any": "{}"}),
        ),
    ] {
        let Value::Object(mut arguments) = given.clone() else {
            panic!("{given}")
        };
        let checks = Arc::new(ArgumentChecks::default());
        let comparison = checks.compare(&schema.to_string(), &mut arguments).await;
        assert_eq!(
            (comparison, Value::Object(arguments)),
            (Comparison::Fit, sent),
            "{given}"
        );
    }
    for (given, expected) in [
        (
            json!({"name": null}),
            "/name: value is not of type \"string\"",
        ),
        (
            json!({"name": "a", "limit": "5"}),
            "/limit: value is not of type \"integer\"",
        ),
        (
            json!({"name": "a", "names": "{}", "limit": null}),
            "/names: value is not of type \"array\"",
        ),
    ] {
        assert_eq!(faults(&schema, given).await, [expected]);
    }
}

#[tokio::test]
async fn many_and_long_faults_are_cut() {
    let properties: serde_json::Map<_, _> = (0..9)
        .map(|n| (format!("p{n}"), json!({"type": "string"})))
        .collect();
    let all: serde_json::Map<_, _> = (0..9).map(|n| (format!("p{n}"), json!(1))).collect();
    let found = faults(&json!({"properties": properties}), Value::Object(all)).await;
    assert_eq!((found.len(), found[5].as_str()), (6, "more"));

    let found = faults(
        &json!({"properties": {"a": {"enum": ["ä".repeat(5_000)]}}}),
        json!({"a": "b"}),
    )
    .await;
    assert!(found[0].len() < 310 && found[0].ends_with('…'), "{found:?}");
}

#[tokio::test]
async fn a_call_passes_unchecked_when_its_schema_cannot_be_used() {
    let arguments = json!({"a": "b"});
    let nested = (0..200).fold(
        json!({"type": "integer"}),
        |inner, _| json!({"allOf": [inner]}),
    );
    for schema in [
        json!({"$ref": "http://127.0.0.1:1/schema.json"}),
        json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/nothing"}}}),
        json!({"properties": {"a": {"$ref": "other#/$defs/a"}}}),
        json!({"$schema": "http://127.0.0.1:1/meta", "type": "array"}),
        json!({"type": "arrays"}),
        json!({"properties": {"a": {"pattern": "("}}}),
        json!({"properties": {"a": {"pattern": "(?:\\w{100}){100}"}}}),
        json!({"properties": {"a": {"enum": ["[masked]"]}}}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}]}),
        nested,
    ] {
        assert_eq!(
            compare(&schema, arguments.clone()).await,
            Comparison::Unchecked,
            "{schema}"
        );
    }
    let checks = Arc::new(ArgumentChecks::default());
    let Value::Object(arguments) = arguments else {
        panic!()
    };
    assert_eq!(
        checks.compare("no json", &mut arguments.clone()).await,
        Comparison::Unchecked
    );
}

#[tokio::test]
async fn a_recursive_schema_is_compared_as_deep_as_the_arguments_are() {
    let tree = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}});
    assert_eq!(
        compare(
            &tree,
            json!({"name": "a", "children": [{"children": [{"name": "b"}]}]})
        )
        .await,
        Comparison::Fit
    );
    assert_eq!(
        faults(&tree, json!({"children": [{"children": [{"name": 1}]}]})).await,
        ["/children/0/children/0/name: value is not of type \"string\""]
    );
}

/// Definitions that each refer to the next one twice, as `hop` says.
fn doubling(hop: impl Fn(Value) -> Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), hop(next));
    }
    definitions.insert("d40".to_owned(), json!({"type": "integer"}));
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

#[tokio::test]
async fn a_schema_that_would_take_for_ever_costs_no_time() {
    let deep = (0..100).fold(json!(1), |inner, _| {
        json!({"a": inner, "b": [[[[inner]]]]})
            .get("a")
            .cloned()
            .unwrap()
    });
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    let many: Vec<Value> = (0..5_000)
        .map(|n| json!({"pattern": format!("^(?:\\w{{10}}){{{n}}}$")}))
        .collect();
    let wide: Vec<Value> = (0..3_000).map(|n| json!({"const": n})).collect();
    let long = "a".repeat(500_000);
    for (what, schema, arguments) in [
        (
            "all of",
            doubling(|next| json!({"allOf": [next, next]})),
            json!({"a": deep}),
        ),
        (
            "any of",
            doubling(|next| json!({"anyOf": [next, {"not": next}]})),
            json!({}),
        ),
        (
            "properties",
            doubling(
                |next| json!({"allOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]}),
            ),
            nested(40),
        ),
        (
            "unevaluated",
            doubling(|next| json!({"unevaluatedProperties": next})),
            nested(40),
        ),
        (
            "many patterns",
            json!({"properties": {"a": {"anyOf": many}}}),
            json!({"a": "b"}),
        ),
        (
            "many values",
            json!({"additionalProperties": {"items": {"anyOf": wide}}}),
            json!({"a": vec![1; 5_000]}),
        ),
        (
            "backtracking",
            json!({"properties": {"a": {"pattern": "^(?=a)(a+)+\\1$"}}}),
            json!({"a": format!("{long}b")}),
        ),
    ] {
        let begun = Instant::now();
        let found = compare(&schema, arguments).await;
        println!("{:>12.2?}  {what}: {}", begun.elapsed(), found.as_str());
        assert_eq!(found, Comparison::Unchecked, "{what}");
        assert!(
            begun.elapsed() < MAX_TIME,
            "{what} took {:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn a_number_that_is_too_long_is_shown_as_it_is_sent() {
    for (written, sent) in [
        (
            "{\"id\": 12345678901234567890123}",
            "{\"id\":1.2345678901234568e+22}",
        ),
        ("{ \"a\": [1, 2.50] }", "{\"a\":[1,2.5]}"),
        ("{\"id\":\"00x\"}", "{\"id\":\"00x\"}"),
    ] {
        assert_eq!(as_sent(written.to_owned()), sent);
        assert_eq!(as_sent(sent.to_owned()), sent);
    }
}
