//! The files with secrets of this process, which may change while it runs: those that variables and the configuration
//! name. Each value stays masked when a newer one replaces it.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{add_named, add_passwords, approval_keys, is_harmless, is_named_secret};
use tarsy_config::{
    Config, McpServer, McpTransport, SecretSource, SlackApp, SourceAuth, process_env,
};
use tarsy_mask::Mask;

/// A larger file is not a list of secrets.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// The variable with the files of the clients of Kubernetes, separated by colons.
const KUBECONFIG: &str = "KUBECONFIG";

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct Unreadable {
    file: String,
    reason: String,
}

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    /// Each line is a secret, or the content is a document with secrets.
    Secrets,
    /// An address that may have a password.
    Address,
}

/// The files with secrets that this process knows.
#[derive(Clone, Debug, Default)]
pub struct SecretFiles(BTreeSet<(String, Content)>);

impl SecretFiles {
    /// The files of variables: `<NAME>_FILE` of a name that marks a secret or an address, a variable with such a name
    /// whose value is a path, and `KUBECONFIG`.
    pub fn of_environment() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        Self::of_variables(variables)
    }

    fn of_variables(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut files = Self::default();
        for (name, value) in variables {
            let base = name.strip_suffix("_FILE");
            if name == KUBECONFIG {
                files.add_all(value.split(':'));
            } else if base.is_some_and(|base| base.ends_with("URL") || base.ends_with("DSN")) {
                files.0.insert((value, Content::Address));
            } else if is_secret(base.unwrap_or(&name)) && (base.is_some() || value.starts_with('/'))
            {
                files.add_all([value.as_str()]);
            }
        }
        files
    }

    /// The files of the environment and of a configuration: of keys of providers, `masking.variables`, `masking.files`,
    /// MCP servers, hosts of runbooks, routes of notifications, sources of alerts and decisions of people.
    pub fn of_config(config: &Config) -> Self {
        let mut files = Self::of_environment();
        files.add_all(config.masking.files.iter().map(String::as_str));
        let keys = config
            .llm_providers
            .values()
            .map(|provider| &provider.api_key_env);
        for name in keys
            .chain(&config.masking.variables)
            .filter(|name| !name.is_empty())
        {
            files.add_all(process_env(&format!("{name}_FILE")).as_deref());
        }
        for server in config.mcp_servers.values() {
            files.add_server(server);
        }
        for secret in config
            .notification_routes()
            .values()
            .flat_map(|route| route.kind.secrets())
        {
            if let SecretSource::File(file) = secret {
                files.add_all([file.as_str()]);
            }
        }
        for secret in config
            .sources
            .iter()
            .filter_map(|source| source.auth.as_ref())
            .flat_map(SourceAuth::secrets)
        {
            match secret {
                SecretSource::File(file) => files.add_all([file.as_str()]),
                SecretSource::Variable(name) => {
                    files.add_all(process_env(&format!("{name}_FILE")).as_deref())
                }
            }
        }
        let of_slack = config.receive.slack.iter().flat_map(SlackApp::secrets);
        for secret in approval_keys(config).chain(of_slack) {
            match secret {
                SecretSource::File(file) => files.add_all([file.as_str()]),
                SecretSource::Variable(name) => {
                    files.add_all(process_env(&format!("{name}_FILE")).as_deref())
                }
            }
        }
        for source in config.runbooks.sources() {
            if let Some(SecretSource::File(file)) = &source.token {
                files.add_all([file.as_str()]);
            }
        }
        files
    }

    /// The files of a server: its token, and the kubeconfig that its program gets.
    fn add_server(&mut self, server: &McpServer) {
        match &server.transport {
            McpTransport::Http(address) => self.add_all(address.token_file.as_deref()),
            McpTransport::Stdio(program) => {
                let resolve =
                    |template: &tarsy_config::Template| template.resolve(&process_env).ok();
                let variable = program
                    .env
                    .get(KUBECONFIG)
                    .and_then(resolve)
                    .unwrap_or_default();
                self.add_all(variable.split(':'));
                let args: Vec<String> = program.args.iter().filter_map(resolve).collect();
                let joined = args
                    .iter()
                    .filter_map(|arg| arg.strip_prefix("--kubeconfig="));
                let behind = args
                    .iter()
                    .zip(args.iter().skip(1))
                    .filter(|(flag, _)| *flag == "--kubeconfig");
                self.add_all(joined.chain(behind.map(|(_, file)| file.as_str())));
            }
        }
    }

    /// Adds a file of secrets, too.
    pub fn and(mut self, file: Option<&str>) -> Self {
        self.add_all(file);
        self
    }

    fn add_all<'a>(&mut self, files: impl IntoIterator<Item = &'a str>) {
        let named = files.into_iter().filter(|file| !file.is_empty());
        self.0
            .extend(named.map(|file| (file.to_owned(), Content::Secrets)));
    }

    /// The secrets in the files that can be read. The part that uses a file reports that it cannot be read.
    pub fn values(&self) -> BTreeSet<String> {
        self.0
            .iter()
            .filter_map(|(file, content)| values(file, *content).ok())
            .flatten()
            .collect()
    }

    /// Reads the files again until the guard is dropped, and adds the secrets of changed ones to the mask. The parts
    /// that use a token add it when they read it; this covers the files that other programs read.
    pub fn watch(self, mask: Mask) -> DropGuard {
        let end = CancellationToken::new();
        tokio::spawn(end.clone().run_until_cancelled_owned(self.keep_up(mask)));
        end.drop_guard()
    }

    async fn keep_up(self, mask: Mask) {
        let mut seen = Vec::new();
        loop {
            let files = self.clone();
            let mask = mask.clone();
            let read = tokio::task::spawn_blocking(move || {
                let now: Vec<_> = files.0.iter().map(|(file, _)| version(file)).collect();
                if now != seen {
                    mask.learn(files.values());
                }
                now
            });
            // If a read panics, the files are read again.
            seen = read.await.unwrap_or_default();
            tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        }
    }
}

