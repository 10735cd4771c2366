//! Reads the present configuration of streams and consumers from the server.

use async_nats::jetstream::context::{
    ConsumerInfoErrorKind, GetStreamErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::{ErrorCode, consumer, stream};

use super::consumers::Durable;
use crate::cause::Cause;
use crate::connection::Nats;
use crate::error::{Error, JetStreamOff};

impl Nats {
    pub(crate) async fn find_stream(&self, name: &str) -> Result<Option<stream::Info>, Error> {
        match self.jetstream.get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) if is_missing(&error.kind()) => Ok(None),
            Err(error) if error.kind() == GetStreamErrorKind::Request && is_unanswered(&error) => {
                Err(self.no_jetstream())
            }
            Err(error) => Err(self.admin(name, "read", &error)),
        }
    }

    pub(super) async fn find_consumer(
        &self,
        durable: Durable,
    ) -> Result<Option<consumer::Config>, Error> {
        let object = durable.name();
        let stream = self.jetstream.get_stream_no_info(durable.stream()).await;
        let stream = stream.map_err(|error| self.admin(&object, "read", &error))?;
        match stream.consumer_info(durable.durable_name()).await {
            Ok(info) => Ok(Some(info.config)),
            Err(error)
                if matches!(
                    error.kind(),
                    ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound
                ) =>
            {
                Ok(None)
            }
            Err(error) if error.kind() == ConsumerInfoErrorKind::NoResponders => {
                Err(self.no_jetstream())
            }
            Err(error) => Err(self.admin(&object, "read", &error)),
        }
    }

    /// The error of a request to `JetStream` that no server answers.
    pub(crate) fn no_jetstream(&self) -> Error {
        let cause = match (self.client.server_info().jetstream, self.is_clustered()) {
            (true, _) => JetStreamOff::Account,
            (false, true) => JetStreamOff::Cluster,
            (false, false) => JetStreamOff::Server,
        };
        Error::NoJetStream {
            url: self.url.to_string(),
            cause,
        }
    }

    /// The error of a refused request.
    pub(crate) fn admin(
        &self,
        object: &str,
        action: &'static str,
        error: &(dyn std::error::Error + 'static),
    ) -> Error {
        let cause = match Cause::from_error(error) {
            Cause::Refused(ErrorCode::JETSTREAM_NOT_ENABLED) => JetStreamOff::Server,
            Cause::Refused(ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT) => JetStreamOff::Account,
            Cause::Refused(_) | Cause::TimedOut | Cause::Other => {
                return Error::admin(object, action, error);
            }
        };
        Error::NoJetStream {
            url: self.url.to_string(),
            cause,
        }
    }
}

/// Whether no server has subscribed to the requests of `JetStream`.
fn is_unanswered(error: &dyn std::error::Error) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<RequestError>());
    source.is_some_and(|source| source.kind() == RequestErrorKind::NoResponders)
}

fn is_missing(error: &GetStreamErrorKind) -> bool {
    matches!(error, GetStreamErrorKind::JetStream(reason) if reason.error_code() == ErrorCode::STREAM_NOT_FOUND)
}
