//! Collects the secrets that this process knows, so that the mask hides them in every text.
//!
//! Sources: variables with the name of a secret, passwords in addresses, keys of providers, values that the
//! configuration passes to MCP servers, the section `masking`, and the files of tokens and keys, which are read again
//! while a role runs (`files`). Plain words, numbers, paths and host names are left
//! out unless their name marks them as secret: hiding `production` everywhere would make texts useless.

mod files;

use std::collections::BTreeSet;
use std::sync::LazyLock;

pub use self::files::SecretFiles;
use tarsy_config::{
    Config, McpAddress, McpServer, McpTransport, SecretSource, SourceAuth, Template, process_env,
};
use tarsy_core::approvals::Channel;
use tarsy_llm::token::tokens;
use tarsy_mask::Mask;

use super::connect::Addresses;
use super::redact;

/// A value of this length without blanks counts as a token even if it consists of words.
const MIN_TOKEN_BYTES: usize = 40;

/// A file of `masking.files` that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("masking.files: {0}")]
pub struct Unreadable(#[from] files::Unreadable);

/// A mask for the secrets in the environment of this process and in these addresses.
pub fn of_process(addresses: Option<&Addresses>) -> Mask {
    let mut values = process_values(addresses);
    values.extend(SecretFiles::of_environment().values());
    Mask::new(values)
}

/// A mask as [`of_process`], also for the secrets of a configuration and with its own patterns.
///
/// # Errors
/// When a file of `masking.files` cannot be read, because its secrets would not be masked.
pub fn mask(config: &Config, addresses: Option<&Addresses>) -> Result<Mask, Unreadable> {
    let mut values = process_values(addresses);
    let keys = config
        .llm_providers
        .values()
        .map(|provider| &provider.api_key_env);
    values.extend(
        config
            .masking
            .variables
            .iter()
            .chain(keys)
            .filter_map(|name| process_env(name)),
    );
    for server in config.mcp_servers.values() {
        of_server(server, &mut values);
    }
    for source in config.runbooks.sources() {
        if let Some(SecretSource::Variable(name)) = &source.token {
            values.extend(process_env(name));
        }
    }
    for secret in config
        .notification_routes()
        .values()
        .flat_map(|route| route.kind.secrets())
    {
        if let SecretSource::Variable(name) = secret {
            values.extend(process_env(name));
        }
    }
    for secret in config
        .sources
        .iter()
        .filter_map(|source| source.auth.as_ref())
        .flat_map(SourceAuth::secrets)
    {
        if let SecretSource::Variable(name) = secret {
            values.extend(process_env(name));
        }
    }
    for secret in approval_keys(config) {
        if let SecretSource::Variable(name) = secret {
            values.extend(process_env(&name));
        }
    }
    for file in &config.masking.files {
        values.extend(files::lines(file)?);
    }
    values.extend(SecretFiles::of_config(config).values());
    Ok(Mask::new(values).with_rules(config.masking.rules()))
}

/// The keys with which channels sign decisions, and the key of links.
fn approval_keys(config: &Config) -> impl Iterator<Item = SecretSource> {
    let approvals = &config.approvals;
    Channel::ALL
        .into_iter()
        .filter_map(move |channel| approvals.key(channel))
        .chain(approvals.link_key())
}

fn process_values(addresses: Option<&Addresses>) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            add_named(name, value, &mut values);
            add_passwords(value, &mut values);
        }
    }
    if let Some(addresses) = addresses {
        add_passwords(&addresses.nats_url, &mut values);
        add_passwords(
            addresses.database_url.as_deref().unwrap_or_default(),
            &mut values,
        );
        for secret in addresses
            .nats_credentials
            .login
            .secrets()
            .into_iter()
            .chain(addresses.database_secrets.read())
        {
            add_passwords(&secret, &mut values);
            if !secret.contains("://") {
                values.insert(secret);
            }
        }
        let token = addresses.llm_credentials.token.as_ref();
        values.extend(
            token
                .and_then(|source| tokens(source).ok())
                .unwrap_or_default(),
        );
    }
    values
}

