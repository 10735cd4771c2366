//! Starts the child process of a server over stdio: its environment, its user, its limits and its standard error.

use std::ffi::OsString;
use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio_util::sync::CancellationToken;

use super::process::ServerProcess;
use crate::client::config::StdioConfig;
use tarsy_mask::Mask;

/// Sets the limits of a program.
const SHELL: &str = "/bin/sh";

/// Longer lines of a child's standard error are logged in pieces.
const MAX_LOG_LINE_BYTES: u64 = 8 * 1024;

/// The variables that a child inherits from the worker, in addition to its own configuration: none holds a secret.
const INHERITED_VARIABLES: [&str; 20] = [
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TARSY_GATES",
    "TARSY_TOOL_CALLS_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
];

/// Starts the program. Returns its standard error separately. `ended` is cancelled when nothing more is read from it.
///
/// # Errors
/// When it cannot be started.
pub(in crate::client) fn spawn(
    program: &StdioConfig,
    ended: CancellationToken,
) -> io::Result<(ServerProcess, Option<ChildStderr>)> {
    let mut command = command(program);
    command.env_clear();
    command.envs(
        INHERITED_VARIABLES
            .iter()
            .filter_map(|name| Some((name, inherited(name, std::env::var_os(name)?)))),
    );
    if let Some(user) = &program.user {
        // The supplementary groups of the worker are dropped with its user.
        command.uid(user.uid).gid(user.gid);
        if let Some(account) = &user.account {
            command
                .env("HOME", &account.home)
                .env("USER", &account.name)
                .env("LOGNAME", &account.name);
        }
    }
    if let Some(directory) = &program.directory {
        command.current_dir(directory);
    }
    command.envs(&program.env);
    // In a separate process group, a child gets no Ctrl-C from the worker's terminal, and ends with its own children.
    command.process_group(0);
    ServerProcess::start(command, ended)
}

/// The program, started by the shell if it has limits: the shell sets them for itself and then becomes the program. The
/// worker cannot set them for a process of another user without a privilege that containers lack.
fn command(program: &StdioConfig) -> Command {
    let kibibytes = program.max_memory_bytes.map(|bytes| ("-d", bytes / 1024));
    let limits = [kibibytes, program.max_open_files.map(|files| ("-n", files))];
    let script: String = limits
        .iter()
        .flatten()
        .map(|(flag, limit)| format!("ulimit {flag} {limit} && "))
        .collect();
    if script.is_empty() {
        let mut command = Command::new(&program.command);
        command.args(&program.args);
        return command;
    }
    let mut command = Command::new(SHELL);
    command
        .arg("-c")
        .arg(script + "exec \"$@\"")
        .arg(SHELL)
        .arg(&program.command)
        .args(&program.args);
    command
}

/// The value of a variable for a child. The address of a proxy loses its password, which belongs to the worker; an
/// operator can set it in the server's own `env`.
fn inherited(name: &str, value: OsString) -> OsString {
    if !name.ends_with("_PROXY") {
        return value;
    }
    let Some(text) = value.to_str() else {
        return OsString::new();
    };
    let (scheme, rest) = text
        .split_once("://")
        .map_or(("", text), |(scheme, rest)| (scheme, rest));
    let Some((_, host)) = rest.rsplit_once('@') else {
        return value;
    };
    if scheme.is_empty() {
        host.into()
    } else {
        format!("{scheme}://{host}").into()
    }
}

/// Logs the standard error of a child until the child ends. Unread output would block the child at some point.
pub(in crate::client) async fn log_stderr(server: String, stderr: ChildStderr, mask: Mask) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader)
        .take(MAX_LOG_LINE_BYTES)
        .read_until(b'\n', &mut line)
        .await
    {
        let text = String::from_utf8_lossy(&line);
        tracing::debug!(server, text = %mask.apply(text.trim_end()), "mcp server wrote to stderr");
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_the_address_of_a_proxy_without_its_password() {
        for (name, value, expected) in [
            (
                "HTTPS_PROXY",
                "http://user:w0rd@proxy:3128",
                "http://proxy:3128",
            ),
            ("HTTP_PROXY", "user:w@rd@proxy:3128", "proxy:3128"),
            ("HTTP_PROXY", "http://proxy:3128", "http://proxy:3128"),
            ("NO_PROXY", "localhost,.svc", "localhost,.svc"),
            ("PATH", "/a@b:/bin", "/a@b:/bin"),
        ] {
            assert_eq!(inherited(name, value.into()), expected, "{name}");
        }
    }
}
