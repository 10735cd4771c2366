//! The programs of the servers, and the lines of `mcp_servers` that start them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// A server in Python uses seconds of a processor to start, and on a busy machine its share is small.
const START_WITHIN: &str = "170s";

/// The folder with the programs of the npm packages.
pub(super) struct Node(PathBuf);

impl Node {
    /// `None`, with a line about the skipped tests, where they are not installed.
    pub(super) fn find(test: &str) -> Option<Self> {
        found(test, "TARSY_TEST_MCP_NODE").map(Self)
    }

    pub(super) fn program(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// `server-everything` on its standard streams.
    pub(super) fn everything(&self) -> Value {
        json!({"command": self.program("mcp-server-everything"), "args": ["stdio"]})
    }

    /// `server-filesystem` with access to one folder.
    pub(super) fn filesystem(&self, folder: &Path) -> Value {
        json!({"command": self.program("mcp-server-filesystem"), "args": [folder]})
    }
}

/// An interpreter that has the servers of `PyPI`.
pub(super) struct Python(PathBuf);

impl Python {
    /// `None`, with a line about the skipped tests, where they are not installed.
    pub(super) fn find(test: &str) -> Option<Self> {
        found(test, "TARSY_TEST_MCP_PYTHON").map(Self)
    }

    /// `mcp-server-time` in UTC.
    pub(super) fn time(&self) -> Value {
        json!({"command": self.0, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]})
    }

    /// `mcp-server-git` with access to one repository.
    pub(super) fn git(&self, repository: &Path) -> Value {
        json!({"command": self.0, "args": ["-m", "mcp_server_git", "--repository", repository]})
    }
}

fn found(test: &str, variable: &str) -> Option<PathBuf> {
    let found = std::env::var(variable)
        .ok()
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    if found.is_none() {
        skip(test, &format!("{variable} is not set, ./dev test sets it"));
    }
    found
}

/// Whether a program is on PATH; a line about the skipped tests says if it is not.
pub(super) fn is_on_path(test: &str, program: &str) -> bool {
    let run = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let runs = run.is_ok_and(|status| status.success());
    if !runs {
        skip(test, &format!("there is no {program} on PATH"));
    }
    runs
}

/// Printed directly, because the harness captures the output of tests.
fn skip(test: &str, why: &str) {
    std::io::stderr()
        .write_all(format!("\nSKIPPED: tool_servers::{test}: {why}\n\n").as_bytes())
        .unwrap();
}

/// A line of `mcp_servers`.
pub(super) fn line(name: &str, server: &Value) -> String {
    let mut server = server.clone();
    if server.get("tool_timeout").is_none() {
        server["tool_timeout"] = json!(START_WITHIN);
    }
    format!("  {name}: {server}\n")
}
