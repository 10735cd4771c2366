//! `probe` of an MCP server: a tool call with which `tarsy doctor` checks that the system that the tools query works.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map as Object, Value};

/// A call that only reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ToolProbe {
    /// The tool's name at its server.
    #[schemars(extend("x-required" = "the name of a tool at the server"))]
    pub tool: String,
    /// The arguments of the call.
    #[serde(skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "arguments")]
    pub arguments: Object<String, Value>,
}

impl Eq for ToolProbe {}

fn arguments(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-form": "mapping"})
}
