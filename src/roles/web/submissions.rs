//! Alerts that people submit or have investigated again: each is queued once, however often its form is sent.

use chrono::{DateTime, TimeDelta, Utc};

use super::backend::Backend;
use crate::admin::publishing::submissions::{Draft, Readable, messages};
use crate::admin::publishing::{questions, reruns};
use tarsy_bus::{ASKED_BY, CHAIN, FORCE, LEFT_OUT, MessageKind, NewAlert};
use tarsy_core::ids::SessionId;
use tarsy_web::ports::{
    Cooldown, Published, Reader as _, Refusal, Rerun, Submission, Submitted, Unavailable,
};

/// The end of the subject of every alert of this server: its permissions include no other.
const SUFFIX: &str = "web";
/// A form that is older gets another id before it is sent: that of the alert says when it was submitted.
const MAX_REQUEST_AGE: TimeDelta = TimeDelta::hours(1);
/// The time limit for clocks of other machines.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::minutes(5);

/// A message that is sent once.
struct Once {
    session: SessionId,
    kind: MessageKind,
    message: NewAlert,
}

impl Backend {
    pub(super) async fn submit_alerts(&self, submission: Submission) -> Result<Submitted, Refusal> {
        let Submission {
            request,
            alert,
            priority,
            chain,
            cooldown,
            by,
        } = submission;
        // A large alert takes longer than a thread of the runtime may be held up.
        let rules = self.rules().clone();
        let reading = tokio::task::spawn_blocking(move || {
            rules.read("the alert", alert.as_bytes(), usize::MAX)
        });
        let read = reading
            .await
            .map_err(|_| Unavailable("the alert could not be read".to_owned()))?;
        let Readable {
            parts,
            body,
            left_out,
        } = read.map_err(Refusal::Invalid)?;
        self.rules()
            .check_chain(chain.as_deref())
            .map_err(Refusal::Invalid)?;
        let force = match cooldown {
            Cooldown::Counts => None,
            Cooldown::Ignored => Some("true".to_owned()),
        };
        // Another text or another setting is another alert, also with the id of the same form.
        let word = priority.map_or("", |priority| priority.as_str());
        let chain_name = chain.as_deref().unwrap_or_default();
        let force_word = force.as_deref().unwrap_or_default();
        let identity = ["submit", word, chain_name, force_word].map(str::as_bytes);
        let session = session_of(request, &[&identity[..], &[&body]].concat());
        let headers = [
            (FORCE, force),
            (CHAIN, chain),
            (ASKED_BY, Some(by.clone())),
            (LEFT_OUT, left_out),
        ];
        let draft = Draft {
            session,
            priority,
            suffix: SUFFIX.parse().ok(),
            headers: headers
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
                .collect(),
        };
        let mut all = Vec::with_capacity(parts.len());
        for outgoing in messages(&parts, &body, &draft) {
            let once = Once {
                session: outgoing.session,
                kind: MessageKind::Alert,
                message: outgoing.alert,
            };
            all.push(self.publish_once(request, once).await?);
        }
        let mut all = all.into_iter();
        let first = all.next().ok_or_else(|| {
            Refusal::Invalid("the alert is empty: nothing was published".to_owned())
        })?;
        let others: Vec<Published> = all.collect();
        tracing::info!(session_id = %first.session_id, by, alerts = others.len() + 1, "alert published");
        Ok(Submitted { first, others })
    }

    pub(super) async fn rerun_alert(&self, rerun: Rerun) -> Result<Published, Refusal> {
        let Rerun {
            request,
            of,
            chain,
            by,
        } = rerun;
        self.rules()
            .check_chain(chain.as_deref())
            .map_err(Refusal::Invalid)?;
        let report = self.reported(of).await?;
        reruns::may_rerun(&report).map_err(Refusal::State)?;
        let identity = [
            b"rerun",
            of.0.as_bytes().as_slice(),
            chain.as_deref().unwrap_or_default().as_bytes(),
        ];
        let session = session_of(request, &identity);
        let mut message =
            reruns::message(session, &report, chain.as_deref()).map_err(Refusal::State)?;
        let (kind, end) = match report.parent_id {
            Some(_) => (MessageKind::Question, questions::SUFFIX),
            None => (MessageKind::Alert, SUFFIX),
        };
        message.suffix = end.parse().ok();
        if let Some(headers) = message.headers.as_object_mut() {
            headers.insert(ASKED_BY.to_owned(), by.clone().into());
        }
        let once = Once {
            session,
            kind,
            message,
        };
        let published = self.publish_once(request, once).await?;
        tracing::info!(session_id = %session, retry_of = %of, by, "rerun published");
        Ok(published)
    }

