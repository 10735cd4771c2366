//! Lists, drops and retries the dead letters on the stream.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::HeaderMap;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::cause::Cause;
use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::{Error, within};
use crate::headers::{
    self, CHAIN, DEAD_DELIVERIES, DEAD_DETAIL, DEAD_REASON, DEAD_SEQUENCE, DEAD_SUBJECT, FORCE,
    RETRY_OF, SESSION_ID,
};
use crate::names::{ALL_DEAD_LETTERS, DEAD_LETTERS};
use crate::queue::claims::stored_at;
use crate::queue::publish::Published;
use crate::queue::requeue::queue_subject;
use crate::stream::get::message_at;
use crate::stream::reader::{ReadMessage, StreamReader};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::DeadReason;

/// `Nats::dead_letters` returns no more than this.
pub const MAX_DEAD_LETTERS: usize = 10_000;
/// The total size of the bodies that `Nats::dead_letters` returns.
const MAX_BODY_BYTES: usize = 256 * 1024 * 1024;
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// A dead letter on the stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredDeadLetter {
    pub alert_id: SessionId,
    /// The word of its [`DeadReason`], or one that only a newer version knows.
    pub reason: String,
    /// The reason for people.
    pub detail: String,
    /// The subject that the alert was published on.
    pub subject: String,
    /// The sequence that the alert had in the stream of alerts.
    pub alert_sequence: u64,
    /// The number of deliveries of the alert.
    pub deliveries: u32,
    /// The time when the alert was given up, by the server's clock.
    pub stored_at: DateTime<Utc>,
    /// The sequence of the dead letter in its stream.
    pub sequence: u64,
    /// The alert's allowed headers, as an object of strings.
    pub headers: Value,
    /// The body as received; empty if it was too large to be kept. Not serialised.
    #[serde(skip)]
    pub body: Vec<u8>,
}

impl Nats {
    /// The newest dead letters, the newest first: at most [`MAX_DEAD_LETTERS`], with at most 256 MiB of bodies in all.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read to its end.
    pub async fn dead_letters(&self) -> Result<Vec<StoredDeadLetter>, Error> {
        let silence = format!("{DEAD_LETTERS} was not read in {LIST_TIMEOUT:?}");
        within(LIST_TIMEOUT, silence, self.newest_dead_letters()).await
    }

    async fn newest_dead_letters(&self) -> Result<Vec<StoredDeadLetter>, Error> {
        let mut newest = Newest::default();
        let mut reader =
            StreamReader::open(self, DEAD_LETTERS, ALL_DEAD_LETTERS.to_owned(), 0).await?;
        while let Some(read) = reader.next_available().await? {
            match dead_letter(&read) {
                Some(letter) => newest.push(letter),
                None => {
                    tracing::warn!(subject = %read.message.subject, "unreadable dead letter skipped")
                }
            }
        }
        Ok(newest.letters.into())
    }

    /// Removes the dead letter at `sequence`; returns `false` if there is none.
    ///
    /// # Errors
    ///
    /// When the dead letter is not removed, or not known to be removed. Removing it again is harmless.
    pub async fn drop_dead_letter(&self, sequence: u64) -> Result<bool, Error> {
        let removed = tokio::time::timeout(REQUEST_TIMEOUT, async {
            let stream = self.jetstream.get_stream_no_info(DEAD_LETTERS).await;
            let stream = stream.map_err(|error| error.to_string())?;
            let removed = stream.delete_message(sequence).await;
            removed.map_err(|error| error.to_string())
        });
        match removed.await {
            Ok(Ok(removed)) => Ok(removed),
            Ok(Err(reason)) => match message_at(self, DEAD_LETTERS, sequence).await? {
                // The server has several errors for a message that does not exist.
                None => Ok(false),
                Some(_) => Err(Error::Admin {
                    object: format!("{DEAD_LETTERS}/{sequence}"),
                    action: "remove",
                    reason,
                    cause: Cause::Other,
                }),
            },
            Err(_) => Err(Error::Unavailable(format!("{DEAD_LETTERS} gave no answer"))),
        }
    }

