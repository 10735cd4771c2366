//! The effective configuration as people without a shell may read it: as `tarsy config show`, without secrets.
//!
//! `config show` prints what stands in the file, because its reader can read the file. This text goes over the broker
//! to a page, so more is taken out of it: values of headers and of variables for tool servers, users and passwords in
//! addresses, and all that the mask knows or recognises.

use std::path::Path;

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

/// The configuration without the values of headers and variables of tool servers, and of headers of destinations.
fn without_values(config: &Config) -> Config {
    let mut config = config.clone();
    for server in config.mcp_servers.values_mut() {
        let values = match &mut server.transport {
            McpTransport::Stdio(program) => {
                redact_arguments(&mut program.args);
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

/// Takes out each argument that follows an option with the name of a secret: `--token t`.
fn redact_arguments(arguments: &mut [Template]) {
    let mut is_secret = false;
    for argument in arguments {
        let option = argument.as_str().trim_start_matches('-').to_owned();
        // A secret may begin with one dash.
        if is_secret && !argument.as_str().starts_with("--") {
            *argument = Template::new(REDACTED);
            is_secret = false;
            continue;
        }
        is_secret = argument.as_str().starts_with('-') && is_named_secret(&option);
    }
}

/// The text with `***` in the place of the user and the password of each address.
fn without_users(text: &str) -> String {
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
    args: ["--token", "canary-5", "--password", "-canary-8", "--verbose", "--index=app"]
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
