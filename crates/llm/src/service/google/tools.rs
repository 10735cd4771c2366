//! The tools of a request: functions, and the provider's native tools.
//!
//! The functions keep the order of the request, and the native tools have a fixed order, so that the same tools give
//! the same bytes and the provider's cache can be used.

use std::collections::HashMap;

use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::models::Model;
use super::replay::PROVIDER;
use super::wire::{FunctionCallingConfig, FunctionDeclaration, Raw, Tool, ToolConfig};
use crate::proto::{GenerateRequest, LlmConfig, NATIVE_TOOLS_OPTION, ToolDefinition};
use crate::service::provider::refused_tools::{Layout, LeftOut, Sent, without};
use crate::service::provider::schemas::{self, Dialect, Renamed};
use crate::service::provider::{ProviderError, names};

const EXCLUSIVE: &str = "exclusive";

const GOOGLE_SEARCH: &str = "google_search";
const CODE_EXECUTION: &str = "code_execution";
const URL_CONTEXT: &str = "url_context";

/// The tools as the provider gets them.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) list: Vec<Tool>,
    pub(super) config: Option<ToolConfig>,
    /// The tools that were left out and the reason, for the client; empty if there are none.
    pub(super) left_out: String,
    /// The properties that have another name at the provider, by the tool's name there.
    pub(super) renamed: HashMap<String, Renamed>,
    pub(super) refused: LeftOut,
}

impl Tools {
    /// Leaves the refused tools out, if the refusal names them. Returns whether something has changed.
    pub(super) fn leave_out(&mut self, refused: &ProviderError, request: &GenerateRequest) -> bool {
        for tool in &mut self.list {
            let Tool::FunctionDeclarations(declarations) = tool else {
                continue;
            };
            let names: Vec<&str> = declarations
                .iter()
                .map(|declaration| declaration.name.as_str())
                .collect();
            let found = self.refused.learn(
                refused,
                request,
                Sent {
                    names: &names,
                    layout: Layout::Declarations,
                },
            );
            let Some(found) = found else { return false };
            without(declarations, &found);
            return true;
        }
        false
    }
}

/// The interface of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Developer,
    /// An interface that has no flag for native tools together with functions.
    VertexAi,
}

/// The tools of a request.
///
/// # Errors
/// `invalid_request` when a name or a schema has no form at the provider, or `tool_choice` names no tool.
pub(super) fn convert(
    request: &GenerateRequest,
    model: Model<'_>,
    api: Api,
) -> Result<Tools, ProviderError> {
    let config = request.llm_config.as_ref();
    let mut native = native_tools(config);
    let mut functions = request.tools.as_slice();
    let mut left_out = String::new();
    if model.is_image_model() {
        let mut missing = native.clone();
        missing.retain(|name| *name != GOOGLE_SEARCH);
        if !functions.is_empty() {
            missing.insert(0, "functions");
        }
        if !missing.is_empty() {
            left_out = format!("{}: {} has none", missing.join(", "), model.name);
        }
        native.retain(|name| *name == GOOGLE_SEARCH);
        functions = &[];
    }
    let is_exclusive = request.option(NATIVE_TOOLS_OPTION) == Some(EXCLUSIVE);
    let can_combine = model.family.combines_tools && api == Api::Developer;
    if !functions.is_empty() && !native.is_empty() && (is_exclusive || !can_combine) {
        let reason = match (is_exclusive, api) {
            (true, _) => "the request excludes them",
            (false, Api::Developer) => "the model cannot combine them",
            (false, Api::VertexAi) => "Vertex AI cannot combine them",
        };
        left_out = format!("{}: not beside functions, {reason}", native.join(", "));
        native.clear();
    }
    let is_combined = !functions.is_empty() && !native.is_empty();
    let mut renamed = HashMap::new();
    let mut list: Vec<Tool> = native.into_iter().filter_map(native_tool).collect();
    let mut function_calling_config = None;
    if !functions.is_empty() {
        let declared = functions
            .iter()
            .map(|function| declaration(function, &mut renamed));
        list.push(Tool::FunctionDeclarations(
            declared.collect::<Result<_, _>>()?,
        ));
        function_calling_config = choice(&request.tool_choice, functions)?;
    }
    let has_config = is_combined || function_calling_config.is_some();
    let config = has_config.then_some(ToolConfig {
        function_calling_config,
        include_server_side_tool_invocations: is_combined.then_some(true),
    });
    Ok(Tools {
        list,
        config,
        left_out,
        renamed,
        refused: LeftOut::default(),
    })
}

