//! Other processes of the same user cannot read the environment of a role.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::process::TARSY;
use crate::support::wait::eventually;

/// An unprivileged user, for tests that run as root.
const UNPRIVILEGED: u32 = 65_534;

/// A command of a user who is not root, because root can read everything.
fn as_user(program: &str) -> Command {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    command
}

/// A process that is killed when the value is dropped.
struct KilledOnDrop(std::process::Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn a_process_of_the_same_user_cannot_read_the_environment_of_a_role() {
    // The other user may have no access to the program in its own folder.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = folder.path().join("tarsy");
    std::fs::copy(TARSY, &program).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let roles: [&[&str]; 3] = [
        &["llm-service", "--listen", "127.0.0.1:0"],
        &[
            "worker",
            "--nats-url",
            "nats://127.0.0.1:1",
            "--database-url",
            "postgres://127.0.0.1:1/x",
        ],
        &[
            "receive",
            "--listen",
            "127.0.0.1:0",
            "--nats-url",
            "nats://127.0.0.1:1",
        ],
    ];
    for role in roles {
        let mut command = as_user(program.to_str().unwrap());
        command
            .args(role)
            .env_clear()
            .env("MY_API_KEY", "s3cret")
            .current_dir(folder.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = KilledOnDrop(command.spawn().unwrap());
        let environment = format!("/proc/{}/environ", child.0.id());
        // If a process cannot be dumped, its files in /proc belong to root: proc(5).
        eventually("the role protects its environment", async || {
            std::fs::metadata(&environment).is_ok_and(|file| file.uid() == 0)
        })
        .await;
        let read = as_user("/bin/cat").arg(&environment).output().unwrap();
        assert!(
            !read.status.success() && read.stdout.is_empty(),
            "{role:?} {read:?}"
        );
    }
    let mut plain = as_user("/bin/sleep");
    let plain = KilledOnDrop(
        plain
            .arg("60")
            .env_clear()
            .env("MY_API_KEY", "s3cret")
            .spawn()
            .unwrap(),
    );
    let read = as_user("/bin/cat")
        .arg(format!("/proc/{}/environ", plain.0.id()))
        .output()
        .unwrap();
    assert!(
        read.status.success(),
        "the environment of another process must be readable, or this test could not fail: {read:?}"
    );
}
