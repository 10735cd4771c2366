//! The kinds of routes: Slack, Microsoft Teams, a generic webhook, and e-mail. The address of a chat is a secret, so it
//! comes from a file or a variable; both are read again for every message.

use std::time::Duration;

use serde_json::{Map as Object, Value};

use super::email::EmailRoute;
use crate::read::reader::Map;
use crate::secret::SecretSource;
use crate::sections::destinations::Destination;
use tarsy_core::notification::Moment;
use tarsy_core::notification::route::Filter;

const SLACK_API: &str = "https://slack.com/api";
/// The hosts of Slack's API; answers to clicks go to `hooks.` before them.
const SLACK_HOSTS: [&str; 2] = ["slack.com", "slack-gov.com"];
/// The words of `kind`.
const KINDS: [&str; 4] = ["slack", "teams", "webhook", "email"];
/// A provider that needs longer is rather unavailable.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A mail server may greet late on purpose, and look at the content before it answers.
const TIMEOUT_OF_EMAIL: Duration = Duration::from_secs(30);

/// The address of a generic webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAddress {
    /// An address without a secret.
    Plain(String),
    Secret(SecretSource),
}

/// The kind of a route, with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// An incoming webhook of Slack, which is bound to a channel.
    SlackWebhook {
        url: SecretSource,
    },
    /// The API of Slack with a bot's token: a thread for each session.
    SlackBot {
        token: SecretSource,
        /// The id of a channel.
        channel: String,
        /// Other channels, in the threads of whose messages about alerts it may reply.
        thread_channels: Vec<String>,
        /// The address of the API; another one only for other clouds of Slack.
        api_url: String,
    },
    /// A workflow of Microsoft Teams that posts an Adaptive Card.
    Teams {
        url: SecretSource,
    },
    /// JSON for a program.
    Webhook {
        url: WebhookAddress,
        /// Signs the requests.
        secret: Option<SecretSource>,
    },
    Email(Box<EmailRoute>),
    /// An entry of `destinations`, not of `notifications`.
    Destination(Box<Destination>),
}

impl RouteKind {
    /// The words of kinds, for metrics.
    pub const WORDS: [&str; 4] = KINDS;

    /// The filter with the moments that this kind gets without being asked: a bot of Slack changes its message about a
    /// call once people have decided.
    pub(super) fn with_updates(&self, mut filter: Filter) -> Filter {
        let is_bot = matches!(self, Self::SlackBot { .. });
        if is_bot && filter.on.contains(&Moment::Approval) {
            filter.on.push(Moment::Decided);
        }
        filter
    }

    /// The beginning of the addresses to which Slack lets this app answer a click, for a bot of Slack: those of the
    /// cloud that its API belongs to.
    pub fn answers(&self) -> Option<String> {
        let Self::SlackBot { api_url, .. } = self else {
            return None;
        };
        let (scheme, rest) = api_url.split_once("://")?;
        let authority = rest.split('/').next()?;
        Some(if SLACK_HOSTS.contains(&authority) {
            format!("https://hooks.{authority}/actions/")
        } else {
            format!("{scheme}://{authority}/actions/")
        })
    }

    /// The word of the kind.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::SlackWebhook { .. } | Self::SlackBot { .. } => "slack",
            Self::Teams { .. } => "teams",
            Self::Webhook { .. } => "webhook",
            Self::Email(_) => "email",
            Self::Destination(_) => "destination",
        }
    }

    /// The secrets that a message of this route needs.
    pub fn secrets(&self) -> Vec<&SecretSource> {
        match self {
            Self::SlackWebhook { url } | Self::Teams { url } => vec![url],
            Self::SlackBot { token, .. } => vec![token],
            Self::Webhook { url, secret } => {
                let of_url = if let WebhookAddress::Secret(secret) = url {
                    Some(secret)
                } else {
                    None
                };
                of_url.into_iter().chain(secret).collect()
            }
            Self::Email(email) => {
                let login = email.smtp.login.as_ref();
                login.map(|login| &login.password).into_iter().collect()
            }
            Self::Destination(destination) => destination.secret.iter().collect(),
        }
    }

    /// Other channels in which it may reply.
    pub(super) fn thread_channels(&self) -> &[String] {
        match self {
            Self::SlackBot {
                thread_channels, ..
            } => thread_channels,
            Self::SlackWebhook { .. }
            | Self::Teams { .. }
            | Self::Webhook { .. }
            | Self::Email(_)
            | Self::Destination(_) => &[],
        }
    }

    /// The time limit of an attempt where the file has none.
    pub(crate) fn default_timeout(&self) -> Duration {
        match self {
            Self::Email(_) => TIMEOUT_OF_EMAIL,
            Self::SlackWebhook { .. }
            | Self::SlackBot { .. }
            | Self::Teams { .. }
            | Self::Webhook { .. }
            | Self::Destination(_) => TIMEOUT,
        }
    }

    pub(super) fn read(map: &mut Map<'_>) -> Option<Self> {
        let kind = map
            .required("kind", &KINDS.join(", "))
            .and_then(|field| field.word(&KINDS));
        match kind.as_deref()? {
            "slack" => slack(map),
            "teams" => Some(Self::Teams {
                url: required(map, Keys::URL)?,
            }),
            "email" => Some(Self::Email(Box::new(EmailRoute::read(map)?))),
            _ => webhook(map),
        }
    }

    /// The keys and texts as they are written.
    pub(super) fn keys(&self) -> Vec<(&'static str, &str)> {
        let mut keys = vec![("kind", self.as_str())];
        match self {
            Self::SlackWebhook { url } | Self::Teams { url } => {
                keys.push(Keys::URL.for_secret(url))
            }
            Self::SlackBot {
                token,
                channel,
                thread_channels: _,
                api_url,
            } => {
                keys.extend([Keys::TOKEN.for_secret(token), ("channel", channel)]);
                keys.extend((api_url != SLACK_API).then_some(("api_url", api_url.as_str())));
            }
            Self::Webhook { url, secret } => {
                keys.push(match url {
                    WebhookAddress::Plain(url) => ("url", url),
                    WebhookAddress::Secret(url) => Keys::URL.for_secret(url),
                });
                keys.extend(
                    secret
                        .as_ref()
                        .map(|secret| Keys::SECRET.for_secret(secret)),
                );
            }
            // `nested` has its keys.
            Self::Email(_) => {}
            // The section of destinations shows it as it was written.
            Self::Destination(_) => {}
        }
        keys
    }

    /// The keys whose values are no texts, as they are written.
    pub(super) fn nested(&self) -> Object<String, Value> {
        match self {
            Self::Email(email) => email.written(),
            Self::SlackWebhook { .. }
            | Self::SlackBot { .. }
            | Self::Teams { .. }
            | Self::Webhook { .. }
            | Self::Destination(_) => Object::new(),
        }
    }
}