/// Adds the secrets in a server's command line, environment, headers, proxy and token: variables of templates, and
/// values whose names mark them as secret.
fn of_server(server: &McpServer, values: &mut BTreeSet<String>) {
    let (templates, named): (Vec<&Template>, _) = match &server.transport {
        McpTransport::Stdio(program) => {
            let command = std::iter::once(&program.command)
                .chain(&program.args)
                .chain(program.env.values());
            (command.collect(), &program.env)
        }
        McpTransport::Http(address) => {
            values.extend(
                address
                    .token_env
                    .as_ref()
                    .and_then(|name| process_env(name)),
            );
            (
                address.headers.values().chain(&address.proxy).collect(),
                &address.headers,
            )
        }
    };
    for name in templates.into_iter().flat_map(Template::variables) {
        let Some(value) = process_env(name) else {
            continue;
        };
        add_passwords(&value, values);
        if may_be_secret(name, &value) {
            values.insert(value);
        }
    }
    for (name, template) in named {
        if let Ok(value) = template.resolve(&process_env) {
            add_named(name, &value, values);
            add_passwords(&value, values);
        }
    }
    if let McpTransport::Http(McpAddress {
        proxy: Some(proxy), ..
    }) = &server.transport
        && let Ok(address) = proxy.resolve(&process_env)
    {
        add_passwords(&address, values);
    }
}

/// Adds the value if its name marks it as a secret, and if it is no place.
fn add_named(name: &str, value: &str, values: &mut BTreeSet<String>) {
    if is_named_secret(name) && !is_place(value) {
        values.insert(value.to_owned());
    }
}

/// Whether the value of a variable is a secret, by its name or by its form.
pub fn may_be_secret(name: &str, value: &str) -> bool {
    is_named_secret(name) || !is_harmless(value)
}

/// Whether the mask hides a value behind this name.
pub(super) fn is_named_secret(name: &str) -> bool {
    static WITHOUT_VALUES: LazyLock<Mask> = LazyLock::new(Mask::default);
    let line = format!("{name}=a1b2c3d4e5");
    WITHOUT_VALUES.apply(&line) != line
}

/// Whether a value does not look like a secret: words, a number, a path or an address.
fn is_harmless(value: &str) -> bool {
    is_place(value)
        || value.chars().all(|c| c.is_ascii_digit() || c == '.')
        || (value.len() < MIN_TOKEN_BYTES && is_words(value))
}

/// Whether a value is a path, or an address without a user.
fn is_place(value: &str) -> bool {
    value.starts_with(['/', '.', '~']) || (value.contains("://") && !value.contains('@'))
}

/// Whether a value consists of words, as the name of a host does; a port may follow.
fn is_words(value: &str) -> bool {
    let (words, port) = value.rsplit_once(':').unwrap_or((value, "0"));
    port.chars().all(|c| c.is_ascii_digit())
        && words
            .split(['.', '-', '_', ' ', ',', '/', ':'])
            .all(is_word)
}

fn is_word(part: &str) -> bool {
    part.len() <= 16
        && (part.chars().all(char::is_alphabetic)
            || (part.len() <= 4 && part.chars().all(char::is_alphanumeric)))
}

