//! Texts with a meaning of their own: the type that a key names, and the reader that reports a text of another form.

use schemars::{Schema, json_schema};

use super::forms::Form;
use crate::read::reader::Field;
use crate::tool_pattern::ToolPattern as Tools;
use crate::url_pattern::UrlPattern as Address;
use tarsy_core::public_url::PublicUrl;
use tarsy_mask::OwnPattern;

/// Defines the types of texts, each with its word in a schema and its reader.
macro_rules! texts {
    ($($name:ident $form:literal $read:expr;)*) => {
        $(pub(crate) struct $name;

        impl Form for $name {
            fn schema() -> Schema {
                json_schema!({"type": "string", "x-form": $form})
            }
        })*

        /// The reader of a text by the word of its form.
        pub(super) fn reader(form: &str) -> Option<fn(&Field<'_>) -> Option<String>> {
            match form {
                $($form => Some($read),)*
                _ => None,
            }
        }
    };
}

texts! {
    Text "text" |field| field.text();
    File "file" |field| text_of(field, |text| !text.trim().is_empty(), "the path of a file");
    VariableName "variable-name" |field| field.variable_name();
    VariablePattern "variable-pattern" variable_pattern;
    UrlPattern "url-pattern" |field| text_of(
        field,
        |text| Address::parse(text).is_ok(),
        "scheme://host[:port][/path] with http or https, * for any characters",
    );
    HostName "host-name" |field| {
        let name = text_of(field, is_host_name, "a host name without a port")?;
        Some(name.to_ascii_lowercase())
    };
    PublicAddress "public-url" public_url;
    Pattern "pattern" pattern;
    ChainName "agent-chain" |field| field.reference(&field.names().chains);
    AgentName "agent" |field| field.reference(&field.names().agents);
    ProviderName "llm-provider" |field| field.reference(&field.names().providers);
    ServerName "mcp-server" |field| field.reference(&field.names().servers);
    ToolPattern "tool-pattern" tool_pattern;
}

/// A text for which `is_accepted` holds.
fn text_of(field: &Field<'_>, is_accepted: fn(&str) -> bool, accepted: &str) -> Option<String> {
    let text = field.text()?;
    if is_accepted(&text) {
        return Some(text);
    }
    field.expected(accepted);
    None
}

/// A pattern of names of variables. Any other text may be a key itself, so it is not shown.
fn variable_pattern(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
    if !text.is_empty() && text.chars().all(is_accepted) {
        return Some(text);
    }
    field.fault(
        "not a pattern of variables; accepted: a name such as TEAM_*_KEY, * for any characters"
            .to_owned(),
    );
    None
}

fn is_host_name(text: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !text.is_empty() && text.bytes().all(is_accepted)
}

/// A public address. No fault shows a value that may have a password.
fn public_url(field: &Field<'_>) -> Option<String> {
    let text = field.url()?;
    if PublicUrl::parse(&text).is_none() {
        field.expected("a URL such as https://tarsy.example.com");
        return None;
    }
    Some(text)
}

fn pattern(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if let Err(fault) = OwnPattern::new(&text) {
        field.fault(format!("{text:?}; {fault}"));
        return None;
    }
    Some(text)
}

/// A pattern of tools whose server is defined.
pub(crate) fn tool_pattern(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let servers = &field.names().servers;
    let Some(pattern) = Tools::parse(&text) else {
        field.expected("a tool as server.tool, where * stands for any characters: k8s.pods_*");
        return None;
    };
    if !servers.iter().any(|server| pattern.names_server(server)) {
        let defined = if servers.is_empty() {
            "none".to_owned()
        } else {
            servers.join(", ")
        };
        field.fault(format!(
            "{text:?}: there is no MCP server {:?}; defined: {defined}",
            pattern.server()
        ));
    }
    Some(text)
}
