//! The outermost schema: an object with properties. Most providers refuse alternatives,
//! references and conditions there.

use serde_json::{Map, Value, json};

use super::target;

/// References that are followed from one place.
const MAX_REFERENCES: usize = 8;
/// Alternatives that are merged, those within others included: a definition may contain itself.
const MAX_MERGED: usize = 256;
/// A longer rule is named, and not shown.
const MAX_RULE_BYTES: usize = 1_000;
/// Keywords that do not describe an object, and that have no other form.
const RULES: [&str; 9] = [
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];

/// Whether arguments have to fit each of several schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Each,
    Some,
}

impl Fit {
    fn keyword(self) -> &'static str {
        match self {
            Self::Each => "allOf",
            Self::Some => "anyOf",
        }
    }
}

/// The outermost schema without alternatives. What is lost becomes a note.
pub(super) fn object(
    mut schema: Map<String, Value>,
    root: &Value,
    notes: &mut Vec<String>,
) -> Map<String, Value> {
    resolve(&mut schema, root);
    let mut merge = Merge {
        root,
        left: MAX_MERGED,
    };
    for (key, fit, number) in [
        ("allOf", Fit::Each, ""),
        ("anyOf", Fit::Some, "at least one"),
        ("oneOf", Fit::Some, "exactly one"),
    ] {
        let Some(Value::Array(alternatives)) = schema.shift_remove(key) else {
            continue;
        };
        if fit == Fit::Some {
            notes.push(note(
                &format!("The arguments have to fit {number} of these schemas"),
                &json!(alternatives),
            ));
        }
        merge.add(&mut schema, alternatives, fit);
    }
    let rules: Map<String, Value> = RULES
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), schema.shift_remove(key)?)))
        .collect();
    if !rules.is_empty() {
        notes.push(note(
            "The arguments have to fit this schema, too",
            &Value::Object(rules),
        ));
    }
    schema
}

fn note(words: &str, rule: &Value) -> String {
    let rule = rule.to_string();
    if rule.len() <= MAX_RULE_BYTES {
        format!("{words}: {rule}.")
    } else {
        format!("{words}, as far as you know them.")
    }
}

/// Puts the definition in the place of an outermost reference.
fn resolve(schema: &mut Map<String, Value>, root: &Value) {
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = schema.shift_remove("$ref") else {
            return;
        };
        let Some(Value::Object(definition)) = target(root, &reference) else {
            continue;
        };
        for (key, value) in definition {
            schema.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    schema.shift_remove("$ref");
}

/// Merges alternatives into a schema, at most a number of them.
struct Merge<'s> {
    root: &'s Value,
    left: usize,
}

impl Merge<'_> {
    /// Adds the properties of alternatives. A property is required if each of them requires it.
    fn add(&mut self, schema: &mut Map<String, Value>, alternatives: Vec<Value>, fit: Fit) {
        let mut required: Option<Vec<Value>> = None;
        let mut added: Map<String, Value> = Map::new();
        for alternative in alternatives {
            let Value::Object(mut alternative) = alternative else {
                continue;
            };
            let Some(left) = self.left.checked_sub(1) else {
                break;
            };
            self.left = left;
            resolve(&mut alternative, self.root);
            if let Some(Value::Array(inner)) = alternative.shift_remove("allOf") {
                // Each level takes of what is left, so the depth is bounded as well.
                self.left /= 2;
                self.add(&mut alternative, inner, Fit::Each);
            }
            let own = alternative
                .get("required")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            required = Some(match required {
                None => own,
                Some(known) if fit == Fit::Each => known.into_iter().chain(own).collect(),
                Some(known) => known
                    .into_iter()
                    .filter(|name| own.contains(name))
                    .collect(),
            });
            let Some(Value::Object(properties)) = alternative.shift_remove("properties") else {
                continue;
            };
            for (name, property) in properties {
                let together = match added.shift_remove(&name) {
                    Some(known) if known != property => both(known, property, fit.keyword()),
                    Some(_) | None => property,
                };
                added.insert(name, together);
            }
        }
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            for (name, property) in added {
                let together = match properties.get(&name) {
                    Some(known) if *known != property => both(known.clone(), property, "allOf"),
                    Some(_) | None => property,
                };
                properties.insert(name, together);
            }
        }
        let required = required.unwrap_or_default();
        if !required.is_empty()
            && let Value::Array(known) = schema.entry("required").or_insert_with(|| json!([]))
        {
            for name in required {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
    }
}

/// Two schemas of one property.
fn both(known: Value, other: Value, key: &str) -> Value {
    if let Some(Value::Array(list)) = known
        .as_object()
        .filter(|known| known.len() == 1)
        .and_then(|known| known.get(key))
    {
        let mut list = list.clone();
        if !list.contains(&other) {
            list.push(other);
        }
        return json!({ key: list });
    }
    json!({ key: [known, other] })
}
