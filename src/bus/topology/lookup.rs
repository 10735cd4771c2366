//! Reads the present configuration of streams and consumers from the server.

use async_nats::jetstream::context::{ConsumerInfoErrorKind, GetStreamErrorKind};
use async_nats::jetstream::{ErrorCode, consumer, stream};

use super::admin_error;
use crate::bus::connection::Nats;
use crate::bus::error::Error;
use crate::bus::names::ALERTS;

impl Nats {
    pub(super) async fn find_stream(&self, name: &str) -> Result<Option<stream::Info>, Error> {
        match self.jetstream().get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => {
                let code = match error.kind() {
                    GetStreamErrorKind::JetStream(reason) => Some(reason.error_code()),
                    GetStreamErrorKind::EmptyName
                    | GetStreamErrorKind::Request
                    | GetStreamErrorKind::InvalidStreamName => None,
                };
                if code == Some(ErrorCode::STREAM_NOT_FOUND) {
                    Ok(None)
                } else {
                    Err(admin_error(name, "read", &error))
                }
            }
        }
    }

    pub(super) async fn find_consumer(&self, name: &str) -> Result<Option<consumer::Config>, Error> {
        let object = format!("{ALERTS}/{name}");
        let stream = self.jetstream().get_stream_no_info(ALERTS).await;
        let stream = stream.map_err(|error| admin_error(&object, "read", &error))?;
        match stream.consumer_info(name).await {
            Ok(info) => Ok(Some(info.config)),
            Err(error)
                if matches!(error.kind(), ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound) =>
            {
                Ok(None)
            }
            Err(error) => Err(admin_error(&object, "read", &error)),
        }
    }
}
