//! Publishes the alerts of a request, with the headers that a message may have.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use uuid::Uuid;

use tarsy_bus::{
    ASKED_BY, CHAIN, CONTENT_ENCODING, CONTENT_TYPE, Error, LEFT_OUT, Nats, NewAlert, PARENT_ID,
    PART, SESSION_ID, SOURCE, THREAD, TRACEPARENT,
};
use tarsy_config::Receive;
use tarsy_core::ids::SessionId;
use tarsy_receiver::{HeaderRules, InboundAlert, InboundAlerts, PublishError, Published, Queue};

/// The delay for clients while the broker is unavailable. The client of NATS reconnects by itself.
const UNAVAILABLE_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The delay for clients while the queue is full, which gets shorter by one investigation at a time.
const FULL_RETRY_DELAY: Duration = Duration::from_secs(30);

/// The stream of alerts, once there is a connection.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) nats: watch::Receiver<Option<Nats>>,
    /// The chains that workers know; `None` if the receiver's configuration defines none, so that they are unknown.
    pub(super) chains: Option<Vec<String>>,
}

impl Queue for Broker {
    fn max_body_bytes(&self) -> Option<usize> {
        self.nats.borrow().as_ref().map(Nats::max_alert_bytes)
    }

    async fn publish(&self, alerts: InboundAlerts) -> Result<Vec<Published>, PublishError> {
        let (first, headers) = with_session_id(&alerts, self.chains.as_deref())?;
        // A message that waits in the buffer of a lost connection would be published in addition to the client's next
        // try.
        let nats = self.nats.borrow().clone();
        let nats = nats
            .filter(|nats| nats.connection_state().connected)
            .ok_or_else(|| unavailable("the queue is unavailable", UNAVAILABLE_RETRY_DELAY))?;
        let mut published = Vec::with_capacity(alerts.alerts.len());
        for (index, alert) in alerts.alerts.iter().enumerate() {
            let session_id = if index == 0 {
                first
            } else {
                first.of_part(alert.part.unwrap_or_default())
            };
            let message = message(&alerts, *alert, session_id, headers.clone());
            // The id of a repetition is that of the first try, so the stream stores the alert once.
            let stored = match alerts.session_id {
                Some(_) => nats.publish_alert_once(message).await,
                None => nats.publish_alert(message).await,
            };
            published.push(reported(session_id, stored)?);
        }
        Ok(published)
    }
}

/// Logs the outcome of a publication, and returns it as the client gets it.
fn reported(
    session_id: SessionId,
    stored: Result<tarsy_bus::Published, Error>,
) -> Result<Published, PublishError> {
    match stored {
        Ok(stored) => {
            let published = Published {
                session_id,
                subject: stored.subject,
                stream_sequence: stored.sequence,
            };
            tracing::info!(
                %session_id, subject = published.subject, stream_sequence = published.stream_sequence,
                "alert published"
            );
            Ok(published)
        }
        Err(error) => {
            tracing::warn!(%session_id, "alert not published: {error}");
            Err(publish_error(&error))
        }
    }
}

fn message(
    alerts: &InboundAlerts,
    alert: InboundAlert,
    session_id: SessionId,
    mut headers: Map<String, Value>,
) -> NewAlert {
    headers.insert(SESSION_ID.to_owned(), session_id.to_string().into());
    if let Some(part) = alert.part {
        headers.insert(PART.to_owned(), part.to_string().into());
    }
    NewAlert {
        priority: alert.priority.into(),
        suffix: alerts.suffix.parse().ok(),
        body: alerts.body.to_vec(),
        headers: Value::Object(headers),
    }
}

/// The rule for each header that a message may have. A proxy adds its own `traceparent`, so the response does not
/// name that header when it is ignored.
pub(super) fn header_rules(receive: &Receive) -> HeaderRules {
    let mut rules = HeaderRules {
        forwarded: Vec::new(),
        ignored: Vec::new(),
        forbidden: vec![PARENT_ID, ASKED_BY, THREAD],
    };
    for name in tarsy_bus::ALLOWED {
        // The receiver itself sets the first three; the last two describe the bytes and not the alert.
        let is_set_here = [SOURCE, PART, LEFT_OUT].contains(&name);
        let is_of_bytes = [CONTENT_TYPE, CONTENT_ENCODING].contains(&name);
        if is_of_bytes || rules.forbidden.contains(&name) {
            continue;
        }
        if !is_set_here && receive.headers.iter().any(|listed| listed == name) {
            rules.forwarded.push(name);
        } else if name != TRACEPARENT {
            rules.ignored.push(name);
        }
    }
    rules
}

/// The id of the first alert, and the headers of all of them. The id is that of the proof, otherwise the one that the
/// client chose, otherwise a new one.
///
/// # Errors
/// When a worker would give the alert up for one of the headers.
fn with_session_id(
    alerts: &InboundAlerts,
    chains: Option<&[String]>,
) -> Result<(SessionId, Map<String, Value>), PublishError> {
    let given = |wanted: &str| {
        alerts
            .headers
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, text)| text.as_str())
    };
    let session_id = match (alerts.session_id, given(SESSION_ID)) {
        (Some(derived), _) => derived,
        (None, Some(text)) => SessionId::parse(text).ok_or_else(|| {
            PublishError::Invalid(format!(
                "header {SESSION_ID} is not a UUID of version 7; without it, one is chosen"
            ))
        })?,
        (None, None) => SessionId(Uuid::now_v7()),
    };
    let chain = given(CHAIN).map_or("", str::trim);
    if let Some(chains) = chains
        && !chain.is_empty()
        && !chains.iter().any(|known| known == chain)
    {
        let known = chains.join(", ");
        return Err(PublishError::Invalid(format!(
            "header {CHAIN} names no chain of tarsy.yaml; there are: {known}"
        )));
    }
    let mut headers: Map<String, Value> = alerts
        .headers
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.clone().into()))
        .collect();
    if let Some(source) = &alerts.source {
        headers.insert(SOURCE.to_owned(), source.clone().into());
    }
    Ok((session_id, headers))
}

