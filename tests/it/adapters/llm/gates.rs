//! Gates hold an answer at a chosen position.

use tarsy_drill::gate::Gates;
use tarsy_engine::ports::Model;
use tarsy_llm::service::scripted::Options;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use super::harness::{Server, ask, failed, request, script, within_timeout};

/// Accepts the calls that wait at a gate.
pub(super) struct Gatekeeper {
    directory: tempfile::TempDir,
    listener: UnixListener,
}

/// A call that waits at a gate.
pub(super) struct HeldCall {
    pub(super) line: String,
    stream: BufReader<UnixStream>,
}

impl Gatekeeper {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("gates")).unwrap();
        Self {
            directory,
            listener,
        }
    }

    pub(super) fn gates(&self) -> Gates {
        Gates::new(Some(self.socket()))
    }

    pub(super) fn socket(&self) -> std::path::PathBuf {
        self.directory.path().join("gates")
    }

    pub(super) async fn next(&mut self) -> HeldCall {
        let (stream, _) = within_timeout(self.listener.accept()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        within_timeout(stream.read_line(&mut line)).await.unwrap();
        HeldCall {
            line: line.trim().to_owned(),
            stream,
        }
    }
}

impl HeldCall {
    pub(super) async fn open(mut self) {
        self.stream.get_mut().write_all(b"open\n").await.unwrap();
    }

    async fn fail(mut self) {
        self.stream.get_mut().write_all(b"fail\n").await.unwrap();
    }
}

#[tokio::test]
async fn a_gate_holds_half_a_sentence_while_the_call_is_open() {
    let mut gatekeeper = Gatekeeper::new();
    let server = Server::start(Options {
        gates: gatekeeper.gates(),
        gate_every_answer: true,
        ..script("  - {chunks: [{text: The pod was killed for its memory.}]}\n")
    });
    let (client, asked) = (server.client(), request("test", "x"));
    let position = format!("{} 0", asked.execution_id);
    let (sender, mut shown) = mpsc::unbounded_channel();
    let asking = tokio::spawn(async move {
        client
            .generate(asked, move |_, piece| {
                sender.send(piece.to_owned()).unwrap()
            })
            .await
    });

    let start = gatekeeper.next().await;
    assert_eq!(start.line, format!("answer-0-start {position}"));
    assert!(shown.try_recv().is_err());
    start.open().await;
    let middle = gatekeeper.next().await;
    assert_eq!(middle.line, format!("answer-0-middle {position}"));
    assert_eq!(
        within_timeout(shown.recv()).await.unwrap(),
        "The pod was kille"
    );
    assert!(shown.try_recv().is_err());
    middle.open().await;
    let end = gatekeeper.next().await;
    assert_eq!(end.line, format!("answer-0-end {position}"));
    assert_eq!(
        within_timeout(shown.recv()).await.unwrap(),
        "d for its memory."
    );
    assert!(!asking.is_finished());
    end.open().await;
    assert_eq!(
        within_timeout(asking).await.unwrap().unwrap().text,
        "The pod was killed for its memory."
    );
}

#[tokio::test]
async fn a_gate_that_fails_breaks_the_stream() {
    let mut gatekeeper = Gatekeeper::new();
    let answers = "  - {chunks: [{text: half}, {gate: before-call}, {call: {tool: a.b}}]}\n";
    let server = Server::start(Options {
        gates: gatekeeper.gates(),
        ..script(answers)
    });
    let (client, asked) = (server.client(), request("test", "x"));
    let line = format!("before-call {} 0", asked.execution_id);
    let asking = tokio::spawn(async move { ask(&client, &asked).await });
    let held = gatekeeper.next().await;
    assert_eq!(held.line, line);
    held.fail().await;
    assert_eq!(
        failed(within_timeout(asking).await.unwrap()).0,
        "partial_stream_error"
    );
}

#[tokio::test]
async fn gates_without_a_gatekeeper_are_open() {
    let gatekeeper = Gatekeeper::new();
    let gates = gatekeeper.gates();
    drop(gatekeeper);
    let server = Server::start(Options {
        gates,
        gate_every_answer: true,
        ..script("  - {chunks: [{text: through}]}\n")
    });
    assert_eq!(
        ask(&server.client(), &request("test", "x"))
            .await
            .unwrap()
            .text,
        "through"
    );
}
