use proptest::prelude::*;

use super::*;

fn of(schema: Value, provider: &str) -> (Value, String) {
    let Value::Object(schema) = schema else {
        panic!("{schema}")
    };
    let Rewritten {
        mut schema, notes, ..
    } = rewritten(schema, Dialect::for_provider(provider));
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    (Value::Object(schema), notes)
}

#[test]
fn a_schema_that_every_provider_accepts_stays_as_it_is() {
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "additionalProperties": false, "required": ["a"], "properties": {
        "a": {"type": "string", "enum": ["x", "y"]},
        "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
        "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "number"}}}},
    }});
    for provider in [
        "openai",
        "anthropic",
        "google",
        "bedrock",
        "openai-compatible",
    ] {
        assert_eq!(
            of(schema.clone(), provider),
            (schema.clone(), String::new()),
            "{provider}"
        );
    }
    assert_eq!(
        of(json!({}), "anthropic").0,
        json!({"type": "object", "properties": {}})
    );
}

#[test]
fn alternatives_at_the_top_become_properties_and_a_note() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let (schema, notes) = of(schema, "anthropic");
    let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    assert_eq!(schema, json!({"type": "object", "properties": properties}));
    assert_eq!(
        notes,
        r#"The arguments have to fit exactly one of these schemas: [{"required":["a"]},{"required":["b"]}]."#
    );
    let schema = json!({"anyOf": [
        {"type": "object", "required": ["id", "x"], "properties": {"id": {"type": "string"}, "x": {}}},
        {"$ref": "#/$defs/B"},
    ], "$defs": {"B": {"required": ["id"], "properties": {"id": {"type": "integer"}}}}});
    let (schema, _) = of(schema, "openai");
    assert_eq!(schema.get("anyOf"), None);
    assert_eq!(schema["required"], json!(["id"]));
    assert_eq!(
        schema["properties"],
        json!({"id": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "x": {}})
    );
    let all = json!({"allOf": [{"required": ["a"], "properties": {"a": {}}}, {"required": ["b"], "properties": {"b": {}}}]});
    let expected =
        json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"], "type": "object"});
    assert_eq!(of(all, "openai"), (expected, String::new()));
    let (schema, notes) = of(
        json!({"type": ["object", "null"], "not": {"required": ["a"]}}),
        "openai",
    );
    assert_eq!(schema, json!({"type": "object", "properties": {}}));
    assert_eq!(
        notes,
        r#"The arguments have to fit this schema, too: {"not":{"required":["a"]}}."#
    );
}

#[test]
fn lists_nullable_and_undeclared_properties_get_what_providers_need() {
    let schema = json!({"type": "object", "required": ["a", "z"], "properties": {
        "a": {"type": "array"},
        "b": {"type": ["array", "null"]},
        "c": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        "d": {"type": "string", "nullable": true, "enum": ["x"]},
        "e": {"type": "object", "properties": {"f": {"type": "array", "items": true}, "nullable": {"type": "boolean"}}},
        "g": true,
        "h": {"anyOf": [{"type": "array"}], "nullable": true},
        "i": {"$ref": "https://example.com/i.json", "description": "i"},
    }});
    let expected = json!({"type": "object", "required": ["a", "z"], "properties": {
        "a": {"type": "array", "items": {}},
        "b": {"type": ["array", "null"], "items": {}},
        "c": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "d": {"type": ["string", "null"], "enum": ["x", null]},
        "e": {"type": "object", "properties": {"f": {"type": "array", "items": {}}, "nullable": {"type": "boolean"}}},
        "g": {},
        "h": {"anyOf": [{"anyOf": [{"type": "array", "items": {}}]}, {"type": "null"}]},
        "i": {"description": "i"},
        "z": {},
    }});
    assert_eq!(of(schema, "openai"), (expected, String::new()));
}

#[test]
fn references_are_replaced_where_a_provider_may_not_follow_them() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "description": "d"}},
        "$defs": {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"type": "string"}}});
    assert_eq!(of(schema.clone(), "anthropic").0, schema);
    let inner =
        json!({"type": "object", "properties": {"b": {"type": "string"}}, "description": "d"});
    assert_eq!(
        of(schema, "bedrock").0,
        json!({"type": "object", "properties": {"a": inner}})
    );
    let endless = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}});
    let (schema, _) = of(endless, "bedrock");
    assert!(
        !schema.to_string().contains("$ref") && schema.to_string().len() < 1_000,
        "{schema}"
    );
}

