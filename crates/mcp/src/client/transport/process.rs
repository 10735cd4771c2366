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
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::lines::BoundedLines;
use super::open::OpenRequests;

/// The time limit for the exit of a child and of its own children: once after its input was closed, and once after
/// SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit for the lines that a child wrote before its exit: between two of them, and for all of them.
const LAST_LINE_TIMEOUT: Duration = Duration::from_millis(100);
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(1);
/// The time between two checks for processes that a child has left running. No signal reports that they have exited.
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A server's process and the process group that it leads. Dropping it kills the group.
pub(in crate::client) struct ServerProcess {
    child: Child,
    /// `None` after the group has ended.
    group: Option<Pid>,
    lines: AsyncRwTransport<RoleClient, BoundedLines<ChildStdout>, ChildStdin>,
    open: OpenRequests,
    exited_at: Option<Instant>,
    /// Cancelled when no further line is read: the output has ended, or the child has exited.
    ended: CancellationToken,
}

impl ServerProcess {
    /// Starts the process, which has to lead a process group. Returns its standard error separately.
    pub(super) fn start(
        mut command: Command,
        ended: CancellationToken,
    ) -> io::Result<(Self, Option<ChildStderr>)> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let stderr = child.stderr.take();
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        // The reader limits the length of lines already.
        let open = OpenRequests::default();
        let reader = BoundedLines::new(stdout, open.clone());
        let lines = AsyncRwTransport::new(reader, stdin).with_max_line_length(usize::MAX);
        Ok((
            Self {
                child,
                group,
                lines,
                open,
                exited_at: None,
                ended,
            },
            stderr,
        ))
    }

    /// Closes the input, then sends SIGTERM, then SIGKILL: the order that MCP prescribes. The signals reach the whole
    /// group, so that a server started by a shell or a launcher ends, too.
    async fn end(&mut self) -> io::Result<()> {
        // The input cannot be closed while a message is being written to a child that reads nothing.
        let closed = async {
            self.lines.close().await?;
            self.child.wait().await
        };
        let exited = tokio::time::timeout(EXIT_TIMEOUT, closed).await.is_ok();
        let Some(group) = self.group else {
            return Ok(());
        };
        if kill_process_group(group, Signal::TERM).is_ok() {
            let deadline = Instant::now() + EXIT_TIMEOUT;
            if !exited {
                tokio::time::timeout_at(deadline, self.child.wait())
                    .await
                    .ok();
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

/// Ends some time after the exit of the child. Its own children may hold its output open for ever, so the end of the
/// output is no sign of its exit. Cancel safe.
async fn exit(child: &mut Child, exited_at: &mut Option<Instant>) {
    let at = match exited_at {
        Some(at) => *at,
        None => {
            child.wait().await.ok();
            *exited_at.insert(Instant::now())
        }
    };
    sleep_until(at + LAST_LINE_TIMEOUT).await;
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
        self.open.sent(&message);
        self.lines.send(message)
    }

    /// The next message, until the output ends or the child has exited. A child that has exited has crashed, also when
    /// processes that it started still write.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if self.exited_at.is_none() && matches!(self.child.try_wait(), Ok(Some(_))) {
            self.exited_at = Some(Instant::now());
        }
        let is_over = self
            .exited_at
            .is_some_and(|at| at.elapsed() >= LAST_LINES_TIMEOUT);
        let message = if is_over {
            None
        } else {
            tokio::select! {
                biased;
                message = self.lines.receive() => message,
                () = exit(&mut self.child, &mut self.exited_at) => None,
            }
        };
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.end()
    }
}
