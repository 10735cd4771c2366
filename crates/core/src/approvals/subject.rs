//! `PeopleSubject`, the subject of a message by which a person decides or judges. The broker's permissions are by
//! subject, so the subject proves the channel, and at the command line the person.

use std::fmt;

use super::Channel;
use crate::ids::SessionId;

/// The longest name of a person's broker user.
const MAX_USER_BYTES: usize = 64;
/// The last token of the subject of a freeze.
const FREEZE: &str = "freeze";

/// A parsed subject of a person's message: `tarsy.decisions.<channel>.<session>`,
/// `tarsy.decisions.cli.<user>.<session>`, and the same with `verdicts`, or with `freeze` in the place of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeopleSubject {
    pub topic: Topic,
    pub sender: Sender,
}

/// The purpose of a person's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A decision about a call of this session.
    Decision(SessionId),
    /// A verdict about the analysis of this session.
    Verdict(SessionId),
    /// The begin or the end of a freeze of all changes.
    Freeze,
}

/// The channel of a message, with the person as far as the subject names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    Web,
    Slack,
    /// The broker user of one person.
    Cli(String),
    Link,
    Drill,
}

impl Sender {
    pub fn channel(&self) -> Channel {
        match self {
            Self::Web => Channel::Web,
            Self::Slack => Channel::Slack,
            Self::Cli(_) => Channel::Cli,
            Self::Link => Channel::Link,
            Self::Drill => Channel::Drill,
        }
    }

    /// The sender of the command line for a person; `None` if the name cannot be a token of a subject.
    pub fn cli(user: &str) -> Option<Self> {
        is_user(user).then(|| Self::Cli(user.to_owned()))
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.channel().as_str())?;
        match self {
            Self::Cli(user) => write!(f, ".{user}"),
            Self::Web | Self::Slack | Self::Link | Self::Drill => Ok(()),
        }
    }
}

impl PeopleSubject {
    /// Parses a subject; `None` for any other one.
    pub fn parse(subject: &str) -> Option<Self> {
        let rest = subject.strip_prefix("tarsy.")?;
        let (kind, rest) = rest.split_once('.')?;
        let (channel, rest) = rest.split_once('.')?;
        let (sender, last) = match Channel::parse(channel)? {
            Channel::Web => (Sender::Web, rest),
            Channel::Slack => (Sender::Slack, rest),
            Channel::Cli => {
                let (user, last) = rest.split_once('.')?;
                (Sender::cli(user)?, last)
            }
            Channel::Link => (Sender::Link, rest),
            Channel::Drill => (Sender::Drill, rest),
        };
        let topic = match kind {
            "decisions" if last == FREEZE => Topic::Freeze,
            "decisions" => Topic::Decision(session(last)?),
            "verdicts" => Topic::Verdict(session(last)?),
            _ => return None,
        };
        Some(Self { topic, sender })
    }
}

impl fmt::Display for PeopleSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sender = &self.sender;
        match self.topic {
            Topic::Decision(session) => write!(f, "tarsy.decisions.{sender}.{session}"),
            Topic::Verdict(session) => write!(f, "tarsy.verdicts.{sender}.{session}"),
            Topic::Freeze => write!(f, "tarsy.decisions.{sender}.{FREEZE}"),
        }
    }
}

/// The session of a token, which has to be the one form of its id: two subjects of one session would have two limits.
fn session(token: &str) -> Option<SessionId> {
    SessionId::parse(token).filter(|session| session.to_string() == token)
}

fn is_user(user: &str) -> bool {
    let mut characters = user.chars();
    !user.is_empty()
        && user.len() <= MAX_USER_BYTES
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "0199d3f2-0000-7000-8000-000000000001";

    #[test]
    fn a_subject_names_channel_person_and_session_and_survives_its_text() {
        let session = SessionId::parse(SESSION).unwrap();
        let ana = || Sender::cli("ana").unwrap();
        for (text, topic, sender) in [
            (
                "tarsy.decisions.web.SESSION",
                Topic::Decision(session),
                Sender::Web,
            ),
            (
                "tarsy.decisions.slack.SESSION",
                Topic::Decision(session),
                Sender::Slack,
            ),
            (
                "tarsy.decisions.cli.ana.SESSION",
                Topic::Decision(session),
                ana(),
            ),
            (
                "tarsy.decisions.link.SESSION",
                Topic::Decision(session),
                Sender::Link,
            ),
            (
                "tarsy.decisions.drill.SESSION",
                Topic::Decision(session),
                Sender::Drill,
            ),
            (
                "tarsy.verdicts.cli.ana.SESSION",
                Topic::Verdict(session),
                ana(),
            ),
            (
                "tarsy.verdicts.web.SESSION",
                Topic::Verdict(session),
                Sender::Web,
            ),
            ("tarsy.decisions.cli.ana.freeze", Topic::Freeze, ana()),
            ("tarsy.decisions.web.freeze", Topic::Freeze, Sender::Web),
        ] {
            let text = text.replace("SESSION", SESSION);
            let parsed = PeopleSubject::parse(&text).unwrap();
            assert_eq!(parsed, PeopleSubject { topic, sender }, "{text}");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn any_other_subject_is_none_of_a_person() {
        for text in [
            "",
            "tarsy.alerts.low",
            "tarsy.decisions.web",
            "tarsy.decisions.web.",
            "tarsy.decisions.web.x",
            "tarsy.decisions.mail.SESSION",
            "tarsy.decisions.cli.SESSION",
            "tarsy.decisions.cli..SESSION",
            "tarsy.decisions.cli.*.SESSION",
            "tarsy.decisions.cli.a.b.SESSION",
            "tarsy.decisions.web.SESSION.more",
            "tarsy.verdicts.web.freeze",
            "tarsy.others.web.SESSION",
        ] {
            let text = text.replace("SESSION", SESSION);
            assert_eq!(PeopleSubject::parse(&text), None, "{text}");
        }
        assert_eq!(Sender::cli(&"a".repeat(65)), None);
        assert_eq!(Sender::cli("ana.b"), None);
    }
}
