//! Reads the present configuration of streams and consumers from the server.

use async_nats::jetstream::context::{ConsumerInfoErrorKind, GetStreamErrorKind};
use async_nats::jetstream::{ErrorCode, consumer, stream};

use crate::bus::connection::Nats;
use crate::bus::error::Error;
use crate::bus::names::{ALERTS, Priority};

impl Nats {
    pub(in crate::bus) async fn find_stream(&self, name: &str) -> Result<Option<stream::Info>, Error> {
        match self.jetstream.get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) if is_missing(&error.kind()) => Ok(None),
            Err(error) => Err(Error::admin(name, "read", &error)),
        }
    }

    pub(super) async fn find_consumer(&self, priority: Priority) -> Result<Option<consumer::Config>, Error> {
        let object = priority.consumer();
        let stream = self.jetstream.get_stream_no_info(ALERTS).await;
        let stream = stream.map_err(|error| Error::admin(&object, "read", &error))?;
        match stream.consumer_info(priority.as_str()).await {
            Ok(info) => Ok(Some(info.config)),
            Err(error)
                if matches!(error.kind(), ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound) =>
            {
                Ok(None)
            }
            Err(error) => Err(Error::admin(&object, "read", &error)),
        }
    }
}

fn is_missing(error: &GetStreamErrorKind) -> bool {
    matches!(error, GetStreamErrorKind::JetStream(reason) if reason.error_code() == ErrorCode::STREAM_NOT_FOUND)
}