/// Whether the name marks a secret; the seed of an nkey is one.
fn is_secret(name: &str) -> bool {
    is_named_secret(name) || name.ends_with("NKEY")
}

/// The time of the last change and the size of a file.
fn version(file: &str) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn values(file: &str, content: Content) -> Result<Vec<String>, Unreadable> {
    match content {
        Content::Secrets => lines(file),
        Content::Address => {
            let mut passwords = BTreeSet::new();
            add_passwords(text(file)?.trim(), &mut passwords);
            Ok(passwords.into_iter().collect())
        }
    }
}

fn text(file: &str) -> Result<String, Unreadable> {
    let unreadable = |reason: String| Unreadable {
        file: file.to_owned(),
        reason,
    };
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("is no file".to_owned()));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(unreadable(format!(
            "{} bytes; at most {MAX_FILE_BYTES} are read",
            metadata.len()
        )));
    }
    let bytes = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The secrets in a file. Of JSON and of lines `key: value`: the values of keys that name a secret, and those
/// of other keys in such lines that look like one. Otherwise the whole content and each of its lines, trimmed.
pub(super) fn lines(file: &str) -> Result<Vec<String>, Unreadable> {
    let text = text(file)?;
    let mut values = BTreeSet::new();
    if let Ok(document @ (Value::Object(_) | Value::Array(_))) =
        serde_json::from_str::<Value>(&text)
    {
        add_document("", &document, &mut values);
        return Ok(values.into_iter().collect());
    }
    let mut is_document = false;
    // The lines around a key are the same in every key file.
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("-----"))
    {
        match key_and_value(line) {
            Some((key, value)) => {
                is_document = true;
                add_value(key, value, &mut values);
            }
            None => _ = values.insert(line.to_owned()),
        }
    }
    if !is_document {
        values.insert(text.trim().to_owned());
    }
    values.remove("");
    Ok(values.into_iter().collect())
}

