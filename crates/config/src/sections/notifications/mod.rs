//! `notifications`: where messages about investigations go, and which of them each route gets.

mod email;
mod kind;

use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use self::email::{EmailRoute, Smtp, SmtpLogin, SmtpTls};
pub(crate) use self::kind::own_secret;
pub use self::kind::{RouteKind, WebhookAddress};
use crate::read::reader::{Field, Map};
use crate::write::Written;
use tarsy_core::alert::Severity;
use tarsy_core::notification::Moment;
use tarsy_core::notification::route::Filter;
use tarsy_core::notification::summary::Outcome;
use tarsy_core::notification::template::Template;

/// A route: a chat or a program that learns about investigations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationRoute {
    pub kind: RouteKind,
    pub filter: Filter,
    /// The time limit for one attempt with all its requests.
    pub timeout: Duration,
    /// The words about an ended investigation; `None` for the usual form.
    pub template: Option<Template>,
    /// The words about one that begins.
    pub started_template: Option<Template>,
}

impl NotificationRoute {
    /// `chains` are the names of the defined chains.
    pub(crate) fn read(field: &Field<'_>, chains: &[String]) -> Option<Self> {
        field.section(|map| {
            let filter = Self::read_filter(map, chains);
            let timeout = Self::read_timeout(map, 1..=60);
            let template = read_template(map, "template");
            let started_template = read_template(map, "started_template");
            let kind = RouteKind::read(map)?;
            Some(Self {
                timeout: timeout.unwrap_or_else(|| kind.default_timeout()),
                filter: kind.with_updates(filter),
                kind,
                template,
                started_template,
            })
        })
    }

    /// The keys that say which notifications a route gets.
    pub(crate) fn read_filter(map: &mut Map<'_>, chains: &[String]) -> Filter {
        let on = map.list("when", |field| {
            field.choice(&Moment::OF_ROUTES, Moment::as_str)
        });
        Filter {
            on: on
                .filter(|moments| !moments.is_empty())
                .unwrap_or_else(|| vec![Moment::Ended]),
            chains: map
                .list("chains", |field| field.reference(chains))
                .unwrap_or_default(),
            severities: map.list("severities", severity).unwrap_or_default(),
            outcomes: map
                .list("outcomes", |field| {
                    field.choice(&Outcome::ALL, Outcome::as_str)
                })
                .unwrap_or_default(),
        }
    }

    pub(crate) fn read_timeout(map: &mut Map<'_>, secs: RangeInclusive<u64>) -> Option<Duration> {
        map.get("timeout").and_then(|field| field.duration(secs))
    }
}

fn severity(field: &Field<'_>) -> Option<Severity> {
    field.choice(&Severity::ALL, Severity::as_str)
}

fn read_template(map: &mut Map<'_>, key: &'static str) -> Option<Template> {
    let field = map.get(key)?;
    let text = field.text()?;
    Template::parse(&text)
        .inspect_err(|fault| field.fault(fault.to_string()))
        .ok()
}

/// The schema of the section. Which keys go together depends on `kind`, and the reader reports it.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    let mut keys = json!({
        "kind": {"enum": RouteKind::WORDS, "x-required": "", "description": "The chat or program."},
        "url": {"type": "string", "description": "The address of a webhook, without a secret."},
        "url_file": {"type": "string", "description": "The file with the address."},
        "url_env": {"type": "string", "description": "The variable with the address."},
        "token_file": {"type": "string", "description": "The file with the token of a bot of Slack."},
        "token_env": {"type": "string", "description": "The variable with the token of a bot of Slack."},
        "channel": {"type": "string", "description": "The id of a channel of Slack, not its name."},
        "thread_channels": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Other channels, in the threads of whose messages about alerts it may reply."
        },
        "api_url": {"type": "string", "description": "The API of another cloud of Slack."},
        "secret_file": {"type": "string", "description": "The file with the secret that signs requests."},
        "secret_env": {"type": "string", "description": "The variable with the secret that signs requests."},
        "smtp": {
            "type": "object",
            "description": "The server that takes the e-mail.",
            "properties": smtp_keys()
        },
        "from": {"type": "string", "description": "The sender of an e-mail: an address, or Name <address>."},
        "to": {"type": "array", "items": {"type": "string"}, "description": "The recipients of an e-mail."},
        "template": {"type": "string", "description": "The words about an ended investigation."},
        "started_template": {"type": "string", "description": "The words about one that begins."}
    });
    if let (Value::Object(keys), Value::Object(filter)) = (&mut keys, filter_keys()) {
        keys.extend(filter);
    }
    json_schema!({"type": "object", "additionalProperties": {"type": "object", "properties": keys}})
}

