//! Descriptions of tools for the prompt of a model that writes its calls as text. A server's own words are quoted on
//! one line, so that the model can mistake them neither for a line of tarsy nor for a header of the format.

use serde_json::{Map, Value};

use super::plan::ToolSpec;

/// The tools as text, one entry each: name, description, and the arguments of its JSON schema.
pub(super) fn describe(tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return "\nThere are none: your first answer is a Final Answer.".to_owned();
    }
    tools.iter().map(tool).collect()
}

fn tool(tool: &ToolSpec) -> String {
    let mut text = format!("\n- {}", tool.name);
    push_described(&mut text, &tool.description);
    let mut schema = serde_json::from_str::<Value>(&tool.parameters_schema);
    if let Ok(schema) = &mut schema {
        schema.sort_all_objects();
    }
    match schema {
        Ok(Value::Object(schema)) => push_arguments(&mut text, &schema),
        // No JSON object: shown unchanged.
        Ok(_) | Err(_) => push_line(
            &mut text,
            &format!("arguments: {}", one_line(&tool.parameters_schema)),
        ),
    }
    text
}

fn push_arguments(text: &mut String, schema: &Map<String, Value>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, property) in properties.into_iter().flatten() {
        let requirement = required.contains(&name.as_str()).then_some("required");
        let mut line = format!(
            "{} ({})",
            one_line(name),
            traits(property, requirement).join(", ")
        );
        push_described(
            &mut line,
            property
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        );
        push_line(text, &line);
    }
}

fn traits(property: &Value, requirement: Option<&str>) -> Vec<String> {
    // A nested property is shown as its schema, unless it is a simple list.
    let nested = property
        .get("properties")
        .or_else(|| property.get("items"))
        .map(|_| simple_list(property).unwrap_or_else(|| property.to_string()));
    let kind = one_line(
        property
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("any"),
    );
    let mut traits = vec![nested.unwrap_or(kind)];
    traits.extend(requirement.map(str::to_owned));
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        traits.push(format!("one of {}", values.join(" ")));
    }
    for (key, word) in [
        ("default", "default"),
        ("minimum", "at least"),
        ("maximum", "at most"),
    ] {
        if let Some(value) = property.get(key) {
            traits.push(format!("{word} {value}"));
        }
    }
    traits
}

/// A list of plain values in words.
fn simple_list(property: &Value) -> Option<String> {
    let items = property.get("items")?.as_object()?;
    if !items
        .keys()
        .all(|key| key == "type" || key == "description")
    {
        return None;
    }
    let items = match items.get("type")?.as_str()? {
        "string" => "strings",
        "integer" => "integers",
        "number" => "numbers",
        "boolean" => "booleans",
        _ => return None,
    };
    Some(format!("list of {items}"))
}

fn push_described(text: &mut String, description: &str) {
    let description = one_line(description);
    if !description.is_empty() {
        text.push_str(": ");
        text.push_str(&Value::String(description).to_string());
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str("\n    ");
    text.push_str(line);
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_only_tool;

    fn spec(name: &str, description: &str, schema: &str) -> ToolSpec {
        let description = description.to_owned();
        let parameters_schema = schema.to_owned();

        ToolSpec {
            description,
            parameters_schema,
            ..read_only_tool(name)
        }
    }

    #[test]
    fn a_tool_is_described_with_the_arguments_of_its_schema() {
        let schema = r#"{"type": "object", "required": ["host"], "properties": {
            "host": {"type": "string", "description": "Name of\n the host"},
            "unit": {"enum": ["GB", "MB"], "type": "string", "default": "GB"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "depth": {"type": "integer", "minimum": 1, "maximum": 9}, "any": {}}}"#;
        let tools = [
            spec("host.df", "Disk space,\nper file system.", schema),
            spec("host.uptime", "", "{}"),
            spec("host.odd", "Odd.", "[1,\n2]"),
        ];
        let expected = r#"
- host.df: "Disk space, per file system."
    any (any)
    depth (integer, at least 1, at most 9)
    host (string, required): "Name of the host"
    paths (list of strings)
    unit (string, one of "GB" "MB", default "GB")
- host.uptime
- host.odd: "Odd."
    arguments: [1, 2]"#;
        assert_eq!(describe(&tools), expected);
    }
}
