//! Reads single messages from a stream's leader, because a replica that answers a direct get may be out of date.

use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Info, RawMessageBuilder, RawMessageErrorKind, WithHeaders};

use crate::connection::Nats;
use crate::error::{Error, within};

const GET_TIMEOUT: Duration = Duration::from_secs(5);

/// The message at `sequence`, if there is one.
pub(crate) async fn message_at(
    nats: &Nats,
    stream: &str,
    sequence: u64,
) -> Result<Option<StreamMessage>, Error> {
    if sequence == 0 {
        return Ok(None);
    }
    read(nats, stream, |builder| builder.sequence(sequence)).await
}

/// The first message on `filter` at `sequence` or after it.
pub(crate) async fn first_from(
    nats: &Nats,
    stream: &str,
    filter: &str,
    sequence: u64,
) -> Result<Option<StreamMessage>, Error> {
    read(nats, stream, |builder| {
        builder.sequence(sequence).next_by_subject(filter)
    })
    .await
}

/// The last message on `subject`.
pub(crate) async fn last_on_subject(
    nats: &Nats,
    stream: &str,
    subject: &str,
) -> Result<Option<StreamMessage>, Error> {
    read(nats, stream, |builder| builder.last_by_subject(subject)).await
}

async fn read(
    nats: &Nats,
    stream: &str,
    select: impl FnOnce(RawMessageBuilder<WithHeaders>) -> RawMessageBuilder<WithHeaders> + Send,
) -> Result<Option<StreamMessage>, Error> {
    let read = async {
        let handle = nats.jetstream.get_stream_no_info(stream).await;
        let handle = handle.map_err(|error| Error::Unavailable(format!("{stream}: {error}")))?;
        match select(handle.raw_message_builder()).send().await {
            Ok(message) => Ok(Some(message)),
            Err(error) => match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(reason) => {
                    Err(Error::admin(stream, "read", &reason))
                }
                RawMessageErrorKind::InvalidSubject | RawMessageErrorKind::Other => {
                    Err(Error::Unavailable(format!("{stream}: {error}")))
                }
            },
        }
    };
    within(GET_TIMEOUT, format!("{stream} gave no answer"), read).await
}

/// The configuration and the state of a stream.
pub(crate) async fn stream_info(nats: &Nats, stream: &str, limit: Duration) -> Result<Info, Error> {
    let read = async {
        let handle = nats.jetstream.get_stream(stream).await;
        let handle = handle.map_err(|error| Error::Unavailable(format!("{stream}: {error}")))?;
        Ok(handle.cached_info().clone())
    };
    within::<_, Error>(limit, format!("{stream} gave no answer"), read).await
}