fn smtp_keys() -> Value {
    json!({
        "host": {"type": "string", "x-required": "", "description": "The name or address of the server."},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "By default 465, 587 or 25, as tls says."},
        "tls": {
            "enum": SmtpTls::ALL.map(SmtpTls::as_str).to_vec(),
            "description": "required: from the first byte, the default at port 465. starttls: the default elsewhere."
        },
        "allow_plaintext": {"type": "boolean", "description": "Permits tls: none to other hosts, without a password."},
        "username": {"type": "string", "description": "The name for the server."},
        "password_file": {"type": "string", "description": "The file with the password."},
        "password_env": {"type": "string", "description": "The variable with the password."},
        "ca_file": {"type": "string", "description": "Authorities in PEM, beside those of the system."}
    })
}

/// The keys that destinations have, too.
pub(crate) fn filter_keys() -> Value {
    let words = |words: Vec<&str>, description: &str| json!({"type": "array", "items": {"enum": words}, "description": description});
    let moments = Moment::OF_ROUTES.map(Moment::as_str).to_vec();
    let severities = Severity::ALL.map(Severity::as_str).to_vec();
    let outcomes = Outcome::ALL.map(Outcome::as_str).to_vec();
    json!({
        "when": words(moments, "When a message is sent; by default at the end."),
        "chains": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Investigations of these chains only."
        },
        "severities": words(severities, "Alerts of these severities only."),
        "outcomes": words(outcomes, "Investigations with these outcomes only."),
        "timeout": {
            "x-form": "duration",
            "x-range": [1, 60],
            "description": "The time limit for one attempt with all its requests."
        }
    })
}

impl Serialize for NotificationRoute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            kind,
            filter,
            timeout,
            template,
            started_template,
        } = self;
        let mut map = serializer.serialize_map(None)?;
        for (key, text) in kind.keys() {
            map.serialize_entry(key, &text.to_owned().form())?;
        }
        for (key, value) in kind.nested() {
            map.serialize_entry(&key, &value)?;
        }
        let listed: Vec<Moment> = filter
            .on
            .iter()
            .copied()
            .filter(|moment| Moment::OF_ROUTES.contains(moment))
            .collect();
        map.serialize_entry("when", &words(&listed, Moment::as_str))?;
        let lists = [
            (
                "thread_channels",
                kind.thread_channels()
                    .iter()
                    .map(|channel| channel.form())
                    .collect(),
            ),
            ("chains", filter.chains.iter().map(Written::form).collect()),
            ("severities", words(&filter.severities, Severity::as_str)),
            ("outcomes", words(&filter.outcomes, Outcome::as_str)),
        ];
        for (key, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            map.serialize_entry(key, list)?;
        }
        map.serialize_entry("timeout", &timeout.form())?;
        for (key, template) in [
            ("template", template),
            ("started_template", started_template),
        ] {
            if let Some(template) = template {
                map.serialize_entry(key, &template.as_str().to_owned().form())?;
            }
        }
        map.end()
    }
}

fn words<T: Copy>(values: &[T], word: fn(T) -> &'static str) -> Vec<String> {
    values.iter().map(|value| word(*value).to_owned()).collect()
}

#[cfg(test)]
mod tests;
