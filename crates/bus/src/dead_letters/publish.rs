//! Publishes dead letters. Publishing one again has no effect.

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;

use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::Error;
use crate::headers::{
    self, DEAD_DELIVERIES, DEAD_DETAIL, DEAD_REASON, DEAD_SEQUENCE, DEAD_SUBJECT,
};
use crate::names::{DEAD_LETTERS, dead_letter_subject};
use tarsy_engine::ports::{BrokerUnavailable, DeadLetter};

const MAX_DETAIL_BYTES: usize = 1024;

/// Publishes `letter` on the subject of its reason and alert, on which the stream accepts one message only.
pub(crate) async fn publish_dead_letter(
    nats: &Nats,
    letter: DeadLetter,
) -> Result<(), BrokerUnavailable> {
    let subject = dead_letter_subject(letter.reason, letter.alert_id);
    let reason = letter.reason.as_str();
    let mut copy = headers(&letter)?;
    copy.insert(async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, "0");
    copy.insert(async_nats::header::NATS_EXPECTED_STREAM, DEAD_LETTERS);
    let publish = nats
        .jetstream
        .publish_with_headers(subject.clone(), copy, letter.body.into());
    match tokio::time::timeout(REQUEST_TIMEOUT, async { publish.await?.await }).await {
        Ok(Ok(_)) => {
            tracing::warn!(alert_id = %letter.alert_id, reason, detail = letter.detail, "alert given up");
            metrics::counter!("tarsy_dead_letters_total", "reason" => reason).increment(1);
            Ok(())
        }
        Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(()),
        Ok(Err(error)) => {
            let source = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            Err(BrokerUnavailable(format!(
                "dead letter {subject} was not stored: {error} {source}"
            )))
        }
        Err(_) => Err(BrokerUnavailable(format!(
            "dead letter {subject} was not sent"
        ))),
    }
}

/// The alert's allowed headers, and why it was given up.
fn headers(letter: &DeadLetter) -> Result<HeaderMap, Error> {
    let mut copy = headers::for_copy_of_stored(&letter.headers);
    headers::insert(&mut copy, DEAD_REASON, letter.reason.as_str())?;
    headers::insert(&mut copy, DEAD_DETAIL, &one_line(&letter.detail))?;
    headers::insert(&mut copy, DEAD_SUBJECT, &one_line(&letter.subject))?;
    headers::insert(
        &mut copy,
        DEAD_SEQUENCE,
        &letter.stream_sequence.to_string(),
    )?;
    headers::insert(&mut copy, DEAD_DELIVERIES, &letter.deliveries.to_string())?;
    Ok(copy)
}

fn one_line(text: &str) -> String {
    let mut line = text.replace(char::is_control, " ");
    line.truncate(line.floor_char_boundary(MAX_DETAIL_BYTES));
    line
}
