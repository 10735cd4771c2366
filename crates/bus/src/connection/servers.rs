//! The servers that a connection may use: changes to another one, and reads the file with their addresses again.

use parking_lot::Mutex;
use std::time::Duration;

use async_nats::Client;
use tokio::time::Instant;

use super::Nats;
use crate::address::Address;
use crate::error::Error;
use tarsy_config::Secret;

/// The time between two reads of the file.
const FILE_INTERVAL: Duration = Duration::from_secs(2);
/// The longest time that the client may take to answer, and a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The client selects a server at random, so it may select the same one again.
const MAX_TRIES: u32 = 6;
/// The time between two changes, so that a cluster without a majority is not flooded with connections. It doubles.
const MIN_CHANGE_INTERVAL: Duration = Duration::from_secs(10);
const MAX_CHANGE_INTERVAL: Duration = Duration::from_secs(120);

/// The time from which the next change of the server is allowed. Clones of a connection share it.
#[derive(Debug, Default)]
pub(crate) struct ServerChanges(Mutex<Option<NextChange>>);

#[derive(Clone, Copy, Debug)]
struct NextChange {
    not_before: Instant,
    interval: Duration,
}

impl ServerChanges {
    /// The server of the connection works: the next change is allowed at once.
    pub(crate) fn reset(&self) {
        *self.0.lock() = None;
    }

    /// Whether a change is allowed now; the next one is later.
    fn begin(&self) -> bool {
        let mut next = self.0.lock();
        let interval = match *next {
            Some(NextChange { not_before, .. }) if Instant::now() < not_before => return false,
            Some(NextChange { interval, .. }) => (2 * interval).min(MAX_CHANGE_INTERVAL),
            None => MIN_CHANGE_INTERVAL,
        };
        *next = Some(NextChange {
            not_before: Instant::now() + interval,
            interval,
        });
        true
    }
}

impl Nats {
    /// Connects to another server of the cluster, because this one cannot reach the majority. Does nothing while the
    /// connection is unavailable, when only one server is known, and soon after another change.
    pub async fn change_server(&self) {
        let known = tokio::time::timeout(CONNECT_TIMEOUT, self.client.server_pool()).await;
        let has_others = matches!(known, Ok(Ok(pool)) if pool.len() > 1);
        if !has_others || !self.connection_state().connected || !self.changes.begin() {
            return;
        }
        let left = self.client.server_info();
        tracing::warn!(
            server = left.server_name,
            "nats server changed: it does not reach the queue"
        );
        for _ in 0..MAX_TRIES {
            match self.reconnect().await {
                Ok(()) if self.client.server_info().server_id != left.server_id => break,
                Ok(()) => {}
                Err(error) => tracing::debug!(%error, "nats server not changed"),
            }
        }
    }

    async fn reconnect(&self) -> Result<(), Error> {
        let mut state = self.watch_connection();
        let before = self.connection_state().connections;
        let requested = self.client.force_reconnect().await;
        requested.map_err(|error| Error::Unavailable(error.to_string()))?;
        let connected = state.wait_for(|state| state.connected && state.connections > before);
        if !matches!(
            tokio::time::timeout(CONNECT_TIMEOUT, connected).await,
            Ok(Ok(_))
        ) {
            return Err(Error::Unavailable("no server answers".to_owned()));
        }
        // The client knows its new server when it has handled a command.
        self.flush().await
    }
}

/// Replaces the servers of the client when `file` changes, for as long as the future is polled. The open connection
/// stays, and the next one goes to a server of the new list.
///
/// The client takes a new list only while it is connected. So a list that changes after all old servers have gone
/// becomes known only when one of them is back.
pub(super) async fn follow_file(client: Client, file: Secret, mut known: String) {
    let mut faulty = String::new();
    loop {
        tokio::time::sleep(FILE_INTERVAL).await; // interval between polls
        let Ok(text) = file.read() else { continue };
        if text == known || text == faulty {
            continue;
        }
        match Address::parse(&text) {
            Ok(Address {
                servers, redacted, ..
            }) => match client.set_server_pool(servers.as_slice()).await {
                Ok(()) => {
                    tracing::info!(servers = redacted, "nats servers reloaded");
                    known = text;
                    faulty.clear();
                }
                Err(error) => tracing::debug!(%error, "nats servers not replaced: trying again"),
            },
            Err(error) => {
                tracing::warn!(%error, "nats servers not replaced: the file is faulty");
                faulty = text;
            }
        }
    }
}