    /// Publishes the message unless a worker has it. The stream stores a repetition within two minutes once, and for
    /// a later one workers know the id.
    async fn publish_once(&self, request: SessionId, once: Once) -> Result<Published, Refusal> {
        let Once {
            session,
            kind,
            message,
        } = once;
        // Without the database an alert can be queued all the same.
        if let Ok(Some(known)) = self.report(session).await {
            let stream_sequence = u64::try_from(known.stream_sequence).unwrap_or_default();
            return Ok(Published {
                session_id: session,
                subject: known.subject,
                stream_sequence,
            });
        }
        check_age(request, Utc::now())?;
        let nats = self.connected().await?;
        self.check_permission(&nats, kind, &message).await?;
        let stored = match kind {
            MessageKind::Alert => self.published(nats.publish_alert_once(message)).await?,
            MessageKind::Question => self.published(nats.publish_question_once(message)).await?,
        };
        Ok(Published {
            session_id: session,
            subject: stored.subject,
            stream_sequence: stored.sequence,
        })
    }

    /// A server answers nothing to a message that it does not permit, so the permission is looked up before.
    async fn check_permission(
        &self,
        nats: &tarsy_bus::Nats,
        kind: MessageKind,
        message: &NewAlert,
    ) -> Result<(), Unavailable> {
        let mut subject = message.priority.subject(kind);
        if let Some(suffix) = &message.suffix {
            subject = format!("{subject}.{suffix}");
        }
        match nats.granted().await {
            Ok(granted) if !granted.may_publish(&subject) => Err(Unavailable(format!(
                "nats does not permit this server to publish on {subject}: deploy/nats/web.conf has its permissions"
            ))),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The session of a request: the same for each repetition of it.
fn session_of(request: SessionId, parts: &[&[u8]]) -> SessionId {
    let sent_at = made_at(request)
        .and_then(|at| u64::try_from(at.timestamp_millis()).ok())
        .unwrap_or_default();
    SessionId::of_message(
        &[&[request.0.as_bytes().as_slice()], parts].concat(),
        sent_at,
    )
}

/// The creation time of a UUID of version 7.
fn made_at(id: SessionId) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = id.0.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}

fn check_age(request: SessionId, now: DateTime<Utc>) -> Result<(), Refusal> {
    let age = made_at(request).map(|at| now.signed_duration_since(at));
    if age.is_some_and(|age| -MAX_CLOCK_SKEW <= age && age <= MAX_REQUEST_AGE) {
        return Ok(());
    }
    Err(Refusal::Invalid(
        "request_id was made more than an hour ago: nothing was published; send the form once more, or name a new one"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_request_has_one_session_however_often_and_another_one_for_other_words() {
        let request = SessionId(Uuid::now_v7());
        let other = SessionId(Uuid::now_v7());

        let session = session_of(request, &[b"submit", b"disk full"]);
        assert_eq!(session, session_of(request, &[b"submit", b"disk full"]));
        assert_ne!(session, session_of(request, &[b"submit", b"disk fuller"]));
        assert_ne!(session, session_of(request, &[b"submitd", b"isk full"]));
        assert_ne!(session, session_of(other, &[b"submit", b"disk full"]));
        assert_ne!(
            session, request,
            "the id of a form names no session of another one"
        );
        assert_eq!(session.0.get_version_num(), 7);
        assert_eq!(made_at(session), made_at(request));
    }

    #[test]
    fn a_request_that_is_older_than_an_hour_or_of_the_future_is_refused() {
        let request = SessionId(Uuid::now_v7());
        let made = made_at(request).unwrap();
        for (minutes, accepted) in [
            (-10, false),
            (-4, true),
            (0, true),
            (59, true),
            (61, false),
            (90_000, false),
        ] {
            let checked = check_age(request, made + TimeDelta::minutes(minutes));
            assert_eq!(checked.is_ok(), accepted, "{minutes}");
        }
    }
}