/// The native tools that are switched on, in a fixed order.
fn native_tools(config: Option<&LlmConfig>) -> Vec<&'static str> {
    let mut tools = vec![GOOGLE_SEARCH, CODE_EXECUTION, URL_CONTEXT];
    tools.retain(|name| config.is_some_and(|config| config.native_tools.get(*name) == Some(&true)));
    tools
}

fn native_tool(name: &str) -> Option<Tool> {
    match name {
        GOOGLE_SEARCH => Some(Tool::GoogleSearch {}),
        CODE_EXECUTION => Some(Tool::CodeExecution {}),
        URL_CONTEXT => Some(Tool::UrlContext {}),
        _ => None,
    }
}

/// A function with a schema that Gemini accepts. A schema that stays as it is keeps its bytes.
fn declaration(
    tool: &ToolDefinition,
    renamed: &mut HashMap<String, Renamed>,
) -> Result<FunctionDeclaration, ProviderError> {
    let no_schema = |_error| {
        ProviderError::invalid_request(format!(
            "the parameters of the tool '{}' are no JSON schema",
            tool.name
        ))
    };
    let schema = Some(tool.parameters_schema.trim()).filter(|schema| !schema.is_empty());
    let mut parameters_json_schema: Option<Raw> = schema
        .map(serde_json::from_str)
        .transpose()
        .map_err(no_schema)?;
    let name = names::to_wire(&tool.name)?;
    let mut description = tool.description.clone();
    if let Some(Ok(given)) = schema.map(serde_json::from_str::<Map<String, Value>>) {
        let rewritten = schemas::rewritten(given.clone(), Dialect::for_provider(PROVIDER));
        if rewritten.schema != given {
            parameters_json_schema = Some(to_raw_value(&rewritten.schema).map_err(no_schema)?);
        }
        description = schemas::described(&description, &rewritten.notes);
        if rewritten.renamed != Renamed::default() {
            renamed.insert(name.clone(), rewritten.renamed);
        }
    }
    Ok(FunctionDeclaration {
        description,
        name,
        parameters_json_schema,
    })
}

