//! The process of an MCP server as a transport: one message per line, in both directions.

use std::future::Future;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep};

use super::lines::BoundedLines;

/// For the exit of a child and of its own children: once after its input was closed, and once after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Between two looks at the processes that a child left behind. No signal tells that they are gone.
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A server's process and the process group that it leads. Dropping it kills the group.
pub(in crate::mcp::client) struct ServerProcess {
    child: Child,
    /// `None` after the group has ended.
    group: Option<Pid>,
    lines: AsyncRwTransport<RoleClient, BoundedLines<ChildStdout>, ChildStdin>,
}

impl ServerProcess {
    /// Starts the process, which has to lead a process group. Returns its standard error separately.
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Option<ChildStderr>)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let stderr = child.stderr.take();
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        // The reader limits the length of lines already.
        let lines = AsyncRwTransport::new(BoundedLines::new(stdout), stdin).with_max_line_length(usize::MAX);
        Ok((Self { child, group, lines }, stderr))
    }

    /// Closes the input, then sends SIGTERM, then SIGKILL: the order that MCP prescribes. The signals reach the whole
    /// group, so that a server started by a shell or a launcher ends, too.
    async fn end(&mut self) -> io::Result<()> {
        self.lines.close().await?;
        let exited = tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await.is_ok();
        let Some(group) = self.group else { return Ok(()) };
        if kill_process_group(group, Signal::TERM).is_ok() {
            let deadline = Instant::now() + EXIT_TIMEOUT;
            if !exited {
                tokio::time::timeout_at(deadline, self.child.wait()).await.ok();
            }
            while test_kill_process_group(group).is_ok() && Instant::now() < deadline {
                sleep(GROUP_POLL_INTERVAL).await;
            }
            kill_process_group(group, Signal::KILL).ok();
        }
        self.group = None;
        self.child.wait().await.map(|_status| ())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            kill_process_group(group, Signal::KILL).ok();
        }
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
