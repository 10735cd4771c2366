//! Reads the permissions of the present credentials from the server: `$SYS.REQ.USER.INFO`, since nats-server 2.10.

use std::time::Duration;

use serde::Deserialize;

use super::subjects::{covers, overlap};
use crate::connection::Nats;
use crate::error::{Error, within};
use tarsy_core::approvals::Sender;

/// The begin of the subjects of decisions at the command line; the next token is the person.
const CLI_DECISIONS: &str = "tarsy.decisions.cli.";
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The user of a connection, and its permissions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Granted {
    /// Empty for a server without users.
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub account: String,
    /// `None` permits everything.
    permissions: Option<Permissions>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Permissions {
    #[serde(default)]
    publish: Subjects,
    #[serde(default)]
    subscribe: Subjects,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Subjects {
    /// Empty permits everything that is not denied.
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

#[derive(Deserialize)]
struct UserInfoReply {
    data: Granted,
}

impl Subjects {
    fn permit(&self, wanted: &str) -> bool {
        // An entry for a queue group has its name after a blank.
        let subject = |entry: &String| entry.split(' ').next().unwrap_or_default().to_owned();
        let mut denied = self.deny.iter();
        if denied.any(|entry| overlap(&subject(entry), wanted)) {
            return false;
        }
        let mut allowed = self.allow.iter();
        self.allow.is_empty() || allowed.any(|entry| covers(&subject(entry), wanted))
    }
}

impl Granted {
    /// Whether the server restricts the credentials in no way.
    pub fn is_unlimited(&self) -> bool {
        self.permissions.is_none()
    }

    pub fn may_publish(&self, subject: &str) -> bool {
        self.permissions
            .as_ref()
            .is_none_or(|permissions| permissions.publish.permit(subject))
    }

    pub(crate) fn may_subscribe(&self, subject: &str) -> bool {
        self.permissions
            .as_ref()
            .is_none_or(|permissions| permissions.subscribe.permit(subject))
    }

    /// The one person as whom the credentials may decide at the command line: the token of their subjects. `None` for
    /// credentials that may decide as no person, or as several.
    pub fn person(&self) -> Option<&str> {
        let publish = &self.permissions.as_ref()?.publish;
        let mut people: Vec<&str> = publish
            .allow
            .iter()
            .filter_map(|subject| subject.strip_prefix(CLI_DECISIONS)?.split('.').next())
            .collect();
        people.sort_unstable();
        people.dedup();
        match people.as_slice() {
            [person] if Sender::cli(person).is_some() => Some(person),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(super) fn of_patterns(publish: &[&str], subscribe: &[&str]) -> Self {
        let subjects = |allow: &[&str]| Subjects {
            allow: allow.iter().map(|subject| (*subject).to_owned()).collect(),
            deny: Vec::new(),
        };
        let permissions = Some(Permissions {
            publish: subjects(publish),
            subscribe: subjects(subscribe),
        });
        Self {
            user: String::new(),
            account: String::new(),
            permissions,
        }
    }
}

impl Nats {
    /// Asks the server for the permissions of this connection.
    ///
    /// # Errors
    /// When it does not answer, as it does if the permissions do not include the question.
    pub async fn granted(&self) -> Result<Granted, Error> {
        let asked = self.client.request("$SYS.REQ.USER.INFO", Vec::new().into());
        let silence = "the server does not name the permissions of these credentials";
        let answer = within(ANSWER_TIMEOUT, silence, asked).await?;
        let answer: UserInfoReply = serde_json::from_slice(&answer.payload).map_err(|error| {
            Error::Unavailable(format!("the permissions cannot be read: {error}"))
        })?;
        Ok(answer.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_subject_takes_precedence_and_an_empty_list_permits_the_rest() {
        let text = r#"{"data": {"user": "u", "account": "A", "permissions": {
            "publish": {"deny": ["tarsy.timeline.>"]}, "subscribe": {"allow": ["tarsy.>", "_INBOX.> workers"]}}}}"#;
        let granted = serde_json::from_str::<UserInfoReply>(text).unwrap().data;
        assert!(granted.may_publish("tarsy.alerts.>") && !granted.may_publish("tarsy.timeline.*"));
        assert!(!granted.may_publish("tarsy.>"), "a part of it is denied");
        assert!(granted.may_subscribe("_INBOX.>") && !granted.may_subscribe("$JS.>"));
        assert!(!granted.is_unlimited());
    }

    #[test]
    fn the_person_of_credentials_is_the_token_of_their_subjects() {
        for (allowed, person) in [
            (
                &["tarsy.decisions.cli.ana.*", "tarsy.verdicts.cli.ana.*"][..],
                Some("ana"),
            ),
            (
                &[
                    "tarsy.decisions.cli.ana.*",
                    "tarsy.decisions.cli.ana.freeze",
                ],
                Some("ana"),
            ),
            (
                &["tarsy.decisions.cli.ana.*", "tarsy.decisions.cli.bob.*"],
                None,
            ),
            (&["tarsy.decisions.cli.*.*"], None),
            (&["tarsy.decisions.>"], None),
            (&["tarsy.alerts.>"], None),
            (&[], None),
        ] {
            let granted = Granted::of_patterns(allowed, &[]);
            assert_eq!(granted.person(), person, "{allowed:?}");
        }
    }
}
