//! The tools of a request. They keep their order, so that the same tools give the same bytes and can be cached.

use std::collections::HashMap;

use ::genai::chat::{Tool, ToolChoice};
use serde_json::{Value, json};

use super::target::{Api, Selection};
use crate::proto::{GenerateRequest, ToolDefinition};
use crate::service::provider::refused_tools::{Layout, LeftOut, Sent, without};
use crate::service::provider::schemas::{self, Dialect, Renamed, Rewritten};
use crate::service::provider::{ProviderError, names};

/// The tools as the crate gets them.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) list: Vec<Tool>,
    pub(super) choice: Option<ToolChoice>,
    /// The native tools, which this backend does not have, for the client; empty if there are none.
    pub(super) left_out: String,
    /// The properties that have another name at the provider, by the tool's name there.
    pub(super) renamed: HashMap<String, Renamed>,
    pub(super) refused: LeftOut,
}

impl Tools {
    /// Leaves the refused tools out, if the refusal names them. Returns whether something has changed.
    pub(super) fn leave_out(&mut self, refused: &ProviderError, request: &GenerateRequest) -> bool {
        let names: Vec<&str> = self.list.iter().map(|tool| tool.name.as_str()).collect();
        let found = self.refused.learn(
            refused,
            request,
            Sent {
                names: &names,
                layout: Layout::List,
            },
        );
        let Some(found) = found else { return false };
        without(&mut self.list, &found);
        true
    }

    /// Whether the model has to call a tool.
    pub(super) fn is_forced(&self) -> bool {
        matches!(
            self.choice,
            Some(ToolChoice::Required | ToolChoice::Tool { .. })
        )
    }
}

/// The tools of a request.
///
/// # Errors
/// `invalid_request` when a name or a schema has no form at the provider, or `tool_choice` names no tool.
pub(super) fn convert(
    request: &GenerateRequest,
    selection: Selection<'_>,
) -> Result<Tools, ProviderError> {
    let config = request.llm_config.as_ref();
    let mut native: Vec<&str> = config
        .into_iter()
        .flat_map(|config| &config.native_tools)
        .filter(|(_, is_on)| **is_on)
        .map(|(name, _)| name.as_str())
        .collect();
    native.sort_unstable();
    let mut tools = Tools::default();
    if !native.is_empty() {
        tools.left_out = format!("{}: not in this backend", native.join(", "));
    }
    for definition in &request.tools {
        tools.add(definition, selection)?;
    }
    if !tools.list.is_empty() {
        tools.choice = choice(&request.tool_choice, &request.tools)?;
    }
    Ok(tools)
}

impl Tools {
    fn add(
        &mut self,
        definition: &ToolDefinition,
        selection: Selection<'_>,
    ) -> Result<(), ProviderError> {
        let name = names::to_wire(&definition.name)?;
        let Rewritten {
            schema,
            notes,
            renamed,
        } = accepted_schema(definition, selection)?;
        let mut tool = Tool::new(name.clone())
            .with_description(schemas::described(&definition.description, &notes))
            .with_schema(Value::Object(schema));
        // Without the word, the Responses API makes optional arguments required where it can.
        tool.strict = (selection.api == Api::Responses).then_some(false);
        self.list.push(tool);
        if renamed != Renamed::default() {
            self.renamed.insert(name, renamed);
        }
        Ok(())
    }
}

/// The schema of a tool's arguments as the provider accepts it.
fn accepted_schema(
    definition: &ToolDefinition,
    selection: Selection<'_>,
) -> Result<Rewritten, ProviderError> {
    let text = match definition.parameters_schema.trim() {
        "" => "{}",
        text => text,
    };
    let schema = serde_json::from_str(text).map_err(|_error| {
        ProviderError::invalid_request(format!(
            "the parameters of the tool '{}' are no JSON schema",
            definition.name
        ))
    })?;
    let mut rewritten = schemas::rewritten(schema, Dialect::for_provider(selection.provider()));
    // Anthropic and OpenAI refuse a schema without a type.
    let schema = &mut rewritten.schema;
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Ok(rewritten)
}

fn choice(wanted: &str, tools: &[ToolDefinition]) -> Result<Option<ToolChoice>, ProviderError> {
    match wanted {
        "" => Ok(None),
        "auto" => Ok(Some(ToolChoice::Auto)),
        "none" => Ok(Some(ToolChoice::None)),
        "required" => Ok(Some(ToolChoice::Required)),
        name if tools.iter().any(|tool| tool.name == name) => {
            Ok(Some(ToolChoice::tool(names::to_wire(name)?)))
        }
        name => Err(ProviderError::invalid_request(format!(
            "tool_choice names '{name}', which is no tool of the request"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LlmConfig;
    use crate::service::provider::ErrorCode;

    fn request(schema: &str, choice: &str) -> GenerateRequest {
        let tool = ToolDefinition {
            name: "s.a".into(),
            description: "d".into(),
            parameters_schema: schema.into(),
        };
        let native_tools = [
            ("url_context", true),
            ("google_search", true),
            ("code_execution", false),
        ];
        let native_tools = native_tools
            .map(|(name, is_on)| (name.to_owned(), is_on))
            .into();
        let llm_config = LlmConfig {
            native_tools,
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            ..LlmConfig::default()
        };
        GenerateRequest {
            tools: vec![tool],
            tool_choice: choice.into(),
            llm_config: Some(llm_config),
            ..GenerateRequest::default()
        }
    }

    fn converted(schema: &str, choice: &str) -> Result<Tools, ProviderError> {
        let request = request(schema, choice);
        convert(
            &request,
            Selection::parse(request.llm_config.as_ref().unwrap()).unwrap(),
        )
    }

    #[test]
    fn what_a_schema_loses_is_in_the_description() {
        let tools = converted(
            r#"{"properties":{"$a":{}},"oneOf":[{"required":["$a"]}]}"#,
            "",
        )
        .unwrap();
        let description = tools.list[0].description.clone().unwrap();
        assert!(
            description.starts_with("d\n\nThe arguments have to fit exactly one"),
            "{description}"
        );
        let renamed = tools.renamed.get("s__a").unwrap();
        let (form, _) = description.rsplit_once(" is $a").unwrap();
        let form = form.rsplit(' ').next().unwrap();
        assert_eq!(
            renamed.restored(&format!(r#"{{"{form}":1}}"#)),
            r#"{"$a":1}"#
        );
    }

    #[test]
    fn every_schema_is_one_of_an_object() {
        for (schema, expected) in [
            ("", json!({"type":"object","properties":{}})),
            ("{}", json!({"type":"object","properties":{}})),
            (
                r#"{"type":"object","properties":{"a":{}}}"#,
                json!({"type":"object","properties":{"a":{}}}),
            ),
        ] {
            let tools = converted(schema, "").unwrap();
            assert_eq!(
                (tools.list[0].name.as_str(), tools.list[0].schema.clone()),
                ("s__a", Some(expected))
            );
            assert_eq!(
                tools.left_out,
                "google_search, url_context: not in this backend"
            );
        }
        assert!(
            converted("[1]", "")
                .unwrap_err()
                .message
                .contains("no JSON schema")
        );
    }

    #[test]
    fn the_choice_of_a_tool_is_that_of_the_crate() {
        let choice = |word: &str| converted("", word).map(|tools| tools.choice);
        assert_eq!(choice("s.a").unwrap(), Some(ToolChoice::tool("s__a")));
        assert_eq!(choice("required").unwrap(), Some(ToolChoice::Required));
        assert_eq!(choice("s.b").unwrap_err().code, ErrorCode::InvalidRequest);
    }
}
