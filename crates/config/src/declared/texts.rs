//! Texts with a meaning of their own: the type that a key names, and the reader that reports a text of another form.

use schemars::{Schema, json_schema};

use super::forms::Form;
use crate::read::reader::Field;
use crate::tool_pattern::ToolPattern as Tools;
use crate::url_pattern::UrlPattern as Address;
use tarsy_core::public_url::PublicUrl;
use tarsy_core::routing::Matcher;
use tarsy_core::runbook::RunbookHost;
use tarsy_core::skills::is_name;
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
    Url "url" |field| field.url();
    Project "project" |field| text_of(field, is_plain_name, PROJECT);
    Location "location" |field| text_of(field, is_plain_name, LOCATION);
    Templated "template" |field| Some(field.template()?.as_str().to_owned());
    HeaderValue "header-value" header_value;
    Proxy "proxy" proxy;
    RunbookHostName "runbook-host" |field| text_of(field, |text| RunbookHost::parse(text).is_some(), RUNBOOK_HOST);
    RouteName "route-name" |field| text_of(field, is_route_name, "a name of at most 40 letters, digits, - and _");
    RouteMatcher "matcher" matcher;
    Reason "reason" |field| text_of(field, is_reason, "one line of at most 120 characters");
    SkillName "skill-name" |field| text_of(field, is_name, SKILL_NAME);
    SkillPattern "skill-pattern" |field| text_of(field, is_skill_pattern, SKILL_PATTERN);
    ChainName "agent-chain" |field| field.reference(&field.names().chains);
    AgentName "agent" |field| field.reference(&field.names().agents);
    ProviderName "llm-provider" |field| field.reference(&field.names().providers);
    ServerName "mcp-server" |field| field.reference(&field.names().servers);
    ToolPattern "tool-pattern" tool_pattern;
}

/// The words of what the key `project` accepts.
pub(crate) const PROJECT: &str = "the id of a project of Google Cloud, such as my-project-1";
const LOCATION: &str = "global, or a region such as europe-west4";
const RUNBOOK_HOST: &str =
    "a host such as runbooks.example.com, wiki.example.com:8443, *.example.com, without a scheme";
const SKILL_NAME: &str = "the name of a skill: 1 to 64 of a-z, 0-9 and -";
const SKILL_PATTERN: &str = "the name of a skill, where * stands for any characters: pg-*";
const MAX_PLAIN_NAME_BYTES: usize = 100;
const MAX_ROUTE_NAME_CHARS: usize = 40;
const MAX_REASON_CHARS: usize = 120;

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
    let is_pattern = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '*');
    if is_pattern && !text.is_empty() {
        return Some(text);
    }
    field.fault(
        "not a pattern of variables; accepted: a name such as TEAM_*_KEY, * for any characters"
            .to_owned(),
    );
    None
}

/// A name that can be a part of an address. The id of an old project begins with a domain: `example.com:my-project`.
fn is_plain_name(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
    });
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    begins && is_plain && text.len() <= MAX_PLAIN_NAME_BYTES
}

fn is_skill_pattern(text: &str) -> bool {
    is_name(&text.replace('*', "-"))
}

fn is_route_name(text: &str) -> bool {
    let is_name = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_name && (1..=MAX_ROUTE_NAME_CHARS).contains(&text.len())
}

fn is_reason(text: &str) -> bool {
    let is_short = text.chars().count() <= MAX_REASON_CHARS;
    is_short && !text.trim().is_empty() && !text.contains(char::is_control)
}

fn matcher(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if let Err(fault) = Matcher::parse(&text) {
        field.fault(format!("{text:?}: {fault}"));
        return None;
    }
    Some(text)
}

/// The value of a header, unresolved. No fault shows it, because it may be a secret.
fn header_value(field: &Field<'_>) -> Option<String> {
    let value = field.text()?;
    if value.chars().any(|c| !(c.is_ascii_graphic() || c == ' ')) {
        field.fault(
            "not the value of a header; accepted: visible ASCII characters and blanks".to_owned(),
        );
    }
    Some(field.template()?.as_str().to_owned())
}

/// The address of a proxy, unresolved. Its fault shows no value, because it may contain a password.
fn proxy(field: &Field<'_>) -> Option<String> {
    let address = field.text()?;
    if address.starts_with("http://") || address.starts_with("https://") {
        return Some(field.template()?.as_str().to_owned());
    }
    field.fault("not the address of a proxy; accepted: http://… or https://…".to_owned());
    None
}

fn is_host_name(text: &str) -> bool {
    let is_name = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    is_name && !text.is_empty()
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
fn tool_pattern(field: &Field<'_>) -> Option<String> {
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
