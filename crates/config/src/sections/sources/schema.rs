//! The schema of `sources` for editors. The declaration of a source is a small language, so its reader is written by
//! hand and reports more.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{BUILTIN_SOURCE_NAMES, MAX_BODY_BYTES};
use tarsy_core::alert::{AlertStatus, Severity};

/// The schema of the section.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "object", "properties": source()}})
}

fn source() -> Value {
    let severities = Severity::ALL.map(Severity::as_str);
    let statuses = AlertStatus::ALL.map(AlertStatus::as_str);
    json!({
        "like": {"enum": BUILTIN_SOURCE_NAMES, "description": "The source whose values absent keys have."},
        "auth": auth(),
        "max_body": {
            "x-form": "bytes",
            "x-range": [1_024, MAX_BODY_BYTES],
            "description": "The size of the largest body."
        },
        "recognise": {
            "anyOf": [rule(), {"type": "array", "items": rule()}],
            "description": "The bodies that belong to the source."
        },
        "ignore": {"x-form": "mapping", "description": "The bodies that are no alerts: pointers with words."},
        "each": expression("The pointer to the list of alerts in a body; empty: the body itself."),
        "capture": {
            "properties": {
                "from": {"type": "string", "x-required": "/title", "description": "An expression."},
                "regex": {"type": "string", "x-required": "", "description": "Groups as (?<name>…)."}
            },
            "description": "A regular expression whose groups are values of expressions."
        },
        "parse": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Pointers to texts that are JSON themselves."
        },
        "type": expression("The type of the alert."),
        "title": expression("Its title."),
        "severity": words(&severities),
        "status": words(&statuses),
        "test": {"x-form": "mapping", "description": "The signs of a test: pointers with texts or values."},
        "key": {"type": "array", "items": {}, "description": "The parts of the fingerprint, or a list of such lists."},
        "labels": {"type": "array", "items": {"x-form": "mapping"}, "description": "Its labels."},
        "links": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Addresses by their names."
        },
        "runbook": expression("The address of its runbook."),
        "refs": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "References, such as a ticket, by their names."
        },
        "at": expression("Its time."),
        "text": {
            "anyOf": [{"enum": ["all"]}, {"type": "array", "items": {"type": "string"}}],
            "description": "The fields that the investigation reads."
        }
    })
}

fn expression(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn rule() -> Value {
    let pointers = json!({"type": "array", "items": {"type": "string"}});
    json!({"properties": {"has": pointers, "equals": {"x-form": "mapping"}, "lacks": pointers}})
}

/// An expression, or one with a table of words.
fn words(known: &[&str]) -> Value {
    let table = json!({
        "from": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"enum": known}},
        "default": {"enum": known}
    });
    json!({
        "anyOf": [{"type": "string"}, {"properties": table}],
        "description": "An expression, or one with a table of words."
    })
}

fn auth() -> Value {
    let secret = json!({"secret_env": {"type": "string"}, "secret_file": {"type": "string"}});
    let with = |further: Value| {
        let mut keys = further;
        if let (Some(keys), Some(secret)) = (keys.as_object_mut(), secret.as_object()) {
            keys.extend(secret.clone());
        }
        json!({"properties": keys})
    };
    let kinds = json!({
        "bearer": with(json!({})),
        "basic": with(json!({})),
        "path": with(json!({})),
        "header": with(json!({"name": {"type": "string", "x-required": "X-Token"}})),
        "hmac_sha256": with(json!({
            "header": {"type": "string", "x-required": "X-Signature"},
            "prefix": {"type": "string"},
            "secret_env_2": {"type": "string"},
            "secret_file_2": {"type": "string"},
            "time_header": {"type": "string"}
        })),
        "sns": {"properties": {
            "topics": {"type": "array", "items": {"type": "string"}, "x-required": "ARNs"},
            "confirm": {"type": "boolean"}
        }}
    });
    json!({
        "anyOf": [{"enum": ["bearer", "basic"]}, {"properties": kinds, "maxProperties": 1}],
        "description": "The proof that its senders give."
    })
}
