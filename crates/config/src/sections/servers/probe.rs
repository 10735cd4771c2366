//! `probe` of an MCP server: a tool call with which `tarsy doctor` checks that the system that the tools query works.

use serde::Serialize;
use serde_json::{Map as Object, Value};

use crate::read::reader::Map;

/// A call that only reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolProbe {
    /// The tool's name at its server.
    pub tool: String,
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub arguments: Object<String, Value>,
}

impl Eq for ToolProbe {}

impl ToolProbe {
    pub(super) fn read(map: &mut Map<'_>) -> Option<Self> {
        let field = map.get("probe")?;
        field.section(|map| {
            let tool = map
                .required("tool", "the name of a tool at the server")?
                .text()?;
            let arguments = map.get("arguments").map(|field| field.json());
            match arguments {
                None => Some(Self {
                    tool,
                    arguments: Object::new(),
                }),
                Some(Value::Object(arguments)) => Some(Self { tool, arguments }),
                Some(_) => {
                    field.fault(
                        "arguments are no mapping; accepted: a mapping of names to values"
                            .to_owned(),
                    );
                    None
                }
            }
        })
    }
}