fn unavailable(reason: &str, retry_after: Duration) -> PublishError {
    PublishError::Unavailable {
        reason: reason.to_owned(),
        retry_after,
    }
}

/// The error for the client. The log has the broker's own words.
fn publish_error(error: &Error) -> PublishError {
    match error {
        Error::Full { .. } => unavailable("the queue is full", FULL_RETRY_DELAY),
        Error::TooLarge { .. } => {
            PublishError::TooLarge("body is larger than what the queue takes".to_owned())
        }
        Error::Header(_) => PublishError::Invalid(error.to_string()),
        Error::NoStream(_) => unavailable(
            "the queue does not exist: run `tarsy migrate`",
            FULL_RETRY_DELAY,
        ),
        Error::NoJetStream { .. } => unavailable(
            "the queue has no JetStream: start nats-server with -js",
            FULL_RETRY_DELAY,
        ),
        Error::Unavailable(_)
        | Error::Url { .. }
        | Error::BodyNotKept(_)
        | Error::Unreachable { .. }
        | Error::Refused { .. }
        | Error::Credentials { .. }
        | Error::OldServer { .. }
        | Error::Admin { .. }
        | Error::Topology(_)
        | Error::Storage { .. }
        | Error::PlacementWithoutCluster(_)
        | Error::Duplicate(_)
        | Error::Rejected { .. } => {
            unavailable("the queue did not store the alert", UNAVAILABLE_RETRY_DELAY)
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use tarsy_core::alert::Severity;

    #[test]
    fn every_header_can_be_listed_except_the_parent_of_a_question() {
        let all = Receive {
            headers: tarsy_config::RECEIVE_HEADERS.map(str::to_owned).into(),
            ..Receive::default()
        };
        let HeaderRules {
            mut forwarded,
            ignored,
            forbidden,
        } = header_rules(&all);
        assert_eq!(
            (&ignored, &forbidden),
            (
                &vec![SOURCE, PART, LEFT_OUT],
                &vec![PARENT_ID, ASKED_BY, THREAD]
            )
        );
        forwarded.extend(
            forbidden
                .into_iter()
                .chain(ignored)
                .chain([CONTENT_TYPE, CONTENT_ENCODING]),
        );
        forwarded.sort_unstable();
        let mut known = tarsy_bus::ALLOWED;
        known.sort_unstable();
        assert_eq!(forwarded, known);
        let none = header_rules(&Receive {
            headers: vec![PARENT_ID.to_owned()],
            ..Receive::default()
        });
        assert_eq!(
            (none.forwarded.len(), none.ignored.len()),
            (0, tarsy_bus::ALLOWED.len() - 6),
            "{none:?}"
        );
    }

    #[test]
    fn a_session_id_of_the_client_is_kept_and_an_invalid_id_or_chain_is_refused() {
        let of = |headers: Vec<(&'static str, String)>| InboundAlerts {
            alerts: vec![InboundAlert {
                priority: Severity::Normal,
                part: None,
            }],
            suffix: "http".to_owned(),
            source: None,
            session_id: None,
            headers,
            ignored_headers: Vec::new(),
            body: Bytes::new(),
        };
        let own = Uuid::now_v7().to_string();
        let named = vec![(SESSION_ID, own.clone()), ("Tarsy-Title", "t".to_owned())];
        let (id, headers) = with_session_id(&of(named.clone()), None).unwrap();
        assert_eq!(id.to_string(), own);
        let derived = SessionId::of_message(&[b"m"], 1);
        let proven = InboundAlerts {
            session_id: Some(derived),
            source: Some("shop".to_owned()),
            ..of(named)
        };
        let (id, with_source) = with_session_id(&proven, None).unwrap();
        assert_eq!(
            (id, &with_source[SOURCE]),
            (derived, &Value::from("shop")),
            "the proof decides"
        );
        assert_eq!(Value::Object(headers)["Tarsy-Title"], "t");
        let (id, headers) = with_session_id(&of(vec![]), None).unwrap();
        assert!(headers.is_empty(), "{headers:?}");
        assert_eq!(id.0.get_version_num(), 7);
        let chains = ["db".to_owned(), "k8s".to_owned()];
        let chain = |name: &str| vec![(CHAIN, name.to_owned())];
        for (headers, refused) in [
            (
                vec![(SESSION_ID, "42".to_owned())],
                "is not a UUID of version 7",
            ),
            (
                chain("nope"),
                "names no chain of tarsy.yaml; there are: db, k8s",
            ),
        ] {
            let Err(PublishError::Invalid(why)) = with_session_id(&of(headers), Some(&chains))
            else {
                panic!("accepted")
            };
            assert!(why.contains(refused), "{why}");
        }
        assert!(with_session_id(&of(chain(" k8s ")), Some(&chains)).is_ok());
        assert!(
            with_session_id(&of(chain("of-the-workers")), None).is_ok(),
            "this process does not know the chains"
        );
    }
}
