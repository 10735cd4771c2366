//! `auth` of a source: how its senders prove who they are. The receiver checks it.

use crate::read::reader::{Field, Map};
use crate::secret::SecretSource;

const KINDS: [&str; 6] = ["bearer", "basic", "path", "header", "hmac_sha256", "sns"];
const TOPIC: &str = "the ARN of a topic, such as arn:aws:sns:eu-central-1:123456789012:alarms";
/// More topics are no configuration.
const MAX_TOPIC_NAME_BYTES: usize = 256;

/// The proof that a sender has to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceAuth {
    /// The token of the receiver, as a bearer token or as the password of Basic.
    Receiver,
    /// A token of this source, as a bearer token or as the password of Basic.
    Token(SecretSource),
    /// A token after the name of the source in the path.
    Path(SecretSource),
    /// A header whose value is the secret.
    Header { name: String, secret: SecretSource },
    /// A header with the HMAC-SHA256 of the body, in hexadecimal digits.
    HmacSha256 {
        header: String,
        /// Before the digits.
        prefix: String,
        /// One or two: during a rotation either of them is accepted.
        secrets: Vec<SecretSource>,
        /// With this header, `<its value>:<body>` is signed.
        time_header: Option<String>,
    },
    /// The certificate of Amazon SNS.
    Sns {
        /// The ARNs of the topics that are accepted; never empty.
        topics: Vec<String>,
        /// Whether a subscription to one of the topics is confirmed without a person.
        confirm: bool,
    },
}

impl SourceAuth {
    /// The secrets that the proof needs.
    pub fn secrets(&self) -> &[SecretSource] {
        match self {
            Self::Receiver | Self::Sns { .. } => &[],
            Self::Token(secret) | Self::Path(secret) | Self::Header { secret, .. } => {
                std::slice::from_ref(secret)
            }
            Self::HmacSha256 { secrets, .. } => secrets,
        }
    }

    pub(super) fn read(field: &Field<'_>) -> Option<Self> {
        if field.is_text() {
            return field.word(&["bearer", "basic"]).map(|_| Self::Receiver);
        }
        if !field.is_map() {
            field.expected(&KINDS.join(", "));
            return None;
        }
        field.section(|map| {
            let kinds: Vec<(&'static str, Field<'_>)> = KINDS
                .into_iter()
                .filter_map(|kind| Some((kind, map.get(kind)?)))
                .collect();
            let [(kind, proof)] = kinds.as_slice() else {
                field.fault(format!(
                    "{} kinds of proof; accepted: one of {}",
                    kinds.len(),
                    KINDS.join(", ")
                ));
                return None;
            };
            proof.section(|map| of_kind(kind, map))
        })
    }
}

fn of_kind(kind: &str, map: &mut Map<'_>) -> Option<SourceAuth> {
    match kind {
        "bearer" | "basic" => Some(SourceAuth::Token(required_secret(map)?)),
        "path" => Some(SourceAuth::Path(required_secret(map)?)),
        "header" => {
            let name = map
                .required("name", "X-Token")
                .and_then(|field| header_name(&field));
            let secret = required_secret(map);
            Some(SourceAuth::Header {
                name: name?,
                secret: secret?,
            })
        }
        "hmac_sha256" => hmac(map),
        _ => sns(map),
    }
}

fn hmac(map: &mut Map<'_>) -> Option<SourceAuth> {
    let header = map
        .required("header", "X-Signature")
        .and_then(|field| header_name(&field));
    let prefix = map.text("prefix").unwrap_or_default();
    let first = required_secret(map);
    let second = secret(map, "secret_env_2", "secret_file_2");
    let time_header = map.get("time_header").and_then(|field| header_name(&field));
    let secrets = std::iter::once(first?).chain(second).collect();
    Some(SourceAuth::HmacSha256 {
        header: header?,
        prefix,
        secrets,
        time_header,
    })
}

fn sns(map: &mut Map<'_>) -> Option<SourceAuth> {
    let topics = map.required("topics", TOPIC)?;
    let confirm = map.get("confirm").and_then(|field| field.flag());
    let listed = topics.list()?;
    if listed.is_empty() {
        topics.expected(TOPIC);
        return None;
    }
    Some(SourceAuth::Sns {
        topics: listed.iter().filter_map(topic).collect(),
        confirm: confirm.unwrap_or_default(),
    })
}

fn topic(field: &Field<'_>) -> Option<String> {
    let arn = field.text()?;
    if !is_topic(&arn) {
        field.expected(TOPIC);
        return None;
    }
    Some(arn)
}

/// Whether a text is `arn:<partition>:sns:<region>:<account>:<name>`.
fn is_topic(arn: &str) -> bool {
    let parts: Vec<&str> = arn.split(':').collect();
    let [
        "arn",
        "aws" | "aws-cn" | "aws-us-gov",
        "sns",
        region,
        account,
        name,
    ] = parts.as_slice()
    else {
        return false;
    };
    let plain = name.strip_suffix(".fifo").unwrap_or(name);
    !region.is_empty()
        && region
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && account.len() == 12
        && account.chars().all(|c| c.is_ascii_digit())
        && !plain.is_empty()
        && name.len() <= MAX_TOPIC_NAME_BYTES
        && plain
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn header_name(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    let is_token = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c));
    if name.is_empty() || !is_token {
        field.expected("the name of a header, such as X-Signature");
        return None;
    }
    Some(name)
}

fn required_secret(map: &mut Map<'_>) -> Option<SecretSource> {
    let has = map.has("secret_env") || map.has("secret_file");
    let secret = secret(map, "secret_env", "secret_file");
    if !has {
        map.missing(
            "secret_env",
            "secret_env with the name of a variable, or secret_file with a path",
        );
    }
    secret
}

fn secret(map: &mut Map<'_>, variable: &'static str, file: &'static str) -> Option<SecretSource> {
    match (map.get(variable), map.get(file)) {
        (Some(_), Some(file)) => {
            file.fault(format!(
                "a second place of the secret; accepted: only one of {variable} and this key"
            ));
            None
        }
        (Some(name), None) => Some(SecretSource::Variable(name.variable_name()?)),
        (None, Some(file)) => Some(SecretSource::File(file.text()?)),
        (None, None) => None,
    }
}
