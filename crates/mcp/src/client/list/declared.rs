//! A tool as its server declares it. A fault in one tool affects no other tool; a fault in an optional field does not
//! affect the tool.

use rmcp::model::Tool;
use serde_json::{Map, Value, json};

/// The members of a tool that a call does not need.
const OPTIONAL: [&str; 6] = [
    "title",
    "description",
    "outputSchema",
    "annotations",
    "icons",
    "_meta",
];

/// A tool of a list.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::client) struct Declared {
    pub(in crate::client) tool: Tool,
    /// The reason why it cannot be called.
    pub(in crate::client) fault: Option<String>,
    /// The members that are not as the protocol has them, and were left out.
    pub(in crate::client) left_out: Vec<&'static str>,
}

impl From<Tool> for Declared {
    fn from(tool: Tool) -> Self {
        Self {
            tool,
            fault: None,
            left_out: Vec::new(),
        }
    }
}

impl Declared {
    /// Reads one member of the list `tools`.
    pub(in crate::client) fn parse(value: &Value) -> Self {
        if let Ok(tool) = serde_json::from_value::<Tool>(value.clone()) {
            return tool.into();
        }
        let Value::Object(members) = value else {
            return Self::unusable("", "it is no object");
        };
        let Some(name) = members.get("name").and_then(Value::as_str) else {
            return Self::unusable("", "it has no name");
        };
        let mut kept = Map::from_iter([
            ("name".to_owned(), json!(name)),
            ("inputSchema".to_owned(), json!({})),
        ]);
        let Some(schema) = arguments(members.get("inputSchema")) else {
            return Self::unusable(name, "its inputSchema is no object");
        };
        kept.insert("inputSchema".to_owned(), schema);
        let mut left_out = Vec::new();
        for key in OPTIONAL {
            let Some(member) = members.get(key) else {
                continue;
            };
            let mut with = kept.clone();
            with.insert(key.to_owned(), member.clone());
            if serde_json::from_value::<Tool>(Value::Object(with.clone())).is_ok() {
                kept = with
            } else {
                left_out.push(key)
            }
        }
        match serde_json::from_value::<Tool>(Value::Object(kept)) {
            Ok(tool) => Self {
                tool,
                fault: None,
                left_out,
            },
            Err(_) => Self::unusable(name, "it is no tool"),
        }
    }

    fn unusable(name: &str, fault: &str) -> Self {
        let tool = Tool::new(name.to_owned(), "", Map::new());
        Self {
            tool,
            fault: Some(fault.to_owned()),
            left_out: Vec::new(),
        }
    }
}

/// The schema of the arguments. A tool without one, or with one that says nothing, takes any object.
fn arguments(schema: Option<&Value>) -> Option<Value> {
    match schema {
        None | Some(Value::Null | Value::Bool(true)) => Some(json!({"type": "object"})),
        Some(Value::Array(items)) if items.is_empty() => Some(json!({"type": "object"})),
        Some(Value::Object(_)) => schema.cloned(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_odd_member_is_left_out_and_the_tool_is_kept() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        for (key, odd) in [
            ("annotations", json!({"readOnlyHint": "true"})),
            ("outputSchema", json!(true)),
            ("icons", json!(["a.png"])),
            ("_meta", json!([])),
            ("title", json!(7)),
        ] {
            let mut value = json!({"name": "odd", "description": "d", "inputSchema": schema});
            value[key] = odd;
            let Declared {
                tool,
                fault,
                left_out,
            } = Declared::parse(&value);
            assert_eq!((fault, left_out), (None, vec![key]));
            assert_eq!(
                (&*tool.name, tool.description.as_deref()),
                ("odd", Some("d"))
            );
            assert_eq!(tool.schema_as_json_value(), schema);
        }
    }

    #[test]
    fn an_absent_schema_takes_any_object_and_another_kind_is_a_fault() {
        for value in [
            json!({"name": "a"}),
            json!({"name": "a", "inputSchema": null}),
            json!({"name": "a", "inputSchema": true}),
            json!({"name": "a", "inputSchema": []}),
        ] {
            let declared = Declared::parse(&value);
            assert_eq!(declared.fault, None, "{value}");
            assert_eq!(
                declared.tool.schema_as_json_value(),
                json!({"type": "object"})
            );
        }
        for (value, fault) in [
            (
                json!({"name": "a", "inputSchema": "x"}),
                "its inputSchema is no object",
            ),
            (
                json!({"name": "a", "inputSchema": false}),
                "its inputSchema is no object",
            ),
            (json!({"inputSchema": {}}), "it has no name"),
            (json!({"name": 7, "inputSchema": {}}), "it has no name"),
            (json!("a"), "it is no object"),
        ] {
            assert_eq!(
                Declared::parse(&value).fault.as_deref(),
                Some(fault),
                "{value}"
            );
        }
    }

    /// Any JSON of a few levels.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,4}", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_named_tool_with_a_schema_survives_anything_in_its_other_members(
            odd in prop::collection::vec((prop::sample::select(OPTIONAL.to_vec()), any_json()), 0..4),
        ) {
            let mut value = json!({"name": "odd", "inputSchema": {"type": "object"}});
            for (key, member) in odd {
                value[key] = member;
            }
            let declared = Declared::parse(&value);
            prop_assert_eq!(declared.fault, None);
            prop_assert_eq!(&*declared.tool.name, "odd");
        }
    }
}
