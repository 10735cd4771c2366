//! `llm_service`: who may call the LLM service, which keys and addresses a request may name, and its limits.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map as Object, json};

use crate::declared::forms::{As, Bytes, Secs};
use crate::declared::texts::{File, UrlPattern as UrlPatternForm, VariablePattern};
use crate::url_pattern::UrlPattern;
use crate::write::is_default;
use tarsy_core::vocabulary::provider;

/// The settings of `tarsy llm-service`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct LlmService {
    /// Patterns of variables that requests may use as keys, in addition to those of known providers.
    #[serde(
        with = "As::<Vec<VariablePattern>>",
        skip_serializing_if = "is_default"
    )]
    pub allow_key_env: Vec<String>,
    /// Patterns of addresses that requests may name, in addition to those of known providers.
    #[serde(with = "As::<Vec<UrlPatternForm>>", skip_serializing_if = "is_default")]
    pub allow_base_url: Vec<UrlPattern>,
    /// The file with the bearer tokens that clients may send, one on each line.
    #[serde(with = "As::<File>", skip_serializing_if = "is_default")]
    pub token_file: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub tls: Option<LlmServiceTls>,
    /// The number of calls of each provider that may run at the same time.
    #[schemars(schema_with = "concurrency")]
    pub concurrency: Concurrency,
    /// The longest time that running answers may continue after a stop signal.
    #[serde(with = "As::<Secs<0, 3_600>>")]
    pub drain_timeout: Duration,
    /// The size of the largest request.
    #[serde(with = "Bytes::<MIB, { 1024 * MIB }>")]
    pub max_request_bytes: u64,
    /// The number of messages that a request may have.
    #[schemars(range(min = 1, max = MAX_ITEMS))]
    pub max_messages: u32,
    /// The number of tools that a request may have.
    #[schemars(range(min = 1, max = MAX_ITEMS))]
    pub max_tools: u32,
}

/// The files of TLS, in PEM.
#[derive(Clone, Debug, PartialEq, Default, Eq, Deserialize, Serialize, JsonSchema)]
pub struct LlmServiceTls {
    /// The certificate of the service, followed by those of its issuers.
    #[serde(with = "As::<File>")]
    #[schemars(extend("x-required" = PEM_FILE))]
    pub certificate: String,
    /// The private key of the certificate.
    #[serde(with = "As::<File>")]
    #[schemars(extend("x-required" = PEM_FILE))]
    pub key: String,
    /// The authorities whose certificates clients have to show; absent: clients need none.
    #[serde(default)]
    #[serde(with = "As::<File>", skip_serializing_if = "is_default")]
    pub client_ca: Option<String>,
}

/// The limits of calls that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Concurrency {
    /// The limit of a provider that has none of its own.
    pub default: u32,
    /// The limits by the word in `llm_providers.<name>.provider`.
    #[serde(flatten)]
    pub by_provider: BTreeMap<String, u32>,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self {
            default: 256,
            by_provider: BTreeMap::new(),
        }
    }
}

impl Default for LlmService {
    fn default() -> Self {
        Self {
            allow_key_env: Vec::new(),
            allow_base_url: Vec::new(),
            token_file: None,
            tls: None,
            concurrency: Concurrency::default(),
            drain_timeout: Duration::from_secs(30),
            max_request_bytes: 64 * MIB,
            max_messages: 10_000,
            max_tools: 1_024,
        }
    }
}

const MIB: u64 = 1024 * 1024;
const MAX_CALLS: u32 = 65_536;
const MAX_ITEMS: u32 = 1_000_000;

impl Concurrency {
    /// The limit of a provider.
    pub fn for_provider(&self, provider: &str) -> u32 {
        self.by_provider
            .get(provider)
            .copied()
            .unwrap_or(self.default)
    }
}

const PEM_FILE: &str = "the path of a PEM file";

