//! One worker of the run: a process that is started again whenever it ends, and its links to the servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::process::{Signal, kill_process};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::link::Link;
use super::plan::Server;
use crate::faults::poison::aborting_worker;
use crate::support::http;
use crate::support::process::{Tarsy, children_of};

const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// Pause after a death without a command.
const PAUSE: Duration = Duration::from_millis(300);
/// Longer than the configured drain plus the delay of a lost link.
const DRAINED_WITHIN: Duration = Duration::from_secs(60);

/// A command to the keeper of a worker, which answers when it is done.
#[derive(Debug)]
enum Order {
    /// `kill -9`, and a new process after the pause.
    Kill(Duration),
    /// SIGTERM, and a new process a pause after it has drained.
    Terminate(Duration),
    Stop,
    Continue,
    KillToolServer,
    /// SIGTERM without a new process.
    End,
}

/// The state of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// Name of the current process, or of the last one.
    pub(super) name: String,
    /// Address of its metrics; `None` while it is not ready.
    pub(super) address: Option<String>,
    pub(super) stopped: bool,
}

/// The outcome of all worker processes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Processes that ended with an error and without a command: caused by poison.
    pub(super) deaths: Vec<DateTime<Utc>>,
    /// Logs with a panic, and drains that did not end.
    pub(super) wrong: Vec<String>,
}

/// One worker of the fleet.
#[derive(Debug)]
pub(super) struct Worker {
    orders: mpsc::Sender<(Order, oneshot::Sender<()>)>,
    standing: watch::Receiver<Standing>,
    broker: Link,
    database: Link,
    llm: Link,
    _keeper: JoinHandle<()>,
}

/// The parameters of its processes.
pub(super) struct Spec {
    /// Number of the worker, from 1.
    pub(super) number: usize,
    pub(super) config: String,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    /// `postgres://…` of the database, with the port left out.
    pub(super) database_url: Box<dyn Fn(u16) -> String + Send + Sync>,
}

impl Worker {
    pub(super) fn start(spec: Spec, [broker, database, llm]: [Link; 3]) -> Self {
        let env = [
            ("NATS_URL", format!("nats://127.0.0.1:{}", broker.port())),
            ("DATABASE_URL", (spec.database_url)(database.port())),
            ("TARSY_LLM_ADDR", format!("127.0.0.1:{}", llm.port())),
            ("TARSY_CONFIG", spec.config.clone()),
        ];
        let (orders, taken) = mpsc::channel(4);
        let (standing, seen) = watch::channel(Standing::default());
        let keeper = Keeper { spec, env, orders: taken, standing, generation: 0 };
        Self { orders, standing: seen, broker, database, llm, _keeper: tokio::spawn(keeper.run()) }
    }

    pub(super) fn link(&self, server: Server) -> &Link {
        match server {
            Server::Broker => &self.broker,
            Server::Database => &self.database,
            Server::LlmService => &self.llm,
        }
    }

    pub(super) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Returns when a process with another name is ready.
    pub(super) async fn succeeded(&self, name: &str) {
        let mut standing = self.standing.clone();
        standing.wait_for(|now| now.address.is_some() && now.name != name).await.expect("the keeper lives");
    }

    /// Returns when its process is ready.
    pub(super) async fn ready(&self) {
        self.succeeded("").await;
    }

    /// Whether its probe reports ready.
    pub(super) async fn takes_work(&self) -> bool {
        let Some(address) = self.standing().address else { return false };
        // The process may have ended or be stopped.
        let asked = tokio::time::timeout(ANSWERED_WITHIN, http::asked(&address, "/readyz")).await;
        asked.is_ok_and(|answer| answer.is_some_and(|answer| answer.status == 200))
    }

    pub(super) async fn kill(&self, pause: Duration) {
        self.order(Order::Kill(pause)).await;
    }

    pub(super) async fn terminate(&self, pause: Duration) {
        self.order(Order::Terminate(pause)).await;
    }

    pub(super) async fn stop(&self) {
        self.order(Order::Stop).await;
    }

    pub(super) async fn cont(&self) {
        self.order(Order::Continue).await;
    }

    pub(super) async fn kill_tool_server(&self) {
        self.order(Order::KillToolServer).await;
    }

    pub(super) async fn end(&self) {
        self.order(Order::End).await;
    }