fn slack(map: &mut Map<'_>) -> Option<RouteKind> {
    let url = secret(map, Keys::URL);
    let token = secret(map, Keys::TOKEN);
    let channel = map.get("channel");
    let api_url = map.get("api_url").and_then(|field| field.url());
    let thread_channels = map.list("thread_channels", |field| {
        let channel = field.text()?;
        if !is_channel(&channel) {
            field.expected(CHANNEL);
        }
        Some(channel)
    });
    match (url, token) {
        (Some(_), None) if thread_channels.is_some() => {
            map.missing(
                "token_file",
                "the token of a bot beside thread_channels: an incoming webhook cannot reply",
            );
            None
        }
        (Some(url), None) => {
            if let Some(field) = channel {
                field.fault(
                    "an incoming webhook has its own channel; accepted: token_file or token_env beside it".into(),
                );
                return None;
            }
            Some(RouteKind::SlackWebhook { url })
        }
        (None, Some(token)) => {
            let Some(field) = channel else {
                map.missing("channel", CHANNEL);
                return None;
            };
            let channel = field.text()?;
            if !is_channel(&channel) {
                field.expected(CHANNEL);
                return None;
            }
            let api_url = api_url.unwrap_or_else(|| SLACK_API.to_owned());
            let api_url = api_url.trim_end_matches('/').to_owned();
            let thread_channels = thread_channels.unwrap_or_default();
            Some(RouteKind::SlackBot {
                token,
                channel,
                thread_channels,
                api_url,
            })
        }
        (Some(_), Some(_)) => {
            map.missing(
                "url_file",
                "either the URL of an incoming webhook or a token with a channel, not both",
            );
            None
        }
        (None, None) => {
            map.missing(
                "url_file",
                "url_file or url_env of an incoming webhook, or token_file or token_env with channel",
            );
            None
        }
    }
}

const CHANNEL: &str = "the id of a channel such as C0123456789, not its name";

fn is_channel(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(['C', 'D', 'G'])
        && text
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

fn webhook(map: &mut Map<'_>) -> Option<RouteKind> {
    let plain = map.get("url");
    let hidden = secret(map, Keys::URL);
    let key = secret(map, Keys::SECRET);
    let url = match (plain, hidden) {
        (Some(field), None) => WebhookAddress::Plain(field.url()?),
        (None, Some(secret)) => WebhookAddress::Secret(secret),
        (Some(field), Some(_)) => {
            field.fault("a second address; accepted: one of url, url_file, url_env".to_owned());
            return None;
        }
        (None, None) => {
            map.missing("url", "a URL, or url_file or url_env if it has a secret");
            return None;
        }
    };
    Some(RouteKind::Webhook { url, secret: key })
}

/// The two keys that name where a secret is.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    pub(super) file: &'static str,
    pub(super) variable: &'static str,
}

impl Keys {
    const URL: Self = Self {
        file: "url_file",
        variable: "url_env",
    };
    const TOKEN: Self = Self {
        file: "token_file",
        variable: "token_env",
    };
    const SECRET: Self = Self {
        file: "secret_file",
        variable: "secret_env",
    };
    pub(super) const PASSWORD: Self = Self {
        file: "password_file",
        variable: "password_env",
    };

    pub(super) fn for_secret(self, secret: &SecretSource) -> (&'static str, &str) {
        match secret {
            SecretSource::File(file) => (self.file, file),
            SecretSource::Variable(name) => (self.variable, name),
        }
    }
}

fn required(map: &mut Map<'_>, keys: Keys) -> Option<SecretSource> {
    let found = secret(map, keys);
    if found.is_none() && !map.has(keys.file) && !map.has(keys.variable) {
        map.missing(
            keys.file,
            &format!(
                "{}, or {} with the name of a variable",
                keys.file, keys.variable
            ),
        );
    }
    found
}

/// The secret that `secret_file` or `secret_env` names.
pub(crate) fn own_secret(map: &mut Map<'_>) -> Option<SecretSource> {
    secret(map, Keys::SECRET)
}

pub(super) fn secret(map: &mut Map<'_>, keys: Keys) -> Option<SecretSource> {
    let file = map.get(keys.file);
    let variable = map.get(keys.variable);
    if let (Some(_), Some(variable)) = (&file, &variable) {
        variable.fault(format!(
            "a second source; accepted: either {} or {}",
            keys.file, keys.variable
        ));
    }
    match file {
        Some(file) => file.text().map(SecretSource::File),
        None => variable?.variable_name().map(SecretSource::Variable),
    }
}