fn choice(
    wanted: &str,
    tools: &[ToolDefinition],
) -> Result<Option<FunctionCallingConfig>, ProviderError> {
    let mut allowed_function_names = Vec::new();
    let mode = match wanted {
        "" => return Ok(None),
        "auto" => "AUTO",
        "none" => "NONE",
        "required" => "ANY",
        name if tools.iter().any(|tool| tool.name == name) => {
            allowed_function_names.push(names::to_wire(name)?);
            "ANY"
        }
        name => {
            return Err(ProviderError::invalid_request(format!(
                "tool_choice names '{name}', which is no tool of the request"
            )));
        }
    };
    Ok(Some(FunctionCallingConfig {
        mode,
        allowed_function_names,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::provider::ErrorCode;

    fn request(native: &[&str], functions: &[&str], option: &str) -> GenerateRequest {
        let llm_config = LlmConfig {
            native_tools: native
                .iter()
                .map(|name| ((*name).to_owned(), true))
                .collect(),
            options: [(NATIVE_TOOLS_OPTION.to_owned(), option.to_owned())].into(),
            ..LlmConfig::default()
        };
        let tools = functions
            .iter()
            .map(|name| ToolDefinition {
                name: (*name).into(),
                description: "d".into(),
                parameters_schema: r#"{"type": "object"}"#.into(),
            })
            .collect();
        GenerateRequest {
            llm_config: Some(llm_config),
            tools,
            ..GenerateRequest::default()
        }
    }

    fn sent(model: &str, request: &GenerateRequest) -> String {
        let tools = convert(request, Model::parse(model).unwrap(), Api::Developer).unwrap();
        let text = |value: Result<String, serde_json::Error>| value.unwrap();
        format!(
            "{} {} {}",
            text(serde_json::to_string(&tools.list)),
            text(serde_json::to_string(&tools.config)),
            tools.left_out
        )
    }

    #[test]
    fn native_tools_and_functions_are_combined_only_where_the_model_can() {
        let function = r#"{"functionDeclarations":[{"description":"d","name":"s__a","parametersJsonSchema":{"type": "object"}}]}"#;
        let both = request(
            &[URL_CONTEXT, GOOGLE_SEARCH, CODE_EXECUTION],
            &["s.a"],
            "combine",
        );
        let native = r#"{"googleSearch":{}},{"codeExecution":{}},{"urlContext":{}}"#;
        let combined =
            format!(r#"[{native},{function}] {{"includeServerSideToolInvocations":true}} "#);
        assert_eq!(sent("gemini-3-flash-preview", &both), combined);
        assert_eq!(
            sent("gemini-2.5-pro", &both),
            format!(
                "[{function}] null google_search, code_execution, url_context: not beside functions, the model cannot \
                 combine them"
            )
        );
        let exclusive = request(&[GOOGLE_SEARCH], &["s.a"], EXCLUSIVE);
        assert_eq!(
            sent("gemini-3-flash-preview", &exclusive),
            format!(
                "[{function}] null google_search: not beside functions, the request excludes them"
            )
        );
        let only_native = request(&[GOOGLE_SEARCH], &[], EXCLUSIVE);
        assert_eq!(
            sent("gemini-2.5-pro", &only_native),
            r#"[{"googleSearch":{}}] null "#
        );
        assert_eq!(
            sent("gemini-2.5-flash-image", &both),
            r#"[{"googleSearch":{}}] null functions, code_execution, url_context: gemini-2.5-flash-image has none"#
        );
        let vertex = convert(
            &both,
            Model::parse("gemini-3-flash-preview").unwrap(),
            Api::VertexAi,
        )
        .unwrap();
        let reason = "google_search, code_execution, url_context: not beside functions, Vertex AI cannot combine them";
        assert_eq!(
            (
                vertex.list.len(),
                vertex.config.is_none(),
                vertex.left_out.as_str()
            ),
            (1, true, reason)
        );
    }

    #[test]
    fn the_choice_of_a_tool_becomes_a_mode() {
        for (choice, expected) in [
            ("auto", r#"{"mode":"AUTO"}"#),
            ("none", r#"{"mode":"NONE"}"#),
            ("required", r#"{"mode":"ANY"}"#),
            ("s.a", r#"{"mode":"ANY","allowedFunctionNames":["s__a"]}"#),
        ] {
            let request = GenerateRequest {
                tool_choice: choice.into(),
                ..request(&[], &["s.a"], "")
            };
            let tools = convert(
                &request,
                Model::parse("gemini-3-flash-preview").unwrap(),
                Api::Developer,
            )
            .unwrap();
            let config = serde_json::to_string(&tools.config).unwrap();
            assert_eq!(config, format!(r#"{{"functionCallingConfig":{expected}}}"#));
        }
        let unknown = GenerateRequest {
            tool_choice: "s.b".into(),
            ..request(&[], &["s.a"], "")
        };
        let model = Model::parse("gemini-3-flash-preview").unwrap();
        assert_eq!(
            convert(&unknown, model, Api::Developer).unwrap_err().code,
            ErrorCode::InvalidRequest
        );
    }
}
