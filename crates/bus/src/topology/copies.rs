//! The copies of streams and consumers on a cluster, for `doctor`.

use async_nats::jetstream::stream::{self, ClusterInfo, PeerInfo};
use futures_util::future::join_all;

use super::consumers::Durable;
use super::settings::TopologySettings;
use super::streams;
use crate::connection::Nats;

/// The copies of a stream or of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCopies {
    /// `TARSY_ALERTS` or `TARSY_ALERTS/critical`.
    pub name: String,
    /// The server that leads; `None` while there is no majority.
    pub leader: Option<String>,
    /// The number of servers that have a copy, including the leader.
    pub copies: usize,
    /// The configured number of copies on the server.
    pub wanted: usize,
    /// Each copy that is not up to date.
    pub behind: Vec<CopyBehind>,
}

/// A copy that is not up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBehind {
    /// The name of its server.
    pub server: String,
    /// `offline`, or `3 operations behind`.
    pub reason: String,
}

impl Nats {
    /// The copies of each stream and consumer that can be read; none on a server without a cluster.
    pub async fn inspect_copies(&self, settings: &TopologySettings) -> Vec<StreamCopies> {
        if !self.is_clustered() {
            return Vec::new();
        }
        let expected = streams::expected(settings, self.max_payload());
        let reading = expected.iter().map(|stream| self.find_stream(&stream.name));
        let found = join_all(reading).await;
        let streams: Vec<stream::Info> = found.into_iter().flatten().flatten().collect();
        // The consumers have as many copies as their stream.
        let consumers = Durable::needed(settings).into_iter().map(|durable| {
            let mut streams = streams.iter();
            let stream = streams.find(|found| found.config.name == durable.stream());
            let wanted = stream.map(|found| found.config.num_replicas);
            async move {
                let stream = self.jetstream.get_stream_no_info(durable.stream()).await;
                let found = stream.ok()?.consumer_info(durable.durable_name()).await;
                let cluster = found.ok()?.cluster?;
                Some(StreamCopies::new(durable.name(), wanted?, &cluster))
            }
        });
        let consumers = join_all(consumers).await;
        let streams = streams.into_iter().map(|found| {
            let config = found.config;
            Some(StreamCopies::new(
                config.name,
                config.num_replicas,
                &found.cluster?,
            ))
        });
        streams.chain(consumers).flatten().collect()
    }
}

impl StreamCopies {
    fn new(name: String, wanted: usize, cluster: &ClusterInfo) -> Self {
        let behind = cluster
            .replicas
            .iter()
            .filter(|copy| copy.offline || !copy.current)
            .map(CopyBehind::new)
            .collect();
        let leader = cluster.leader.clone().filter(|leader| !leader.is_empty());
        let copies = cluster.replicas.len() + usize::from(leader.is_some());
        Self {
            name,
            leader,
            copies,
            wanted,
            behind,
        }
    }
}

impl CopyBehind {
    fn new(copy: &PeerInfo) -> Self {
        let reason = match copy.lag {
            _ if copy.offline => "offline".to_owned(),
            Some(lag) if lag > 0 => format!("{lag} operations behind"),
            _ => "not up to date".to_owned(),
        };
        Self {
            server: copy.name.clone(),
            reason,
        }
    }
}
