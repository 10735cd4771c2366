//! Publishes alerts that people submit, for `tarsy submit` and `tarsy web`.

use serde_json::{Map, Value};

use tarsy_bus::{NewAlert, PART, Priority, SESSION_ID, SubjectSuffix};
use tarsy_config::Config;
use tarsy_core::alert::{AlertStatus, Severity};
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{Hints, Intake, IntakeError, MAX_BODY_BYTES, Part};

/// The rules for alerts, as far as this machine knows them.
#[derive(Clone, Debug)]
pub struct Rules {
    intake: Intake,
    /// `None`: the configuration defines no chain, so it does not tell which ones the workers know.
    chains: Option<Vec<String>>,
}

/// A body that workers read.
#[derive(Debug, PartialEq)]
pub struct Readable {
    /// The alerts of the body, at least one.
    pub parts: Vec<Part>,
    /// The bytes that are published.
    pub body: Vec<u8>,
    /// The header `Tarsy-Left-Out` of a body that was reduced.
    pub left_out: Option<String>,
}

/// The common part of the messages of one body.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The session of the first alert.
    pub session: SessionId,
    /// `None`: the severity of each alert.
    pub priority: Option<Severity>,
    pub suffix: Option<SubjectSuffix>,
    pub headers: Map<String, Value>,
}

/// An alert with the session that it opens.
#[derive(Debug)]
pub struct Outgoing {
    pub session: SessionId,
    pub alert: NewAlert,
}

impl Rules {
    pub fn from_config(config: &Config) -> Self {
        let chains = config
            .named_chains()
            .map(|chains| chains.into_iter().map(ToOwned::to_owned).collect());
        let max_alert_bytes = usize::try_from(config.worker.max_alert_bytes).unwrap_or(usize::MAX);
        Self {
            intake: Intake::new(config.sources.all()).with_max_alert_bytes(max_alert_bytes),
            chains,
        }
    }

    /// The largest body that is published whole, in bytes.
    pub fn max_alert_bytes(&self) -> usize {
        self.intake.max_alert_bytes()
    }

    pub fn chains(&self) -> Option<&[String]> {
        self.chains.as_deref()
    }

    /// The alerts of a body, with the body as it is published; `named` is the body in messages. A body of more than
    /// `max_bytes`, or than workers read whole, is reduced.
    ///
    /// # Errors
    /// With the reason why a worker with this configuration would give it up, or why it asks for nothing.
    pub fn read(&self, named: &str, body: &[u8], max_bytes: usize) -> Result<Readable, String> {
        if body.len() > MAX_BODY_BYTES {
            let bytes = body.len();
            return Err(format!(
                "{named} has {bytes} bytes, at most {MAX_BODY_BYTES} are read: nothing was published"
            ));
        }
        let refused = |error: IntakeError| match error {
            IntakeError::Empty => format!("{named} is empty: nothing was published"),
            IntakeError::Undecodable => {
                format!("{named} is not an alert: {error}; nothing was published")
            }
        };
        let hints = Hints::default();
        let reduced = self
            .intake
            .reduced(body, &hints, max_bytes.min(self.max_alert_bytes()))
            .map_err(refused)?;
        let (body, hints, left_out) = match reduced {
            Some(reduced) => {
                let hints = reduced.hints(hints);
                let left_out = reduced.left_out.header();

                (reduced.body.into_bytes(), hints, left_out)
            }
            None => (body.to_vec(), hints, None),
        };
        let parts = self.intake.read(&body, &hints).map_err(refused)?;
        let all_ignored = parts
            .iter()
            .all(|part| part.alert.status == AlertStatus::Ignored);
        if all_ignored {
            let reason = parts
                .first()
                .and_then(|part| part.alert.ignored_because.as_deref())
                .unwrap_or("it is no alert");
            return Err(format!(
                "{named} asks for no investigation: {reason}; nothing was published"
            ));
        }
        Ok(Readable {
            parts,
            body,
            left_out,
        })
    }

    /// Refuses a chain that the configuration does not define.
    ///
    /// # Errors
    /// With the chains that there are.
    pub fn check_chain(&self, chain: Option<&str>) -> Result<(), String> {
        let (Some(chain), Some(known)) = (chain, &self.chains) else {
            return Ok(());
        };
        if known.iter().any(|known| known == chain) {
            return Ok(());
        }
        Err(format!(
            "there is no chain \"{chain}\"; there are: {}; nothing was published",
            known.join(", ")
        ))
    }
}