    async fn order(&self, order: Order) {
        let (done, is_done) = oneshot::channel();
        self.orders.send((order, done)).await.expect("the keeper lives");
        is_done.await.expect("the keeper lives");
    }
}

struct Keeper {
    spec: Spec,
    env: [(&'static str, String); 4],
    orders: mpsc::Receiver<(Order, oneshot::Sender<()>)>,
    standing: watch::Sender<Standing>,
    generation: u32,
}

/// What follows the end of a process.
enum Next {
    After(Duration),
    Nothing,
}

/// An event of a process.
enum Turn {
    /// `None` when it will not become ready.
    Ready(Option<String>),
    Ended {
        well: bool,
    },
}

async fn turn_of(process: &mut Tarsy, starting: bool) -> Turn {
    if starting {
        Turn::Ready(process.ready_or_ended().await)
    } else {
        Turn::Ended { well: process.ended().await.success() }
    }
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let process = self.launch();
            match self.keep(process).await {
                Next::After(pause) => tokio::time::sleep(pause).await, // the outage itself
                Next::Nothing => return,
            }
        }
    }

    fn launch(&mut self) -> Tarsy {
        self.generation += 1;
        let name = format!("w{}-{}", self.spec.number, self.generation);
        let env: Vec<(&str, &str)> = self.env.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let process = aborting_worker(&name, &env);
        self.standing.send_replace(Standing { name, ..Standing::default() });
        process
    }

    /// Manages one process to its end.
    async fn keep(&mut self, mut process: Tarsy) -> Next {
        let mut starting = true;
        let next = loop {
            let (order, done) = tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => order,
                    None => break Next::Nothing,
                },
                turn = turn_of(&mut process, starting) => match turn {
                    Turn::Ready(address) => {
                        starting = false;
                        self.standing.send_modify(|standing| standing.address = address);
                        continue;
                    }
                    Turn::Ended { well } => {
                        if !well {
                            self.spec.ledger.lock().unwrap().deaths.push(Utc::now());
                        }
                        break Next::After(PAUSE);
                    }
                },
            };
            let next = self.obey(order, &mut process).await;
            done.send(()).ok();
            if let Some(next) = next {
                break next;
            }
        };
        self.standing.send_modify(|standing| (standing.address, standing.stopped) = (None, false));
        self.look_into(process).await;
        next
    }

    /// `Some` when the process has ended.
    async fn obey(&mut self, order: Order, process: &mut Tarsy) -> Option<Next> {
        match order {
            Order::Kill(pause) => {
                process.kill().await;
                Some(Next::After(pause))
            }
            Order::Terminate(pause) => {
                self.drain(process).await;
                Some(Next::After(pause))
            }
            Order::End => {
                self.drain(process).await;
                Some(Next::Nothing)
            }
            Order::Stop | Order::Continue => {
                let stop = matches!(order, Order::Stop);
                if stop {
                    process.stop();
                } else {
                    process.cont();
                }
                self.standing.send_modify(|standing| standing.stopped = stop);
                None
            }
            Order::KillToolServer => {
                for server in children_of(process.pid(), "evidence-server") {
                    // It may have ended by itself.
                    kill_process(server, Signal::KILL).ok();
                }
                None
            }
        }
    }

    async fn drain(&self, process: &mut Tarsy) {
        self.standing.send_modify(|standing| standing.address = None);
        process.terminate();
        if tokio::time::timeout(DRAINED_WITHIN, process.ended()).await.is_err() {
            let wrong = format!("{} does not end within {DRAINED_WITHIN:?} of a SIGTERM", self.standing.borrow().name);
            self.spec.ledger.lock().unwrap().wrong.push(wrong);
            process.kill().await;
        }
    }

    /// A panic is not an injected fault.
    async fn look_into(&self, process: Tarsy) {
        let log = process.log();
        let name = self.standing.borrow().name.clone();
        if let Some(at) = log.find("panicked at") {
            let said: String = log[at..].lines().take(3).collect::<Vec<_>>().join(" ");
            self.spec.ledger.lock().unwrap().wrong.push(format!("{name} {said}"));
        }
        if let Some(directory) = std::env::var_os("TARSY_CHAOS_LOGS") {
            std::fs::write(std::path::Path::new(&directory).join(format!("{name}.log")), log).ok();
        }
    }
}
