//! A real control plane: etcd, kube-apiserver and kube-controller-manager on free ports of loopback.
//!
//! Tests that run at the same time share one, each with a namespace of its own. `./dev kube` builds the programs; the
//! variables that name them are those of envtest.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rcgen::KeyPair;
use tokio::sync::Mutex;

use super::api::Api;
use crate::support::monitoring::program;
use crate::support::nats::killed_with_this_process;
use crate::support::wait::eventually_within;

const READY_WITHIN: Duration = Duration::from_secs(120);
/// The controllers that a chart meets. None of them evicts the pods of a node whose kubelet is a part of this test.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,statefulset-controller,job-controller,\
     endpointslice-controller,disruption-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,\
     namespace-controller,garbage-collector-controller,ttl-after-finished-controller,clusterrole-aggregation-controller";
pub(super) const ADMINISTRATOR: &str = "token-of-the-administrator";
/// Installs charts, with the rights that tests give to it.
pub(super) const DEPLOYER: &str = "token-of-the-deployer";
const CONTROLLER_MANAGER: &str = "token-of-the-controllers";

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: PathBuf,
}

impl Programs {
    /// `None`, with a message about the skipped test, where they are not installed.
    pub(super) fn find() -> Option<Self> {
        Some(Self {
            etcd: program("ETCD_BIN")?,
            api_server: program("KUBE_APISERVER_BIN")?,
            controller_manager: program("KUBE_CONTROLLER_MANAGER_BIN")?,
        })
    }
}

/// Ends with its last user.
#[derive(Debug)]
pub(super) struct ControlPlane {
    pub(super) api: Api,
    pub(super) server: String,
    pub(super) authority: PathBuf,
    /// Cluster addresses are 10.`network`.*.*, and 127.`network`.*.* is where their pods and services are here.
    pub(super) network: u8,
    addresses: AtomicU8,
    _processes: [Processes; 2],
    _folder: tempfile::TempDir,
}

/// The running control plane, or a new one.
pub(super) async fn shared(programs: &Programs) -> Arc<ControlPlane> {
    static SHARED: Mutex<Weak<ControlPlane>> = Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(running) = shared.upgrade() {
        return running;
    }
    let started = Arc::new(ControlPlane::start(programs).await);
    *shared = Arc::downgrade(&started);
    started
}

impl ControlPlane {
    async fn start(programs: &Programs) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tarsy-test-kube-")
            .tempdir()
            .unwrap();
        let path = |name: &str| folder.path().join(name);
        let network = fastrand::u8(2..=250);
        // All ports stay bound until the last one is known, so they differ.
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners
            .each_ref()
            .map(|listener| listener.local_addr().unwrap().port());
        drop(listeners);
        let key = KeyPair::generate().unwrap();
        std::fs::write(path("accounts.key"), key.serialize_pem()).unwrap();
        std::fs::write(path("accounts.pub"), key.public_key_pem()).unwrap();
        let tokens = format!(
            "{ADMINISTRATOR},administrator,1,system:masters\n{DEPLOYER},deployer,2\n\
             {CONTROLLER_MANAGER},system:kube-controller-manager,3\n"
        );
        std::fs::write(path("tokens.csv"), tokens).unwrap();
        let servers = [
            etcd(programs, folder.path(), ports),
            api_server(programs, folder.path(), (ports, network)),
        ];
        let servers = Processes::start(servers.into());
        let (server, authority) = (
            format!("https://127.0.0.1:{}", ports[2]),
            path("certificates/apiserver.crt"),
        );
        eventually_within(
            READY_WITHIN,
            "the API server has a certificate",
            async || authority.exists(),
        )
        .await;
        let api = Api::new(&server, &authority, ADMINISTRATOR);
        let is_ready = async || api.get("/readyz").await.is_ok();
        eventually_within(READY_WITHIN, "the API server is ready", is_ready).await;
        std::fs::write(
            path("controllers.yaml"),
            kubeconfig(&server, &authority, CONTROLLER_MANAGER),
        )
        .unwrap();
        let mut controllers = logged(&programs.controller_manager, &path("controllers.log"));
        controllers.arg(format!(
            "--kubeconfig={}",
            path("controllers.yaml").display()
        ));
        controllers.arg(format!(
            "--service-account-private-key-file={}",
            path("accounts.key").display()
        ));
        controllers.arg(format!("--root-ca-file={}", authority.display()));
        controllers.arg("--use-service-account-credentials");
        controllers.args([
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]);
        controllers.arg(format!("--controllers={CONTROLLERS}"));
        let controllers = Processes::start(vec![controllers]);
        let admin = "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin";
        let has_rules = async || {
            api.get(admin)
                .await
                .is_ok_and(|role| role["rules"].is_array())
        };
        eventually_within(READY_WITHIN, "the controllers work", has_rules).await;
        let processes = [controllers, servers];
        Self {
            api,
            server,
            authority,
            network,
            addresses: AtomicU8::new(1),
            _processes: processes,
            _folder: folder,
        }
    }

    /// An address for a pod that no other pod has.
    pub(super) fn pod_address(&self) -> String {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        format!("10.{}.200.{}", self.network, number.max(1))
    }

    /// A kubeconfig for an installation with the rights of the deployer.
    pub(super) fn kubeconfig(&self) -> String {
        kubeconfig(&self.server, &self.authority, DEPLOYER)
    }
}

