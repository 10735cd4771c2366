//! Gates: places where a drill's model or tool waits until somebody lets it go on.
//!
//! A gate is a connection: the waiting side connects to the Unix socket that `TARSY_GATES` names, writes one line
//! `<gate> <detail>` and waits for a line in return. `open` goes on, `fail` asks it to fail; the end of the
//! connection goes on, too. So a test waits on a signal, not on a clock, and knows that the other side has arrived.
//! Without `TARSY_GATES`, or with nobody listening, every gate is open.

use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// The variable that holds the path of the socket.
pub const GATES_VARIABLE: &str = "TARSY_GATES";

/// What the other side of a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Go on.
    Open,
    /// Fail here.
    Fail,
}

/// Where the gates are.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    socket: Option<PathBuf>,
}

impl Gates {
    /// Gates at `socket`; open ones for `None`.
    pub fn new(socket: Option<PathBuf>) -> Self {
        Self { socket }
    }

    /// Waits at `gate`. `detail` tells the other side who is here; it must not contain a line break.
    ///
    /// Cancel safe: dropping the future closes the connection.
    pub async fn wait(&self, gate: &str, detail: &str) -> Passage {
        let Some(socket) = &self.socket else {
            return Passage::Open;
        };
        let Ok(mut stream) = UnixStream::connect(socket).await else {
            return Passage::Open;
        };
        if stream.write_all(format!("{gate} {detail}\n").as_bytes()).await.is_err() {
            return Passage::Open;
        }
        let mut line = String::new();
        match BufReader::new(stream).read_line(&mut line).await {
            Ok(_) if line.trim() == "fail" => Passage::Fail,
            Ok(_) | Err(_) => Passage::Open,
        }
    }
}