    /// Queues the alert of a dead letter again under a new id, with `chain` instead of the chain that it named, then
    /// drops the dead letter. A dead letter that cannot be dropped stays, which is logged.
    ///
    /// # Errors
    ///
    /// When the body was not kept, or the alert is not queued. The dead letter stays.
    pub async fn retry_dead_letter(
        &self,
        letter: &StoredDeadLetter,
        chain: Option<&str>,
    ) -> Result<(SessionId, Published), Error> {
        if letter.reason == DeadReason::TooLarge.as_str() && letter.body.is_empty() {
            return Err(Error::BodyNotKept(letter.alert_id));
        }
        let session = SessionId(Uuid::now_v7());
        let mut copy = headers::for_copy_of_stored(&letter.headers);
        copy.insert(SESSION_ID, session.to_string());
        copy.insert(RETRY_OF, letter.alert_id.to_string());
        copy.insert(FORCE, "true");
        if let Some(chain) = chain {
            headers::insert(&mut copy, CHAIN, chain)?;
        }
        // Queued before it is dropped: a crash in between leaves the dead letter, and loses no alert.
        let published = self
            .enqueue(queue_subject(&letter.subject), copy, letter.body.clone())
            .await?;
        if let Err(error) = self.drop_dead_letter(letter.sequence).await {
            tracing::warn!(
                alert_id = %letter.alert_id, sequence = letter.sequence, %error,
                "dead letter not dropped after its retry"
            );
        }
        Ok((session, published))
    }
}

/// The newest dead letters within the limits, the newest first.
#[derive(Debug, Default)]
struct Newest {
    letters: VecDeque<StoredDeadLetter>,
    body_bytes: usize,
}

impl Newest {
    fn push(&mut self, letter: StoredDeadLetter) {
        self.body_bytes += letter.body.len();
        self.letters.push_front(letter);
        while self.letters.len() > MAX_DEAD_LETTERS || self.body_bytes > MAX_BODY_BYTES {
            let Some(oldest) = self.letters.pop_back() else {
                return;
            };
            self.body_bytes -= oldest.body.len();
        }
    }
}

/// `None` for a message that is not a dead letter.
fn dead_letter(read: &ReadMessage) -> Option<StoredDeadLetter> {
    let message = &read.message;
    let mut words = message.subject.split('.').skip(2);
    let reason = words.next()?;
    let alert_id = words.next().and_then(SessionId::parse)?;
    let headers = message.headers.clone().unwrap_or_default();
    Some(StoredDeadLetter {
        alert_id,
        reason: text(&headers, DEAD_REASON).unwrap_or_else(|| reason.to_owned()),
        detail: text(&headers, DEAD_DETAIL).unwrap_or_default(),
        subject: text(&headers, DEAD_SUBJECT).unwrap_or_default(),
        alert_sequence: number(&headers, DEAD_SEQUENCE),
        deliveries: u32::try_from(number(&headers, DEAD_DELIVERIES)).unwrap_or(u32::MAX),
        stored_at: stored_at(read.stored_at_ns),
        sequence: read.stream_sequence,
        headers: headers::allowed(Some(&headers)),
        body: message.payload.to_vec(),
    })
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| value.as_str().to_owned())
}

fn number(headers: &HeaderMap, name: &str) -> u64 {
    headers
        .get(name)
        .and_then(|value| value.as_str().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(sequence: u64, body_bytes: usize) -> StoredDeadLetter {
        StoredDeadLetter {
            alert_id: SessionId(Uuid::nil()),
            reason: "empty".into(),
            detail: String::new(),
            subject: "tarsy.alerts.low".into(),
            alert_sequence: 1,
            deliveries: 1,
            stored_at: DateTime::UNIX_EPOCH,
            sequence,
            headers: Value::Null,
            body: vec![b'x'; body_bytes],
        }
    }

    fn sequences(newest: &Newest) -> Vec<u64> {
        newest
            .letters
            .iter()
            .map(|letter| letter.sequence)
            .collect()
    }

    #[test]
    fn of_too_many_dead_letters_the_newest_are_kept() {
        let mut newest = Newest::default();
        for sequence in 1..=MAX_DEAD_LETTERS as u64 + 5 {
            newest.push(letter(sequence, 1));
        }
        assert_eq!(
            sequences(&newest),
            (6..=MAX_DEAD_LETTERS as u64 + 5).rev().collect::<Vec<_>>()
        );
        assert_eq!(newest.body_bytes, MAX_DEAD_LETTERS);
    }

    #[test]
    fn of_too_large_dead_letters_the_newest_are_kept() {
        let mut newest = Newest::default();
        for sequence in 1..=5 {
            newest.push(letter(sequence, MAX_BODY_BYTES / 4));
        }
        newest.push(letter(6, 0));
        assert_eq!(sequences(&newest), [6, 5, 4, 3, 2]);
    }
}
