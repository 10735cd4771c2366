//! The process of an MCP server as a transport: one message per line, in both directions.

use std::future::Future;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::lines::BoundedLines;

/// For the exit of a child: once after its input was closed, and once after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A server's process. Dropping it kills the process.
pub(super) struct ServerProcess {
    child: Child,
    lines: AsyncRwTransport<RoleClient, BoundedLines<ChildStdout>, ChildStdin>,
}

impl ServerProcess {
    /// Starts the process. Returns its standard error separately.
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Option<ChildStderr>)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let stderr = child.stderr.take();
        // The reader limits the length of lines already.
        let lines = AsyncRwTransport::new(BoundedLines::new(stdout), stdin).with_max_line_length(usize::MAX);
        Ok((Self { child, lines }, stderr))
    }

    /// Closes the input, then sends SIGTERM, then SIGKILL: the order that MCP prescribes.
    async fn end(&mut self) -> io::Result<()> {
        self.lines.close().await?;
        if tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await.is_ok() {
            return Ok(());
        }
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid
            && kill_process(pid, Signal::TERM).is_ok()
            && tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await.is_ok()
        {
            return Ok(());
        }
        self.child.kill().await
    }
}

impl Transport<RoleClient> for ServerProcess {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.lines.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.lines.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.end()
    }
}
