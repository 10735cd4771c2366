//! The schema of `destinations` for editors. The reader reports more.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{BUILTIN_DESTINATION_NAMES, Method};
use crate::sections::notifications::filter_keys;

/// The schema of the section.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    let mut keys = destination();
    if let (Value::Object(keys), Value::Object(filter)) = (&mut keys, filter_keys()) {
        keys.extend(filter);
    }
    json_schema!({"type": "object", "additionalProperties": {"type": "object", "properties": keys}})
}

fn destination() -> Value {
    let texts = |description: &str| {
        json!({
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": description
        })
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut keys = json!({
        "like": {
            "enum": BUILTIN_DESTINATION_NAMES,
            "description": "The destination whose values absent keys have."
        },
        "base": text("The address before every path."),
        "allow_http": {"type": "boolean", "description": "Permits an address without TLS."},
        "with": texts("Parameters of the declaration."),
        "secret_file": text("The file with the secret for headers."),
        "secret_env": text("The variable with the secret for headers."),
        "needs": texts("The references without which nothing is sent, with regular expressions."),
        "lookup": {
            "properties": {
                "get": {"type": "string"},
                "post": {"type": "string"},
                "query": texts("Parameters."),
                "json": {},
                "form": texts("Fields."),
                "take": texts("JSON pointers to references."),
                "equals": texts("JSON pointers with the texts that have to be there.")
            },
            "description": "The request for references that the alert does not have."
        },
        "find": {
            "properties": {
                "get": {"type": "string"},
                "post": {"type": "string"},
                "query": texts("Parameters."),
                "json": {},
                "form": texts("Fields."),
                "items": {"type": "string", "x-required": "/notes"},
                "text": {"type": "string", "x-required": "/content"},
                "size": {"type": "integer", "minimum": 1, "maximum": 1_000}
            },
            "description": "The request for the list of notes, in which a repetition is recognised."
        },
        "query": texts("Parameters of the request."),
        "headers": texts("Headers of every request, the only place of {secret}."),
        "json": {"description": "The body as a tree with texts, numbers, lists, mappings and rendered parts."},
        "form": texts("The body as a form."),
        "accepted": {
            "type": "array",
            "items": {"type": "integer", "minimum": 200, "maximum": 299},
            "description": "The statuses of an answer to a note that was added."
        },
        "failed": text("The JSON pointer to what only a failed answer has."),
        "per_minute": {
            "type": "integer",
            "minimum": 60,
            "maximum": 6_000,
            "description": "Notes that each worker sends in a minute."
        },
        "idempotent": {"type": "boolean", "description": "The vendor recognises a repetition by itself."}
    });
    for method in [Method::Post, Method::Put, Method::Patch] {
        if let Value::Object(keys) = &mut keys {
            keys.insert(
                method.as_str().to_owned(),
                text("The path of the request that adds a note."),
            );
        }
    }
    keys
}
