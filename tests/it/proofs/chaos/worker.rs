//! A worker of the chaos run: a process that is started again whenever it ends, and its links to the servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::process::{Signal, kill_process};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::plan::Server;
use crate::faults::poison::aborting_worker;
use crate::support::http;
use crate::support::link::Link;
use crate::support::process::{Tarsy, children_of};

const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// Pause after a death without a command.
const PAUSE: Duration = Duration::from_millis(300);
/// The configured drain timeout and the delay of a lost link take less together.
const DRAINED_WITHIN: Duration = Duration::from_secs(60);

/// A command to the supervisor of a worker, which replies when it is done.
#[derive(Debug)]
enum Command {
    /// `kill -9`, and a new process after the pause.
    Kill(Duration),
    /// SIGTERM, and a new process a pause after it has drained.
    Terminate(Duration),
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
    KillToolServer,
    /// SIGTERM without a new process.
    End,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerState {
    /// Name of the current process, or of the last one.
    pub(super) name: String,
    /// Address of its metrics; `None` while it is not ready.
    pub(super) address: Option<String>,
    pub(super) paused: bool,
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
    commands: mpsc::Sender<(Command, oneshot::Sender<()>)>,
    state: watch::Receiver<WorkerState>,
    broker: Link,
    database: Link,
    llm: Link,
    _supervisor: JoinHandle<()>,
}

/// The parameters of a worker's processes.
pub(super) struct Spec {
    /// Number of the worker, from 1.
    pub(super) number: usize,
    pub(super) config: String,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    /// The URL of the database for a port.
    pub(super) database_url: Box<dyn Fn(u16) -> String + Send + Sync>,
}

impl Worker {
    pub(super) fn start(spec: Spec, [broker, database, llm]: [Link; 3]) -> Self {
        // Every other worker has a pod, in which its sessions continue as soon as it is started again.
        let uid = if spec.number % 2 == 1 {
            format!("pod {}", spec.number)
        } else {
            String::new()
        };
        let env = [
            ("TARSY_POD_UID", uid),
            (
                "TARSY_POD_STATE",
                format!("{}.state-{}", spec.config, spec.number),
            ),
            ("NATS_URL", format!("nats://127.0.0.1:{}", broker.port())),
            ("DATABASE_URL", (spec.database_url)(database.port())),
            ("TARSY_LLM_ADDR", format!("127.0.0.1:{}", llm.port())),
            ("TARSY_CONFIG", spec.config.clone()),
        ];
        let (commands, received) = mpsc::channel(4);
        let (state, seen) = watch::channel(WorkerState::default());
        let supervisor = Supervisor {
            spec,
            env,
            commands: received,
            state,
            generation: 0,
        };
        Self {
            commands,
            state: seen,
            broker,
            database,
            llm,
            _supervisor: tokio::spawn(supervisor.run()),
        }
    }

    pub(super) fn link(&self, server: Server) -> &Link {
        match server {
            Server::Broker => &self.broker,
            Server::Database => &self.database,
            Server::LlmService => &self.llm,
        }
    }

    pub(super) fn state(&self) -> WorkerState {
        self.state.borrow().clone()
    }

    /// Returns when a process with another name is ready.
    pub(super) async fn succeeded(&self, name: &str) {
        let mut state = self.state.clone();
        state
            .wait_for(|now| now.address.is_some() && now.name != name)
            .await
            .expect("the supervisor is running");
    }

    /// Returns when its process is ready.
    pub(super) async fn ready(&self) {
        self.succeeded("").await;
    }

    /// Whether its probe reports ready.
    pub(super) async fn takes_work(&self) -> bool {
        let Some(address) = self.state().address else {
            return false;
        };
        // The process may have ended or be paused.
        let asked = tokio::time::timeout(ANSWERED_WITHIN, http::try_get(&address, "/readyz")).await;
        asked.is_ok_and(|answer| answer.is_some_and(|answer| answer.status == 200))
    }

    pub(super) async fn kill(&self, pause: Duration) {
        self.command(Command::Kill(pause)).await;
    }

    pub(super) async fn terminate(&self, pause: Duration) {
        self.command(Command::Terminate(pause)).await;
    }

    pub(super) async fn pause(&self) {
        self.command(Command::Pause).await;
    }

    pub(super) async fn resume(&self) {
        self.command(Command::Resume).await;
    }

    pub(super) async fn kill_tool_server(&self) {
        self.command(Command::KillToolServer).await;
    }

    pub(super) async fn end(&self) {
        self.command(Command::End).await;
    }

