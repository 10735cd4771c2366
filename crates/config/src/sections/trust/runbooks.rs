//! `runbooks`: the hosts whose runbooks are fetched, and the bearer tokens that they get.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::As;
use crate::declared::texts::{RouteMatcher, RunbookHostName, SkillName, Text, Url, VariableName};
use crate::read::reader::Field;
use crate::secret::SecretSource;
use crate::write::is_default;
use tarsy_core::routing::{Facts, Matcher};
use tarsy_core::runbook::{RunbookHost, is_listed};

/// The words of what the key `match` accepts.
const MATCHERS: &str = "a list of matchers, such as ['team=\"storage\"']";

/// The hosts whose runbooks are fetched and shown to the agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Runbooks {
    /// A runbook URL of any other host counts as an unverified claim of the alert. The names of these hosts must lead
    /// to public addresses.
    #[schemars(with = "Vec<WrittenSource>")]
    pub hosts: Vec<RunbookSource>,
    /// Hosts as well, whose names may lead to addresses of a private network.
    #[schemars(with = "Vec<WrittenSource>")]
    pub private_hosts: Vec<RunbookSource>,
    /// Certificate authorities in PEM, in addition to those of the system.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub ca_file: Option<String>,
    /// The runbooks of alerts that name none, in their order: the first one counts whose matchers all hold.
    #[serde(skip_serializing_if = "is_default")]
    pub default: Vec<DefaultRunbook>,
}

/// A runbook for alerts that name none: a skill, or a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct DefaultRunbook {
    /// All of them have to hold; an empty list holds for every alert.
    #[serde(rename = "match", with = "As::<Vec<RouteMatcher>>")]
    #[schemars(extend("x-required" = MATCHERS))]
    pub matchers: Vec<Matcher>,
    /// The name of a skill.
    #[serde(with = "As::<SkillName>", skip_serializing_if = "is_default")]
    pub skill: Option<String>,
    /// A page of a listed host.
    #[serde(with = "As::<Url>", skip_serializing_if = "is_default")]
    pub url: Option<String>,
}

impl DefaultRunbook {
    fn check(&self, field: &Field<'_>, listed: &[RunbookHost]) {
        // A value with a fault of its own is absent here.
        if field.has("skill") == field.has("url") {
            field.fault("one runbook is expected: either skill or url".to_owned());
        } else if let Some(url) = &self.url
            && !is_listed(listed, url)
        {
            let field = field.at("url");
            field.fault("its host is in neither of hosts and private_hosts".to_owned());
        }
    }
}

impl Runbooks {
    pub(crate) fn check(&mut self, field: &Field<'_>) {
        for (list, key) in [
            (&self.hosts, "hosts"),
            (&self.private_hosts, "private_hosts"),
        ] {
            for (source, field) in list.iter().zip(field.items(key)) {
                source.check(&field);
            }
        }
        for (default, field) in self.default.iter().zip(field.items("default")) {
            default.check(&field, &self.listed());
        }
    }

    /// All entries of both lists.
    pub fn sources(&self) -> impl Iterator<Item = &RunbookSource> {
        self.hosts.iter().chain(&self.private_hosts)
    }

    /// The runbook of an alert with these facts that names none.
    pub fn default_of(&self, facts: &Facts) -> Option<&DefaultRunbook> {
        let mut defaults = self.default.iter();
        defaults.find(|default| default.matchers.iter().all(|known| known.matches(facts)))
    }

    /// All listed hosts.
    pub fn listed(&self) -> Vec<RunbookHost> {
        self.sources().map(|source| source.host.clone()).collect()
    }
}

/// A listed host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "WrittenSource", into = "WrittenSource")]
pub struct RunbookSource {
    pub host: RunbookHost,
    /// The bearer token of requests to this host, read at each fetch; it names one host, never those below a name.
    pub token: Option<SecretSource>,
}

/// A host, or a mapping of a host and its token.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum WrittenSource {
    Host(#[serde(with = "As::<RunbookHostName>")] RunbookHost),
    WithToken(WithToken),
}

/// A host with the bearer token of requests to it.
#[derive(Deserialize, Serialize, JsonSchema)]
struct WithToken {
    /// A host such as runbooks.example.com, without a port.
    #[serde(with = "As::<RunbookHostName>")]
    #[schemars(extend("x-required" = "a host such as runbooks.example.com"))]
    host: RunbookHost,
    /// The file with the token.
    #[serde(with = "As::<Text>", default, skip_serializing_if = "is_default")]
    token_file: Option<String>,
    /// The variable with the token.
    #[serde(
        with = "As::<VariableName>",
        default,
        skip_serializing_if = "is_default"
    )]
    token_env: Option<String>,
}

impl RunbookSource {
    fn check(&self, field: &Field<'_>) {
        if let (Some(_), Some(variable)) = (field.get("token_file"), field.get("token_env")) {
            variable.fault("a second token; accepted: either token_file or token_env".to_owned());
        }
        if self.token.is_some() && !self.host.is_one_host() {
            let field = field.at("host");
            field.expected("one host, because its token must reach no other one");
        }
    }
}

impl From<WrittenSource> for RunbookSource {
    fn from(written: WrittenSource) -> Self {
        match written {
            WrittenSource::Host(host) => Self { host, token: None },
            WrittenSource::WithToken(keys) => {
                let file = keys.token_file.map(SecretSource::File);
                let token = file.or_else(|| keys.token_env.map(SecretSource::Variable));
                Self {
                    host: keys.host,
                    token,
                }
            }
        }
    }
}

impl From<RunbookSource> for WrittenSource {
    fn from(source: RunbookSource) -> Self {
        let (token_file, token_env) = match source.token {
            None => return Self::Host(source.host),
            Some(SecretSource::File(file)) => (Some(file), None),
            Some(SecretSource::Variable(name)) => (None, Some(name)),
        };
        Self::WithToken(WithToken {
            host: source.host,
            token_file,
            token_env,
        })
    }
}
