//! A cluster of three real servers on loopback, with faults: killed, paused, cut off, replaced one by one.

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::stream::ClusterInfo;
use async_nats::jetstream::{self, Context};
use rustix::process::Signal;

use super::NatsServer;
use crate::support::http;
use crate::support::link::{Link, Mode};
use crate::support::process::ports::free_port;
use crate::support::wait::eventually_within;

pub(crate) const SERVERS: usize = 3;
/// An election takes 4 s to 9 s, and several of them are needed when the disk is busy.
const LEADER_WITHIN: Duration = Duration::from_secs(90);
/// A server that was cut off takes part in several elections before it reads what it has missed.
const WHOLE_WITHIN: Duration = Duration::from_secs(180);

/// Servers `n0`, `n1` and `n2` with the tags `disk:ssd` and `az:0` to `az:2`. Each route between two of them leads
/// through a proxy of its own.
#[derive(Debug)]
pub(crate) struct NatsCluster {
    servers: Vec<NatsServer>,
    /// `links[from][to]`: through it `from` connects to `to`.
    links: Vec<Vec<Link>>,
    /// The ports on which the servers report their clients.
    monitoring: Vec<u16>,
}

impl NatsCluster {
    /// Starts the servers and waits until they have a leader.
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts the servers with another program than that of the other tests.
    pub(crate) async fn start_with(program: Option<&Path>) -> Self {
        let free: Vec<u16> = std::iter::repeat_with(free_port)
            .take(2 * SERVERS + 1)
            .collect();
        let (ports, monitoring, closed) = (
            &free[..SERVERS],
            &free[SERVERS..2 * SERVERS],
            free[2 * SERVERS],
        );
        let mut cluster = Self {
            servers: Vec::new(),
            links: Vec::new(),
            monitoring: monitoring.to_vec(),
        };
        for (number, port) in ports.iter().enumerate() {
            let mut links = Vec::new();
            for to in ports {
                links.push(Link::to(*to).await);
            }
            let routes = links.iter().enumerate().filter(|(to, _)| *to != number);
            let routes: Vec<String> = routes
                .map(|(_, link)| format!("nats://127.0.0.1:{}", link.port()))
                .collect();
            // Servers send each other their addresses. Nothing listens at these, so all routes use the proxies.
            let settings = format!(
                "server_name: n{number}\nserver_tags: [\"az:{number}\", \"disk:ssd\"]\n\
                 lame_duck_duration: \"30s\"\nlame_duck_grace_period: \"1s\"\nhttp: \"127.0.0.1:{}\"\n\
                 cluster {{ name: tarsy-test, listen: \"127.0.0.1:{port}\", advertise: \"127.0.0.1:{closed}\", routes: [{}] }}",
                monitoring[number],
                routes.join(", ")
            );
            let mut server = NatsServer::stopped(free_port(), &settings);
            if let Some(program) = program {
                server.program = program.to_owned();
            }
            server.launch().await;
            cluster.servers.push(server);
            cluster.links.push(links);
        }
        cluster.has_meta_leader().await;
        cluster
    }

    /// The URL of the first server.
    pub(crate) fn url(&self) -> String {
        self.servers[0].url()
    }

    /// The URLs of all servers.
    pub(crate) fn urls(&self) -> String {
        self.servers
            .iter()
            .map(NatsServer::url)
            .collect::<Vec<_>>()
            .join(",")
    }

    pub(crate) fn server(&mut self, number: usize) -> &mut NatsServer {
        &mut self.servers[number]
    }

    /// A plain client of all servers, or of one alone.
    pub(crate) async fn jetstream(&self, only: Option<usize>) -> Context {
        let urls = only.map_or_else(|| self.urls(), |number| self.servers[number].url());
        let servers: Vec<async_nats::ServerAddr> =
            urls.split(',').map(|url| url.parse().unwrap()).collect();
        let mut options =
            async_nats::ConnectOptions::new().request_timeout(Some(Duration::from_secs(2)));
        if only.is_some() {
            options = options.ignore_discovered_servers();
        }
        let client = options
            .connect(servers.as_slice())
            .await
            .expect("a connection");
        let context = jetstream::context::ContextBuilder::new().timeout(Duration::from_secs(2));
        context.build(client)
    }