fn etcd(programs: &Programs, folder: &Path, ports: [u16; 3]) -> Command {
    let (client, peer) = (
        format!("http://127.0.0.1:{}", ports[0]),
        format!("http://127.0.0.1:{}", ports[1]),
    );
    let mut etcd = logged(&programs.etcd, &folder.join("etcd.log"));
    etcd.arg(format!("--data-dir={}", folder.join("etcd").display()))
        .arg("--unsafe-no-fsync");
    etcd.arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"));
    etcd.arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"));
    etcd.arg(format!("--initial-cluster=default={peer}"));
    etcd
}

fn api_server(programs: &Programs, folder: &Path, (ports, network): ([u16; 3], u8)) -> Command {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut server = logged(&programs.api_server, &folder.join("apiserver.log"));
    server.arg(format!("--etcd-servers=http://127.0.0.1:{}", ports[0]));
    server
        .arg(format!("--secure-port={}", ports[2]))
        .arg("--bind-address=127.0.0.1");
    // A loopback address would be refused; without a reconciler no other is used.
    server.args([
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
    ]);
    server.arg(format!("--cert-dir={}", path("certificates")));
    server
        .arg(format!("--token-auth-file={}", path("tokens.csv")))
        .arg("--authorization-mode=RBAC");
    server.arg(format!("--service-cluster-ip-range=10.{network}.0.0/17"));
    server.arg("--service-account-issuer=https://kubernetes.default.svc");
    server.arg(format!(
        "--service-account-key-file={}",
        path("accounts.pub")
    ));
    server.arg(format!(
        "--service-account-signing-key-file={}",
        path("accounts.key")
    ));
    server
}

fn kubeconfig(server: &str, authority: &Path, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: \"{server}\", certificate-authority: \"{}\"}}}}]\n\
         users: [{{name: u, user: {{token: {token}}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n",
        authority.display()
    )
}

/// A command that writes both outputs to this file.
fn logged(program: &Path, log: &Path) -> Command {
    let mut command = killed_with_this_process(program);
    let log = std::fs::File::create(log).unwrap();
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    command
}

/// Processes that are killed when this is dropped, the last one first.
///
/// They belong to a thread of their own, because the kernel may end a process together with the thread that started it,
/// and a test is a thread.
#[derive(Debug)]
struct Processes {
    stop: Option<Sender<()>>,
    owner: Option<JoinHandle<()>>,
}

impl Processes {
    fn start(commands: Vec<Command>) -> Self {
        let (stop, stopped) = channel::<()>();
        let owner = std::thread::spawn(move || {
            let children = commands
                .into_iter()
                .map(|mut command| command.spawn().unwrap());
            let children: Vec<_> = children.collect();
            stopped.recv().ok();
            for mut child in children.into_iter().rev() {
                child.kill().ok();
                child.wait().ok();
            }
        });
        Self {
            stop: Some(stop),
            owner: Some(owner),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(owner) = self.owner.take() {
            owner.join().ok();
        }
    }
}