#[test]
fn a_name_that_a_provider_refuses_comes_back_in_each_call() {
    let schema = json!({"type": "object", "required": ["$filter"], "properties": {
        "$filter": {"type": "string"},
        "ok": {"type": "object", "properties": {"größe": {"type": "integer"}}},
    }});
    let Value::Object(given) = schema.clone() else {
        panic!("{schema}")
    };
    assert_eq!(of(schema.clone(), "openai").0, schema);
    let Rewritten {
        schema,
        notes,
        renamed,
    } = rewritten(given, Dialect::for_provider("anthropic"));
    assert_eq!(schema["required"], json!(["filter_0c097d40"]));
    assert!(
        schema["properties"]["filter_0c097d40"].is_object(),
        "{schema:?}"
    );
    assert!(notes.contains("filter_0c097d40 is $filter"), "{notes}");
    let size = schema["properties"]["ok"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let call = format!(r#"{{"filter_0c097d40" : "filter_0c097d40\": 1", "ok":{{"{size}":1.0}}}}"#);
    assert_eq!(
        renamed.restored(&call),
        r#"{"$filter" : "filter_0c097d40\": 1", "ok":{"größe":1.0}}"#
    );
    assert_eq!(renamed.restored(r#"{"$filter":1}"#), r#"{"$filter":1}"#);
    assert_eq!(
        renamed.restored(r#"{"filter_0c097d40":"#),
        r#"{"filter_0c097d40":"#
    );
}

#[test]
fn a_definition_that_contains_itself_ends() {
    let many = || vec![json!({"$ref": "#"}); 40];
    for schema in [
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": many(), "allOf": many()}),
        json!({"properties": {"a": {"$ref": "#"}}, "oneOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
    ] {
        let Value::Object(schema) = schema else {
            panic!("{schema}")
        };
        for provider in ["openai", "anthropic", "google"] {
            let rewritten = rewritten(schema.clone(), Dialect::for_provider(provider));
            assert!(!rewritten.schema.contains_key("allOf"), "{rewritten:?}");
        }
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "array"})),
        Just(json!({"type": "string", "nullable": true})),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({"$ref": "#"})),
        Just(json!(true)),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let properties = prop::collection::hash_map("[a-c$ é]{0,2}", inner.clone(), 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()));
        let list = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (properties.clone(), prop::collection::vec("[a-c$]{0,2}", 0..2)).prop_map(
                |(properties, required)| json!({"type": "object", "properties": properties, "required": required})
            ),
            (prop_oneof![Just("anyOf"), Just("oneOf"), Just("allOf")], list).prop_map(|(key, list)| json!({key: list})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (inner, properties).prop_map(|(a, properties)| json!({"properties": properties, "$defs": {"a": a}})),
        ]
    })
}

fn each(schema: &Value, check: &mut impl FnMut(&Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            check(fields);
            fields.values().for_each(|value| each(value, check));
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, check)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #[test]
    fn no_schema_has_what_its_provider_refuses(
        schema in schemas(),
        provider in prop_oneof![Just("openai"), Just("anthropic"), Just("google"), Just("bedrock")],
    ) {
        let Value::Object(schema) = schema else { return Ok(()) };
        let rewritten = rewritten(schema, Dialect::for_provider(provider));
        for key in ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"] {
            prop_assert!(!rewritten.schema.contains_key(key), "{:?}", rewritten.schema);
        }
        prop_assert!(rewritten.schema.get("type").is_none_or(|word| word == "object"));
        let mut is_fine = rewritten.schema.get("properties").is_none_or(Value::is_object);
        each(&Value::Object(rewritten.schema.clone()), &mut |fields| {
            let is_list = fields.get("type").is_some_and(|word| *word == "array" || *word == json!(["array", "null"]));
            is_fine &= !is_list || fields.get("items").is_some_and(Value::is_object);
            is_fine &= fields.get("nullable").is_none_or(|value| !value.is_boolean());
            let names = fields.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            is_fine &= provider == "openai" || names.into_iter().all(|name| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
            });
        });
        prop_assert!(is_fine, "{:?}", rewritten.schema);
    }
}