/// A limit for each provider that may have one.
fn concurrency(_: &mut SchemaGenerator) -> Schema {
    let keys = std::iter::once("default").chain(provider::counted().map(|provider| provider.name));
    let properties = keys.map(|key| {
        let whose = if key == "default" {
            "a provider without its own"
        } else {
            key
        };
        let description = format!("The limit of {whose}.");
        let limit = json!({"type": "integer", "minimum": 1, "maximum": MAX_CALLS, "description": description});
        (key.to_owned(), limit)
    });
    json_schema!({"type": "object", "properties": properties.collect::<Object<_, _>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn each_fault_names_its_key_and_shows_no_key_of_a_provider() {
        let text = "llm_service:\n  allow_key_env: [TEAM_*, sk-12345]\n  allow_base_url: [llm.example.com]\n  tls: {key: ''}\n  \
                    concurrency: {gogle: 1, openai: 0}\n  drain_timeout: 2h\n  max_request_bytes: 1KiB\n  max_tool: 1\n";
        let faults = Config::parse("f", text, &none).unwrap_err().faults;
        let shown: Vec<String> = faults
            .iter()
            .map(|fault| format!("{} {} {}", fault.line, fault.key, fault.problem))
            .collect();
        let [
            key,
            url,
            certificate,
            tls_key,
            limit,
            provider,
            drain,
            size,
            unknown,
        ] = shown.as_slice()
        else {
            panic!("{shown:#?}")
        };
        assert_eq!(
            key,
            "2 llm_service.allow_key_env[1] not a pattern of variables; accepted: a name such as TEAM_*_KEY, * for any \
             characters"
        );
        assert_eq!(
            url,
            "3 llm_service.allow_base_url[0] \"llm.example.com\"; accepted: scheme://host[:port][/path] with http or https, \
             * for any characters"
        );
        assert_eq!(
            certificate,
            "4 llm_service.tls.certificate missing; accepted: the path of a PEM file"
        );
        assert_eq!(
            tls_key,
            "4 llm_service.tls.key \"\"; accepted: the path of a file"
        );
        assert_eq!(
            limit,
            "5 llm_service.concurrency.openai 0; accepted: a whole number (1 to 65536)"
        );
        assert!(provider.starts_with(
            "5 llm_service.concurrency.gogle unknown key; accepted: default, google, openai"
        ));
        assert!(provider.ends_with("(did you mean google?)"), "{provider}");
        assert!(
            drain.starts_with("6 llm_service.drain_timeout \"2h\"; accepted: a duration"),
            "{drain}"
        );
        assert!(
            size.starts_with("7 llm_service.max_request_bytes \"1KiB\"; accepted: a size"),
            "{size}"
        );
        assert!(unknown.ends_with("(did you mean max_tools?)"), "{unknown}");
    }

    #[test]
    fn the_service_reads_its_own_section_and_ignores_faults_of_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tarsy.yaml");
        let load = |text: &str| {
            std::fs::write(&file, text).unwrap();
            LlmService::load(Some(&file), &none)
        };
        let others = "mcp_servers: {a: {command: '${NOT_SET}'}}\nwroker: {}\n";
        let read = load(&format!(
            "{others}llm_service: {{concurrency: {{google: 3}}}}\n"
        ))
        .unwrap();
        assert_eq!(
            (
                read.concurrency.for_provider("google"),
                read.concurrency.for_provider("openai")
            ),
            (3, 256)
        );
        assert_eq!(load(others), Ok(LlmService::default()));
        assert_eq!(LlmService::load(None, &none), Ok(LlmService::default()));
        let faults = load(&format!("{others}llm_service: {{max_tools: 0}}\n")).unwrap_err();
        assert_eq!(faults.faults.len(), 1);
        assert!(
            faults.to_string().contains("llm_service.max_tools"),
            "{faults}"
        );
        std::fs::remove_file(&file).unwrap();
        assert!(LlmService::load(Some(&file), &none).is_err());
    }
}
