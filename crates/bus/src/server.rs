//! The version, limits and round-trip time of the server, for `doctor`.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::connection::{Nats, REQUEST_TIMEOUT};
use super::error::{Error, within};

/// The server of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// The version of nats-server: `2.12.1`.
    pub version: String,
    /// The largest message that it accepts, in bytes.
    pub max_payload: usize,
    /// The configured URLs without credentials, separated by commas.
    pub url: String,
}

/// The room that the stream of alerts leaves below `max_payload`: for copies, and for the headers of an alert.
const ALERT_HEADROOM_BYTES: usize = 96 * 1024;

impl Nats {
    /// The largest body of an alert that the connected server stores with its headers. Of a server with a very small
    /// `max_payload` a quarter of it.
    pub fn max_alert_bytes(&self) -> usize {
        let max_payload = self.client.max_payload();
        max_payload
            .saturating_sub(ALERT_HEADROOM_BYTES)
            .max(max_payload / 4)
    }

    /// The server to which the connection is open now.
    pub fn server(&self) -> ServerInfo {
        let info = self.client.server_info();
        ServerInfo {
            version: info.version,
            max_payload: info.max_payload,
            url: self.url.to_string(),
        }
    }

    /// The round-trip time of a message.
    ///
    /// # Errors
    ///
    /// When the message does not come back within 10 s, or the connection is lost meanwhile.
    pub async fn rtt(&self) -> Result<Duration, Error> {
        let mut connection = self.watch_connection();
        let round = async {
            let inbox = self.client.new_inbox();
            let mut echo = self.client.subscribe(inbox.clone()).await?;
            let begun = Instant::now();
            self.client.publish(inbox, Vec::new().into()).await?;
            tokio::select! {
                biased;
                Some(_) = echo.next() => Ok(begun.elapsed()),
                _ = connection.changed() => Err(Error::Unavailable("the connection was lost".to_owned())),
            }
        };
        within(REQUEST_TIMEOUT, "a message did not come back", round).await
    }
}
