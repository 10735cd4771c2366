//! `approve` of a server: tools whose calls wait for a person. A list has the policy `default`; a mapping has the tools
//! of each policy.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

use super::McpServer;
use super::scope::ServerScope;
use crate::read::reader::Field;
use crate::sections::approvals::DEFAULT_POLICY;
use crate::write::Written as _;

/// The tools of each policy.
type Tools = BTreeMap<String, Vec<String>>;

/// The two forms of the key.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    List(Vec<String>),
    Policies(Tools),
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tools, D::Error> {
    Ok(match Form::deserialize(deserializer)? {
        Form::List(tools) if tools.is_empty() => Tools::new(),
        Form::List(tools) => Tools::from([(DEFAULT_POLICY.to_owned(), tools)]),
        Form::Policies(tools) => tools,
    })
}

pub(super) fn serialize<S: Serializer>(tools: &Tools, serializer: S) -> Result<S::Ok, S::Error> {
    if tools.len() == 1
        && let Some(listed) = tools.get(DEFAULT_POLICY)
    {
        return listed.form().serialize(serializer);
    }
    let written = tools.iter().map(|(policy, tools)| (policy, tools.form()));
    written.collect::<BTreeMap<_, _>>().serialize(serializer)
}

pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    let tools = || json_schema!({"type": "array", "items": {"type": "string", "x-form": "text"}});
    json_schema!({"anyOf": [tools(), {"type": "object", "additionalProperties": tools()}]})
}

impl McpServer {
    /// The policy that decides about a tool, by the name that the server gives it; `None` for a tool that needs no
    /// person.
    pub fn approval_policy(&self, tool: &str) -> Option<&str> {
        let mut policies = self.approve.iter();
        let found = policies.find(|(_, tools)| tools.iter().any(|named| named == tool));
        found.map(|(policy, _)| policy.as_str())
    }

    pub(super) fn check_approve(&self, field: &Field<'_>) {
        let Some(field) = field.get("approve") else {
            return;
        };
        if self.scope == ServerScope::Session && !self.approve.is_empty() {
            field.fault(
                "beside `scope: session`: a wait for a person ends the session's connection, so an approved call would \
                 run in another state than the one shown; leave one of the two out"
                    .to_owned(),
            );
        }
        if field.is_map() {
            for (policy, tools) in field.entries() {
                check_policy(&policy, &tools);
                let tools = tools.list_items();
                self.check_tools(&policy, &tools);
            }
        } else {
            let tools = field.list_items();
            if !tools.is_empty() {
                check_policy(DEFAULT_POLICY, &field);
            }
            self.check_tools(DEFAULT_POLICY, &tools);
        }
    }

    fn check_tools(&self, policy: &str, tools: &[Field<'_>]) {
        for field in tools {
            let Some(tool) = field.resolved() else {
                continue;
            };
            if self.allow.contains(&tool) {
                field.fault(format!(
                    "{tool:?} is in allow as well, which sends its calls at once; leave it out there"
                ));
            }
            // The first policy by name decides.
            let first = self.approval_policy(&tool);
            if let Some(first) = first.filter(|first| *first != policy) {
                field.fault(format!("{tool:?} has the policy {first} already"));
            }
        }
    }
}

/// Reports a policy that the file does not define.
fn check_policy(policy: &str, field: &Field<'_>) {
    let policies = &field.names().policies;
    if policies.iter().any(|known| known == policy) {
        return;
    }
    let defined = if policies.is_empty() {
        "none".to_owned()
    } else {
        policies.join(", ")
    };
    field.fault(format!(
        "there is no policy {policy:?} in approvals.policies; defined: {defined}"
    ));
}
