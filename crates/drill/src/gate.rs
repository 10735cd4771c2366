//! Gates: points at which a drill's model or tool waits until a test lets it continue.
//!
//! The waiting side connects to the Unix socket that `TARSY_GATES` names, writes one line `<gate> <detail>` and waits
//! for a line in return. `fail` makes it fail; `open` and the end of the connection let it continue. So a test waits on
//! a signal instead of a clock. Every gate is open without `TARSY_GATES`, or if no process listens.

use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// The answer of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    Open,
    Fail,
}

/// The gates behind one socket.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    socket: Option<PathBuf>,
}

impl Gates {
    /// Gates at `socket`; with `None` every gate is open.
    pub fn new(socket: Option<PathBuf>) -> Self {
        Self { socket }
    }

    /// Waits at `gate`. `detail` identifies the waiting side and must not contain a line break.
    ///
    /// Cancel safe: dropping the future closes the connection.
    pub async fn wait(&self, gate: &str, detail: &str) -> Passage {
        let Some(socket) = &self.socket else {
            return Passage::Open;
        };
        let Ok(mut stream) = UnixStream::connect(socket).await else {
            return Passage::Open;
        };
        if stream
            .write_all(format!("{gate} {detail}\n").as_bytes())
            .await
            .is_err()
        {
            return Passage::Open;
        }
        let mut line = String::new();
        match BufReader::new(stream).read_line(&mut line).await {
            Ok(_) if line.trim() == "fail" => Passage::Fail,
            Ok(_) | Err(_) => Passage::Open,
        }
    }
}