    async fn command(&self, command: Command) {
        let (done, is_done) = oneshot::channel();
        self.commands
            .send((command, done))
            .await
            .expect("the supervisor is running");
        is_done.await.expect("the supervisor is running");
    }
}

struct Supervisor {
    spec: Spec,
    env: [(&'static str, String); 6],
    commands: mpsc::Receiver<(Command, oneshot::Sender<()>)>,
    state: watch::Sender<WorkerState>,
    generation: u32,
}

/// The next action after the end of a process.
enum Next {
    After(Duration),
    Nothing,
}

/// The part of a process's life.
#[derive(Clone, Copy)]
enum Phase {
    Starting,
    Running,
}

enum ProcessEvent {
    /// The address of its metrics; `None` if the process ended before it was ready.
    Ready(Option<String>),
    Succeeded,
    Failed,
}

async fn next_event(process: &mut Tarsy, phase: Phase) -> ProcessEvent {
    match phase {
        Phase::Starting => ProcessEvent::Ready(process.ready_or_ended().await),
        Phase::Running if process.ended().await.success() => ProcessEvent::Succeeded,
        Phase::Running => ProcessEvent::Failed,
    }
}

impl Supervisor {
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
        let env: Vec<(&str, &str)> = self
            .env
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let process = aborting_worker(&name, &env);
        self.state.send_replace(WorkerState {
            name,
            ..WorkerState::default()
        });
        process
    }

    /// Executes the commands for one process until it ends.
    async fn keep(&mut self, mut process: Tarsy) -> Next {
        let mut phase = Phase::Starting;
        let next = loop {
            let (command, done) = tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => command,
                    None => break Next::Nothing,
                },
                event = next_event(&mut process, phase) => match event {
                    ProcessEvent::Ready(address) => {
                        phase = Phase::Running;
                        self.state.send_modify(|state| state.address = address);
                        continue;
                    }
                    ProcessEvent::Succeeded => break Next::After(PAUSE),
                    ProcessEvent::Failed => {
                        self.spec.ledger.lock().unwrap().deaths.push(Utc::now());
                        break Next::After(PAUSE);
                    }
                },
            };
            let next = self.execute(command, &mut process).await;
            done.send(()).ok();
            if let Some(next) = next {
                break next;
            }
        };
        self.state
            .send_modify(|state| (state.address, state.paused) = (None, false));
        self.check_log(process).await;
        next
    }

    /// `Some` when the process has ended.
    async fn execute(&mut self, command: Command, process: &mut Tarsy) -> Option<Next> {
        match command {
            Command::Kill(pause) => {
                process.kill().await;
                Some(Next::After(pause))
            }
            Command::Terminate(pause) => {
                self.drain(process).await;
                Some(Next::After(pause))
            }
            Command::End => {
                self.drain(process).await;
                Some(Next::Nothing)
            }
            Command::Pause => {
                process.pause();
                self.state.send_modify(|state| state.paused = true);
                None
            }
            Command::Resume => {
                process.resume();
                self.state.send_modify(|state| state.paused = false);
                None
            }
            Command::KillToolServer => {
                for server in children_of(process.pid(), "evidence-server") {
                    // The server may have ended by itself.
                    kill_process(server, Signal::KILL).ok();
                }
                None
            }
        }
    }

    async fn drain(&self, process: &mut Tarsy) {
        self.state.send_modify(|state| state.address = None);
        process.terminate();
        if tokio::time::timeout(DRAINED_WITHIN, process.ended())
            .await
            .is_err()
        {
            let wrong = format!(
                "{} does not end within {DRAINED_WITHIN:?} of a SIGTERM",
                self.state.borrow().name
            );
            self.spec.ledger.lock().unwrap().wrong.push(wrong);
            process.kill().await;
        }
    }

    /// Records a panic in the log as a failure, because it is no injected fault.
    async fn check_log(&self, process: Tarsy) {
        let log = process.log();
        let name = self.state.borrow().name.clone();
        if let Some(at) = log.find("panicked at") {
            let message: String = log[at..].lines().take(3).collect::<Vec<_>>().join(" ");
            self.spec
                .ledger
                .lock()
                .unwrap()
                .wrong
                .push(format!("{name} {message}"));
        }
        if let Some(directory) = std::env::var_os("TARSY_CHAOS_LOGS") {
            std::fs::write(
                std::path::Path::new(&directory).join(format!("{name}.log")),
                log,
            )
            .ok();
        }
    }
}
