//! Services: a listener for each port, which passes connections on to pods that are ready.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::super::helm::text;
use super::api::{Api, Refusal};
use super::container::each;

type Endpoints = Arc<Mutex<Vec<SocketAddr>>>;

/// The services of a namespace.
#[derive(Debug)]
pub(super) struct Services {
    namespace: String,
    /// The endpoints of each port, by the name of its service and the port.
    open: BTreeMap<(String, u16), (SocketAddr, Endpoints)>,
    listening: JoinSet<()>,
}

/// An address of the cluster, here.
pub(super) fn here(address: &str) -> String {
    format!(
        "127.{}",
        address
            .strip_prefix("10.")
            .expect("an address of the cluster")
    )
}

impl Services {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            open: BTreeMap::new(),
            listening: JoinSet::new(),
        }
    }

    /// `host:port` of every service in each spelling, and its address here.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        let named = self
            .open
            .iter()
            .flat_map(|((service, port), (address, _))| {
                let space = &self.namespace;
                let ends = [
                    format!(".{space}.svc.cluster.local"),
                    format!(".{space}.svc"),
                    String::new(),
                ];
                ends.map(|end| (format!("{service}{end}:{port}"), address.to_string()))
            });
        named.collect()
    }

    /// Opens the ports of new services, and reads the endpoints of all.
    pub(super) async fn renew(&mut self, api: &Api, network: u8) -> Result<(), Refusal> {
        let space = &self.namespace;
        let services = api
            .list(&format!("/api/v1/namespaces/{space}/services"))
            .await?;
        let slices = api
            .list(&format!(
                "/apis/discovery.k8s.io/v1/namespaces/{space}/endpointslices"
            ))
            .await?;
        let mut present = BTreeSet::new();
        for service in &services {
            for port in each(&service["spec"]["ports"]) {
                let key = (
                    text(&service["metadata"]["name"]).to_owned(),
                    u16::try_from(port["port"].as_u64().unwrap()).unwrap(),
                );
                present.insert(key.clone());
                let endpoints = endpoints_of(&slices, &key.0, text(&port["name"]));
                if let Some((_, known)) = self.open.get(&key) {
                    *known.lock().unwrap() = endpoints;
                    continue;
                }
                let address = match text(&service["spec"]["clusterIP"]) {
                    // A headless service leads clients to the pods themselves, so it has an address only here.
                    "None" => format!("127.{network}.201.{}", self.open.len() + 1),
                    address => here(address),
                };
                let listener = TcpListener::bind((address.as_str(), key.1)).await.unwrap();
                let known = Arc::new(Mutex::new(endpoints));
                self.open
                    .insert(key, (listener.local_addr().unwrap(), Arc::clone(&known)));
                self.listening.spawn(pass_on(listener, known));
            }
        }
        for (key, (_, endpoints)) in &self.open {
            if !present.contains(key) {
                endpoints.lock().unwrap().clear();
            }
        }
        Ok(())
    }
}

fn endpoints_of(slices: &[Value], service: &str, port: &str) -> Vec<SocketAddr> {
    let own = slices
        .iter()
        .filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service);
    let found = own.flat_map(|slice| {
        let number = each(&slice["ports"])
            .find(|found| found["name"] == port)
            .and_then(|port| port["port"].as_u64());
        let ready =
            each(&slice["endpoints"]).filter(|endpoint| endpoint["conditions"]["ready"] == true);
        ready.filter_map(move |endpoint| {
            format!("{}:{}", here(text(&endpoint["addresses"][0])), number?)
                .parse::<SocketAddr>()
                .ok()
        })
    });
    found.collect()
}

/// Each connection goes to the endpoint that is next; one without an endpoint is closed.
async fn pass_on(listener: TcpListener, endpoints: Endpoints) {
    let (mut connections, mut next) = (JoinSet::new(), 0);
    while let Ok((mut client, _)) = listener.accept().await {
        let chosen = {
            let endpoints = endpoints.lock().unwrap();
            next += 1;
            endpoints.get(next % endpoints.len().max(1)).copied()
        };
        connections.spawn(async move {
            let Some(chosen) = chosen else { return };
            if let Ok(mut pod) = TcpStream::connect(chosen).await {
                tokio::io::copy_bidirectional(&mut client, &mut pod)
                    .await
                    .ok();
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
