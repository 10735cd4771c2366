//! The effective configuration as people without a shell may read it: as `tarsy config show`, without secrets.
//!
//! `config show` prints what stands in the file, because its reader can read the file; but its output is copied into
//! tickets, so [`without_literal_secrets`] and [`without_users`] take out a secret that stands there itself. The text
//! of [`config()`] goes over the broker to a page, so more is taken out of it: values of headers and of variables for
//! tool servers, and all that the mask knows or recognises.

use std::path::Path;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use super::secrets::{is_named_secret, may_be_secret};
use tarsy_config::{Config, McpTransport, Resolved, Template, process_env, show};
use tarsy_mask::Mask;
use tarsy_reports::system::ShownConfig;

/// The text in the place of a value.
const REDACTED: &str = "[redacted]";
/// Few digits suffice to compare some workers.
const HASH_DIGITS: usize = 12;

/// The configuration of this process without secrets.
///
/// # Errors
/// When the file cannot be read any more.
pub fn config(config: &Config, file: Option<&Path>, mask: &Mask) -> anyhow::Result<ShownConfig> {
    let mut resolved = Resolved::default();
    let written = file.map(std::fs::read_to_string).transpose()?;
    resolved.add(
        &Template::new(written.unwrap_or_default()),
        &process_env,
        // The path of an address may be its credential.
        |name, value| may_be_secret(name, value) || value.contains("://"),
    );
    let text = resolved.unresolved(&show(&without_values(config)));
    let text = without_users(&mask.apply(&text));
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(ShownConfig {
        bytes: u64::try_from(text.len())?,
        hash: hash.chars().take(HASH_DIGITS).collect(),
        text: Some(text),
    })
}

/// The configuration without secrets that stand in the file where a reference belongs: in the values of the requests of
/// destinations, and in arguments, headers and variables of tool servers. A value of a variable is left, which
/// `resolved` replaces in the text.
pub fn without_literal_secrets(config: &Config, resolved: &Resolved) -> Config {
    let mut config = config.clone();
    let hidden = |name: &str, value: &str| {
        is_literal_secret(name, &resolved.unresolved(value)).then(|| REDACTED.to_owned())
    };
    for destination in config.destinations.values_mut() {
        destination.replace_texts(&hidden);
    }
    for server in config.mcp_servers.values_mut() {
        let values = match &mut server.transport {
            McpTransport::Stdio(program) => {
                redact_arguments(&mut program.args, is_literal_secret);
                &mut program.env
            }
            McpTransport::Http(address) => &mut address.headers,
        };
        for (name, value) in values {
            if let Some(shown) = hidden(name, value.as_str()) {
                *value = Template::new(shown);
            }
        }
    }
    config
}

/// Recognises a value that holds a secret: a text that the mask recognises, or any behind the name of a secret, unless
/// it only refers to one.
fn is_literal_secret(name: &str, value: &str) -> bool {
    static FORMATS: LazyLock<Mask> = LazyLock::new(Mask::default);
    FORMATS.apply(value) != value || (is_named_secret(name) && !is_reference(value))
}

/// Recognises a reference without a text beside it: `${NAME}`, `${NAME:-}` or `{secret}`, also behind the word of a
/// scheme, as in `Bearer ${NAME}`.
fn is_reference(value: &str) -> bool {
    let parts = value.split_once(' ');
    let parts = parts.filter(|(scheme, _)| scheme.chars().all(char::is_alphabetic));
    let rest = parts.map_or(value, |(_, rest)| rest);
    let name = rest
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    let name = name.map(|name| name.strip_suffix(":-").unwrap_or(name));
    rest == "{secret}" || name.is_some_and(|name| !name.contains(['$', '{', '}', ':']))
}

/// The configuration without the values of headers and variables of tool servers, and of headers of destinations.
fn without_values(config: &Config) -> Config {
    let mut config = config.clone();
    for server in config.mcp_servers.values_mut() {
        let values = match &mut server.transport {
            McpTransport::Stdio(program) => {
                redact_arguments(&mut program.args, |name, _| is_named_secret(name));
                &mut program.env
            }
            McpTransport::Http(address) => &mut address.headers,
        };
        for value in values.values_mut() {
            *value = Template::new(REDACTED);
        }
    }
    for destination in config.destinations.values_mut() {
        destination.hide_values(REDACTED);
    }
    config
}

/// Takes out each argument for which `is_secret` holds, a function of the name of its option and the value:
/// `--token t`, `--token=t`, and those without an option.
fn redact_arguments(arguments: &mut [Template], is_secret: impl Fn(&str, &str) -> bool) {
    let mut option: Option<String> = None;
    for argument in arguments {
        let text = argument.as_str().to_owned();
        // A secret may begin with one dash.
        if let Some(name) = option.take()
            && !text.starts_with("--")
        {
            if is_secret(&name, &text) {
                *argument = Template::new(REDACTED);
            }
            continue;
        }
        if !text.starts_with('-') {
            if is_secret("", &text) {
                *argument = Template::new(REDACTED);
            }
            continue;
        }
        let name = text.trim_start_matches('-');
        match text.split_once('=') {
            Some((start, value)) => {
                let name = start.trim_start_matches('-');
                if is_secret(name, value) {
                    *argument = Template::new(format!("{start}={REDACTED}"));
                }
            }
            None if is_named_secret(name) => option = Some(name.to_owned()),
            None => {}
        }
    }
}