/// The message of each alert of a body.
pub fn messages(parts: &[Part], body: &[u8], draft: &Draft) -> Vec<Outgoing> {
    let has_several = parts.len() > 1;
    parts
        .iter()
        .enumerate()
        .map(|(at, part): (usize, &Part)| {
            let session = if at == 0 {
                draft.session
            } else {
                draft.session.of_part(part.index)
            };
            let mut headers = draft.headers.clone();
            headers.insert(SESSION_ID.to_owned(), session.to_string().into());
            if has_several {
                headers.insert(PART.to_owned(), part.index.to_string().into());
            }
            Outgoing {
                session,
                alert: NewAlert {
                    priority: Priority::from(draft.priority.unwrap_or(part.alert.severity)),
                    suffix: draft.suffix.clone(),
                    body: body.to_vec(),
                    headers: Value::Object(headers),
                },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_invalid_alert_is_refused_with_its_reason_and_its_limit() {
        let config =
            Config::parse("tarsy.yaml", "worker: {max_alert_bytes: 1024}", &|_| None).unwrap();
        let rules = Rules::from_config(&config);
        let read = |body: &[u8]| rules.read("it", body, usize::MAX);
        assert_eq!(
            read(b"disk 94 % full").map(|read| (read.parts.len(), read.left_out)),
            Ok((1, None))
        );
        let reduced = read("x".repeat(1_025).as_bytes()).unwrap();
        assert!(
            reduced.body.len() <= 1_024 && reduced.left_out.is_some(),
            "{reduced:?}"
        );
        let long = "x".repeat(MAX_BODY_BYTES + 1);
        for (body, why) in [
            (&b" \n"[..], "it is empty"),
            (b"{}", "it is empty"),
            (b"\x89PNG\0\0", "it is not an alert: body is no text"),
            (
                long.as_bytes(),
                "it has 33554433 bytes, at most 33554432 are read",
            ),
        ] {
            let refused = read(body).unwrap_err();
            assert!(
                refused.starts_with(why) && refused.ends_with("nothing was published"),
                "{refused}"
            );
        }
        assert_eq!(
            rules.check_chain(Some("of-the-workers")),
            Ok(()),
            "this configuration names no chain"
        );
    }

    #[test]
    fn each_alert_of_a_body_has_a_message_with_its_severity_or_the_chosen_priority() {
        let rules = Rules::from_config(&Config::parse("tarsy.yaml", "", &|_| None).unwrap());
        let record = |state: &str| {
            let alarm =
                json!({"AlarmName": state, "NewStateValue": state, "AlarmArn": state}).to_string();
            json!({"Sns": {"TopicArn": "arn:aws:sns:eu-1:1:alarms", "Message": alarm}})
        };
        let body = json!({"Records": [record("ALARM"), record("INSUFFICIENT_DATA")]}).to_string();
        let parts = rules.read("it", body.as_bytes(), usize::MAX).unwrap().parts;
        let session = SessionId(Uuid::now_v7());
        let of = |priority| {
            let draft = Draft {
                session,
                priority,
                suffix: "web".parse().ok(),
                headers: Map::new(),
            };
            messages(&parts, body.as_bytes(), &draft)
        };
        let sent = of(None);
        let sessions: Vec<SessionId> = sent.iter().map(|outgoing| outgoing.session).collect();
        assert_eq!(sessions, [session, session.of_part(1)]);
        for (part, outgoing) in sent.iter().enumerate() {
            let headers = &outgoing.alert.headers;
            let expected = (json!(outgoing.session), json!(part.to_string()));
            assert_eq!(
                (headers[SESSION_ID].clone(), headers[PART].clone()),
                expected
            );
        }
        let priorities: Vec<Priority> = sent
            .iter()
            .map(|outgoing| outgoing.alert.priority)
            .collect();
        let severities: Vec<Priority> = parts
            .iter()
            .map(|part| part.alert.severity.into())
            .collect();
        assert_eq!((&priorities, priorities[1]), (&severities, Priority::Low));
        assert!(
            of(Some(Severity::Critical))
                .iter()
                .all(|of| of.alert.priority == Priority::Critical)
        );
    }
}