/// `key: value` and `- key: value`.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim_start_matches("- ").split_once(':')?;
    let is_key = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    let separated = value.is_empty() || value.starts_with(' ');
    (is_key && separated).then(|| (key, value.trim().trim_matches(['"', '\''])))
}

fn add_value(key: &str, value: &str, values: &mut BTreeSet<String>) {
    add_named(key, value, values);
    if !is_harmless(value) {
        values.insert(value.to_owned());
    }
}

/// Adds the texts of keys that name a secret, whole and line by line.
fn add_document(key: &str, value: &Value, values: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| add_document(key, value, values)),
        Value::Array(items) => items
            .iter()
            .for_each(|item| add_document(key, item, values)),
        Value::String(text) if is_named_secret(key) => {
            let lines = text.lines().filter(|line| !line.starts_with("-----"));
            values.extend(
                lines
                    .chain([text.as_str()])
                    .map(|line| line.trim().to_owned()),
            );
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(text: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keys");
        std::fs::write(&file, text).unwrap();
        lines(file.to_str().unwrap()).unwrap()
    }

    #[test]
    fn a_file_of_secrets_is_masked_as_a_whole_and_line_by_line() {
        let key = "-----BEGIN KEY-----\n first-l1ne \nsecond-l1ne\n-----END KEY-----\n\n";
        let mask = Mask::new(learned(key));
        assert_eq!(
            mask.apply("a second-l1ne b first-l1ne"),
            "a [masked] b [masked]"
        );
        assert_eq!(mask.apply("-----BEGIN KEY----- x"), "-----BEGIN KEY----- x");
        let missing =
            crate::process::secrets::Unreadable::from(lines("/no/such/file").unwrap_err())
                .to_string();
        assert!(
            missing.starts_with("masking.files: /no/such/file: "),
            "{missing}"
        );
        assert!(lines("/").unwrap_err().to_string().contains("is no file"));
    }

    #[test]
    fn of_a_document_only_the_secret_values_are_masked() {
        let kubeconfig = "apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    token: t0ken-of-admin\n    \
                          client-key-data: \"a2V5LW9mLWFkbWlu\"\n";
        assert_eq!(learned(kubeconfig), ["a2V5LW9mLWFkbWlu", "t0ken-of-admin"]);
        let key = r#"{"type": "service_account", "project_id": "shop-1234",
            "private_key": "-----BEGIN PRIVATE KEY-----\nTUlJRXZn\n-----END PRIVATE KEY-----\n"}"#;
        let found = learned(key);
        assert_eq!(found.len(), 2);
        assert!(found.contains(&"TUlJRXZn".to_owned()), "{found:?}");
    }

    #[test]
    fn variables_name_the_files_with_secrets() {
        let variables = [
            ("NATS_TOKEN_FILE", "/a"),
            ("DATABASE_URL_FILE", "/b"),
            ("TARSY_LLM_CERT_FILE", "/no"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/c"),
            ("API_TOKEN", "t0ken"),
            ("KUBECONFIG", "/d:/e"),
            ("SSL_CERT_FILE", "/no"),
            ("NATS_NKEY_FILE", "/f"),
            ("NATS_CREDS_FILE", "/g"),
        ];
        let files = SecretFiles::of_variables(
            variables
                .into_iter()
                .map(|(name, file)| (name.to_owned(), file.to_owned())),
        );
        let named: Vec<&str> = files.0.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(named, ["/a", "/b", "/c", "/d", "/e", "/f", "/g"]);
    }

    #[tokio::test]
    async fn a_file_that_changes_is_masked_before_and_after() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "old-t0ken").unwrap();
        let files = SecretFiles::default().and(file.to_str());
        let mask = Mask::new(files.values());
        let _watch = files.watch(mask.clone());
        std::fs::write(&file, "a-new-t0ken").unwrap();
        while mask.apply("a-new-t0ken") != "[masked]" {
            tokio::time::sleep(Duration::from_millis(20)).await; // the watch reads in the background
        }
        assert_eq!(mask.apply("old-t0ken"), "[masked]");
    }
}