/// The text with `***` in the place of the user and the password of each address.
pub fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("://");
        let end = part
            .find(|c: char| c.is_whitespace() || c == '"')
            .unwrap_or(part.len());
        let (address, rest) = part.split_at(end);
        match address.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str("***@");
                out.push_str(host);
            }
            None => out.push_str(address),
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_configuration_is_shown() {
        let text = r#"
mcp_servers:
  k8s:
    url: https://tools.example.com/mcp
    headers: {Authorization: "Bearer canary-2", X-Team: canary-3}
    proxy: http://ada:canary-4@proxy:3128
  logs:
    command: logs-mcp
    args: ["--token", "canary-5", "--password", "-canary-8", "--verbose", "--index=app", "--token=canary-11"]
    env: {API_KEY: canary-6, PLAIN: canary-7}
llm_providers:
  own: {provider: openai, model: m, api_key_env: OWN_KEY, base_url: "https://models.example.com/v1"}
destinations:
  desk: {base: 'https://desk.example.com', post: /notes, with: {user: canary-9}, headers: {X-Key: canary-10}}
"#;
        let parsed = Config::parse("tarsy.yaml", text, &|_| Some("value".to_owned())).unwrap();
        let shown = config(&parsed, None, &Mask::default()).unwrap();
        let text = shown.text.unwrap();
        assert!(!text.contains("canary"), "{text}");
        for kept in [
            "tools.example.com/mcp",
            "***@proxy:3128",
            "--index=app",
            "logs-mcp",
            "X-Team",
            "PLAIN",
            "OWN_KEY",
            "models.example.com",
        ] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
        assert_eq!(shown.hash.len(), HASH_DIGITS);
        let again = config(&parsed, None, &Mask::default()).unwrap();
        assert_eq!((again.hash, again.bytes), (shown.hash, shown.bytes));
    }

    #[test]
    fn a_secret_that_stands_in_the_file_is_not_shown_and_everything_else_is() {
        let text = r#"
mcp_servers:
  k8s:
    url: https://tools.example.com/mcp
    headers: {Authorization: "Bearer canary-1", X-Api-Key: "${K8S_TOKEN}", X-Team: payments, X-Token: "canary-6-${K8S_TOKEN}"}
    proxy: http://ada:canary-7@proxy:3128
  logs:
    command: logs-mcp
    args: [--token, canary-8, --token=canary-9, --password, "${LOGS_PASSWORD}", "--api-key=${LOGS_KEY:-}", --index, app, ghp_16C7e42F292c6912E7710c838347Ae178B4a]
    env: {API_KEY: canary-2, PLAIN: plain-value, LOGS_TOKEN: "${LOGS_TOKEN:-canary-10}"}
destinations:
  desk:
    base: 'https://desk.example.com'
    post: '/notes'
    with: {project: shop, password: canary-3}
    headers: {Authorization: 'Bearer canary-4', X-Api-Key: '${DESK_TOKEN}', X-Client: tarsy}
    json: {text: '{title}', auth: {token: canary-5}, tags: [one, ghp_16C7e42F292c6912E7710c838347Ae178B4a]}
  other:
    base: 'https://other.example.com'
    post: '/notes'
    secret_env: OTHER_TOKEN
    headers: {Authorization: 'Bearer {secret}'}
    json: {text: '{title}'}
"#;
        let env = |name: &str| Some(format!("value-of-{name}-3f9a1c"));
        let parsed = Config::parse("tarsy.yaml", text, &env).unwrap();
        let mut resolved = Resolved::default();
        resolved.add(&Template::new(text), &env, may_be_secret);
        let shown = show(&without_literal_secrets(&parsed, &resolved));
        let shown = without_users(&resolved.unresolved(&shown));
        for secret in ["canary", "ghp_16C7", "value-of-"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
        for kept in [
            "${K8S_TOKEN}",
            "${DESK_TOKEN}",
            "payments",
            "plain-value",
            "X-Client: tarsy",
            "shop",
            "{title}",
            "one",
            "Bearer {secret}",
            "OTHER_TOKEN",
            "${LOGS_PASSWORD}",
            "--api-key=${LOGS_KEY:-}",
            "--index",
            "http://***@proxy:3128",
        ] {
            assert!(shown.contains(kept), "{kept} in {shown}");
        }
        assert_eq!(shown.matches(REDACTED).count(), 11, "{shown}");
    }

    #[test]
    fn users_and_passwords_are_taken_out_of_every_address() {
        for (text, expected) in [
            ("url: https://a:b@h/x", "url: https://***@h/x"),
            ("https://a:b@c@h and http://h", "https://***@h and http://h"),
            ("\"x://t@h\", m@example.com", "\"x://***@h\", m@example.com"),
            ("https://h/a@b", "https://***@b"),
        ] {
            assert_eq!(without_users(text), expected);
        }
    }
}