/// Adds the secrets of the addresses in a value, percent-encoded and decoded. A password that equals the name of the
/// user, the host or the database is left out, because the mask would hide that name everywhere.
fn add_passwords(value: &str, values: &mut BTreeSet<String>) {
    for url in value
        .split(',')
        .map(str::trim)
        .filter(|url| url.contains("://") || url.contains("password="))
    {
        for secret in redact::secrets_of(url) {
            let elsewhere = url.replacen(&format!(":{secret}@"), "@", 1);
            let is_name = elsewhere
                .split(|c: char| !c.is_alphanumeric())
                .any(|part| part == secret);
            // A single word before the @ is a token for NATS and a user for a database.
            let is_user = url.starts_with("postgres") && url.contains(&format!("://{secret}@"));
            if !is_user && (!is_name || elsewhere == url) {
                values.extend([secret.to_owned(), percent_decoded(secret)]);
            }
        }
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = if *first == b'%' { after.get(..2) } else { None };
        let decoded = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() {
            after.get(2..).unwrap_or_default()
        } else {
            after
        };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_config::ApprovalKey;

    fn addresses(nats: &str, database: &str) -> Addresses {
        Addresses {
            nats_url: nats.to_owned(),
            database_url: Some(database.to_owned()),
            llm_addr: "127.0.0.1:1".to_owned(),
            llm_credentials: Default::default(),
            nats_credentials: Default::default(),
            database_secrets: Default::default(),
        }
    }

    #[test]
    fn passwords_of_addresses_are_known_encoded_and_decoded() {
        for (url, secrets) in [
            (
                "postgres://app:pa%2Fss-w0rd@db/x",
                vec!["pa%2Fss-w0rd", "pa/ss-w0rd"],
            ),
            ("postgres://app:pa/ss-w0rd@db/x", vec!["pa/ss-w0rd"]),
            (
                "postgres://db/x?user=app&password=s3cret-w0rd",
                vec!["s3cret-w0rd"],
            ),
            (
                "host=db user=app password=w0rd-of-db dbname=x",
                vec!["w0rd-of-db"],
            ),
        ] {
            let mask = of_process(Some(&addresses(
                "nats://n4ts-t0ken@a:1,nats://u:other-w0rd@b:2",
                url,
            )));
            for secret in secrets.iter().chain(&["n4ts-t0ken", "other-w0rd"]) {
                assert_eq!(
                    mask.apply(&format!("saw {secret} there")),
                    "saw [masked] there",
                    "{url}"
                );
            }
            assert_eq!(mask.apply("app on db at b:2"), "app on db at b:2");
        }
        let mask = of_process(Some(&addresses(
            "nats://a",
            "postgres://postgres:postgres@h/d",
        )));
        assert_eq!(
            mask.apply("the pod postgres-0"),
            "the pod postgres-0",
            "a name that is its own password"
        );
        let mask = of_process(Some(&addresses(
            "nats://a",
            "postgres://checkout-service@h/d",
        )));
        assert_eq!(
            mask.apply("checkout-service is down"),
            "checkout-service is down",
            "a user without a password"
        );
    }

    #[test]
    fn keys_of_channels_and_of_links_are_masked() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, key: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, key).unwrap();
            path.to_str().map(str::to_owned)
        };
        let mut config = Config::parse("tarsy.yaml", "", &|_| None).unwrap();
        config.approvals.keys.web = Some(ApprovalKey {
            secret_file: file("web", "k3y-of-web"),
            ..ApprovalKey::default()
        });
        config.approvals.link_key_file = file("link", "k3y-of-links");
        let mask = mask(&config, None).unwrap();
        assert_eq!(
            mask.apply("saw k3y-of-web and k3y-of-links"),
            "saw [masked] and [masked]"
        );
    }

    #[test]
    fn a_value_is_harmless_only_if_it_consists_of_words_numbers_or_an_address() {
        for harmless in [
            "production",
            "eu-west-1",
            "kube-system",
            "/etc/tarsy/kubeconfig",
            "https://grafana.example/api",
            "db.internal:5432",
            "10.0.0.1",
            "8080",
        ] {
            assert!(is_harmless(harmless), "{harmless}");
        }
        for secret in [
            "hunter2",
            "a8f5f167f44f4964e6c998dee827110c",
            "https://u:p@h/",
            "correct9horse",
            "Tr0ub4dor&3",
            "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz",
        ] {
            assert!(!is_harmless(secret), "{secret}");
        }
    }
}
