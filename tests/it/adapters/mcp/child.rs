//! The child processes of servers over stdio: user, directory, limits, and their end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tarsy_engine::ports::Tools as _;
use tarsy_mask::Mask;
use tarsy_mcp::{ServerConfig, Servers, StdioConfig, Transport, User};
use tokio_util::sync::CancellationToken;

use super::within;
use crate::support::wait::eventually;

fn start(program: StdioConfig) -> Servers {
    let config = ServerConfig::new("child", Transport::Stdio(program));
    Servers::start(vec![config], Mask::default(), &CancellationToken::new()).unwrap()
}

fn shell(script: String) -> StdioConfig {
    StdioConfig {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script],
        ..StdioConfig::default()
    }
}

#[tokio::test]
async fn a_child_has_the_user_the_directory_and_the_limits_of_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, seen) = (
        folder.path().canonicalize().unwrap(),
        folder.path().join("seen"),
    );
    std::fs::write(&seen, "").unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&seen, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (own, group) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    // Only root can start a child as another user.
    let (uid, gid) = if own == 0 {
        (54_321, 54_322)
    } else {
        (own, group)
    };
    let script = format!(
        "read line; {{ ulimit -n; ulimit -d; pwd; id -u; id -g; }} > {}",
        seen.display()
    );
    let servers = start(StdioConfig {
        user: Some(User {
            uid,
            gid,
            account: None,
        }),
        directory: Some(directory.clone()),
        max_memory_bytes: Some(64 << 20),
        max_open_files: Some(64),
        ..shell(script)
    });
    assert_eq!(within(servers.list(&["child".to_owned()])).await.tools, []);
    let expected = format!("64\n{}\n{}\n{uid}\n{gid}\n", 64 << 10, directory.display());
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), expected);
    servers.close().await;
}

/// Whether the process whose number is in this file still runs.
fn runs(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn the_processes_that_a_server_started_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let left_behind = format!("sleep 1000 & echo $! > {}", file.display());
    let tarsy = env!("CARGO_BIN_EXE_tarsy");
    let servers = start(shell(format!(
        "{left_behind}; exec {tarsy} evidence-server oom-killed"
    )));
    assert_eq!(
        within(servers.list(&["child".to_owned()]))
            .await
            .unavailable,
        []
    );
    assert!(runs(&file));
    within(servers.close()).await;
    assert!(
        !runs(&file),
        "the end of the server in order leaves a process behind"
    );

    let servers = start(shell(format!("{left_behind}; read line")));
    assert_eq!(within(servers.list(&["child".to_owned()])).await.tools, []);
    eventually("a failed start leaves no process behind", async || {
        !runs(&file)
    })
    .await;
    servers.close().await;
}
