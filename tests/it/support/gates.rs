//! The server of a drill's gates: a test receives each arrival and decides when it continues.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(180);

/// The socket of all gates. Only watched gates hold an arrival; every other gate opens by itself.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    _directory: tempfile::TempDir,
    socket: PathBuf,
    watched: Arc<Mutex<Vec<String>>>,
    arrivals: mpsc::Receiver<Arrived>,
}

/// A call that waits at a gate.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) gate: String,
    /// The caller; for a model's answer the execution and the index of the answer.
    pub(crate) detail: String,
    stream: BufReader<UnixStream>,
}

impl Gatekeeper {
    pub(crate) fn new(watched: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("gates");
        let listener = UnixListener::bind(&socket).unwrap();
        let watched = Arc::new(Mutex::new(
            watched
                .iter()
                .map(|gate| (*gate).to_owned())
                .collect::<Vec<_>>(),
        ));
        let (sender, arrivals) = mpsc::channel(64);
        let wanted = Arc::clone(&watched);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, Arc::clone(&wanted), sender.clone()));
            }
        });
        Self {
            _directory: directory,
            socket,
            watched,
            arrivals,
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Adds a gate to the watched ones.
    pub(crate) fn watch(&self, gate: &str) {
        self.watched.lock().unwrap().push(gate.to_owned());
    }

    /// Lets every gate open by itself from now on; earlier arrivals still wait.
    pub(crate) fn open_all(&self) {
        self.watched.lock().unwrap().clear();
    }

    /// The next arrival at a watched gate.
    pub(crate) async fn next(&mut self) -> Arrived {
        tokio::time::timeout(TIMEOUT, self.arrival())
            .await
            .expect("no arrival at a watched gate")
    }

    /// The next arrival, without a time limit. Cancel safe.
    pub(crate) async fn arrival(&mut self) -> Arrived {
        self.arrivals
            .recv()
            .await
            .expect("the gatekeeper is running")
    }
}

async fn receive(
    stream: UnixStream,
    watched: Arc<Mutex<Vec<String>>>,
    arrivals: mpsc::Sender<Arrived>,
) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    if stream.read_line(&mut line).await.is_err() {
        return;
    }
    let line = line.trim_end();
    let (gate, detail) = line.split_once(' ').unwrap_or((line, ""));
    let arrived = Arrived {
        gate: gate.to_owned(),
        detail: detail.to_owned(),
        stream,
    };
    let held = watched.lock().unwrap().contains(&arrived.gate);
    if held {
        arrivals.send(arrived).await.ok();
    } else {
        arrived.open().await;
    }
}

impl Arrived {
    pub(crate) async fn open(mut self) {
        self.stream.write_all(b"open\n").await.ok();
    }

    pub(crate) async fn fail(mut self) {
        self.stream.write_all(b"fail\n").await.ok();
    }
}
