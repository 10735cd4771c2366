//! `runbooks`: the hosts whose runbooks are fetched, and the bearer tokens that they get.

use serde::{Serialize, Serializer};

use crate::read::reader::{Field, Map};
use crate::secret::SecretSource;
use crate::write::{is_default, written};
use tarsy_core::runbook::RunbookHost;

/// The hosts whose runbooks are fetched and shown to the agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Runbooks {
    /// A runbook URL of any other host counts as an unverified claim of the alert. The names of these hosts must lead
    /// to public addresses.
    pub hosts: Vec<RunbookSource>,
    /// Hosts as well, whose names may lead to addresses of a private network.
    pub private_hosts: Vec<RunbookSource>,
    /// Certificate authorities in PEM, in addition to those of the system.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub ca_file: Option<String>,
}

impl Runbooks {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        Self {
            hosts: map.list("hosts", RunbookSource::read).unwrap_or_default(),
            private_hosts: map
                .list("private_hosts", RunbookSource::read)
                .unwrap_or_default(),
            ca_file: map.text("ca_file"),
        }
    }

    /// All entries of both lists.
    pub fn sources(&self) -> impl Iterator<Item = &RunbookSource> {
        self.hosts.iter().chain(&self.private_hosts)
    }

    /// All listed hosts.
    pub fn listed(&self) -> Vec<RunbookHost> {
        self.sources().map(|source| source.host.clone()).collect()
    }
}

/// A listed host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunbookSource {
    pub host: RunbookHost,
    /// The bearer token of requests to this host; it names one host, never those below a name.
    pub token: Option<SecretSource>,
}

impl RunbookSource {
    /// Reads a host, or a mapping of a host and its token.
    fn read(field: &Field<'_>) -> Option<Self> {
        if field.is_map() {
            field.section(Self::with_token)
        } else {
            Some(Self {
                host: host(field)?,
                token: None,
            })
        }
    }

    fn with_token(map: &mut Map<'_>) -> Option<Self> {
        let field = map.required("host", "a host such as runbooks.example.com");
        let (file, variable) = (map.get("token_file"), map.get("token_env"));
        if let Some(variable) = variable.as_ref().filter(|_| file.is_some()) {
            variable.fault("a second token; accepted: either token_file or token_env".to_owned());
        }
        let file = file.and_then(|field| field.text()).map(SecretSource::File);
        let token = file.or_else(|| variable?.variable_name().map(SecretSource::Variable));
        let field = field?;
        let host = host(&field)?;
        if token.is_some() && !host.is_one_host() {
            field.expected("one host, because its token must reach no other one");
        }
        Some(Self { host, token })
    }
}

fn host(field: &Field<'_>) -> Option<RunbookHost> {
    let text = field.text()?;
    let host = RunbookHost::parse(&text);
    if host.is_none() {
        field.expected("a host such as runbooks.example.com, wiki.example.com:8443, *.example.com, without a scheme");
    }
    host
}

/// The written form of an entry with a token.
#[derive(Serialize)]
struct WithToken {
    #[serde(serialize_with = "written")]
    host: RunbookHost,
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    token_file: Option<String>,
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    token_env: Option<String>,
}

impl Serialize for RunbookSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let with = |token_file, token_env| WithToken {
            host: self.host.clone(),
            token_file,
            token_env,
        };
        match &self.token {
            None => written(&self.host, serializer),
            Some(SecretSource::File(file)) => with(Some(file.clone()), None).serialize(serializer),
            Some(SecretSource::Variable(name)) => {
                with(None, Some(name.clone())).serialize(serializer)
            }
        }
    }
}