    /// Returns when the cluster can create streams.
    pub(crate) async fn has_meta_leader(&self) {
        let jetstream = self.jetstream(None).await;
        // The servers answer with an error until there is a leader.
        let led = async || jetstream.query_account().await.is_ok();
        eventually_within(LEADER_WITHIN, "the servers have a leader", led).await;
    }

    /// The number of the server that leads a stream. Waits for a leader.
    pub(crate) async fn leader_of(&self, stream: &str) -> usize {
        let mut leader = None;
        eventually_within(
            LEADER_WITHIN,
            &format!("{stream} has a leader"),
            async || {
                leader = self.leader_now(stream).await;
                leader.is_some()
            },
        )
        .await;
        leader.expect("a leader")
    }

    /// The number of the server that leads a stream now; `None` while there is no leader.
    pub(crate) async fn leader_now(&self, stream: &str) -> Option<usize> {
        let leader = cluster_of(&self.jetstream(None).await, stream)
            .await?
            .leader?;
        leader.trim_start_matches('n').parse().ok()
    }

    /// Returns when every copy of these streams is up to date.
    pub(crate) async fn is_whole(&self, streams: &[&str]) {
        let jetstream = self.jetstream(None).await;
        for stream in streams {
            let mut shown = None;
            eventually_within(
                WHOLE_WITHIN,
                &format!("every copy of {stream} is up to date"),
                async || {
                    let found = cluster_of(&jetstream, stream).await;
                    let is_whole = found.as_ref().is_some_and(|cluster| {
                        let current = cluster
                            .replicas
                            .iter()
                            .filter(|copy| copy.current && !copy.offline)
                            .count();
                        cluster.leader.is_some() && current == SERVERS - 1
                    });
                    let copies = found.map(|cluster| (cluster.leader, cluster.replicas.len()));
                    if shown.as_ref() != Some(&copies) {
                        println!("{stream}: leader and number of other copies {copies:?}");
                        shown = Some(copies);
                    }
                    is_whole
                },
            )
            .await;
        }
    }

    /// Cuts one server off from the others. Its clients stay connected.
    pub(crate) fn partition(&self, number: usize, mode: Mode) {
        for (from, links) in self.links.iter().enumerate() {
            for (to, link) in links.iter().enumerate() {
                if from != to && (from == number || to == number) {
                    link.set(mode);
                }
            }
        }
    }

    /// Repairs all routes.
    pub(crate) fn heal(&self) {
        self.links
            .iter()
            .flatten()
            .for_each(|link| link.set(Mode::Open));
    }

    /// Stops one server in lame-duck mode: it gives up its leaders, then its clients, then ends. Starts it again, with
    /// another program if one is given.
    pub(crate) async fn roll(&mut self, number: usize, program: Option<&Path>) {
        let server = &mut self.servers[number];
        server.signal(Signal::USR2);
        server.ended().await;
        if let Some(program) = program {
            server.program = program.to_owned();
        }
        server.restart().await;
    }

    /// The versions of the servers.
    pub(crate) async fn versions(&self) -> Vec<String> {
        let mut versions = Vec::new();
        for number in 0..SERVERS {
            versions.push(
                self.jetstream(Some(number))
                    .await
                    .client()
                    .server_info()
                    .version,
            );
        }
        versions
    }

    /// The names of the clients of a server: `tarsy worker`.
    pub(crate) async fn clients_of(&self, number: usize) -> Vec<String> {
        let address = format!("127.0.0.1:{}", self.monitoring[number]);
        let listed = http::get(&address, "/connz").await.json();
        let clients = listed["connections"].as_array().expect("connections");
        clients
            .iter()
            .filter_map(|client| client["name"].as_str().map(str::to_owned))
            .collect()
    }
}

async fn cluster_of(jetstream: &Context, stream: &str) -> Option<ClusterInfo> {
    jetstream
        .get_stream(stream)
        .await
        .ok()?
        .cached_info()
        .cluster
        .clone()
}
