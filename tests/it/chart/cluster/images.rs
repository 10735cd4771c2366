//! The programs of this machine that run in place of images.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use serde_json::Value;
use tokio::process::Command;

use super::super::helm::{IMAGE, script, text};
use crate::support::postgres_server;
use crate::support::process::TARSY;

/// The programs, in a directory that every user may read: a pod's user may not reach the one in which they were built.
#[derive(Debug)]
pub(super) struct Images {
    folder: PathBuf,
}

impl Images {
    /// Copies the programs into this directory.
    pub(super) fn new(folder: &Path) -> Self {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
        let nats = std::env::var_os("TARSY_TEST_NATS_SERVER")
            .expect("TARSY_TEST_NATS_SERVER is not set: run ./dev test");
        for (name, program) in [
            ("tarsy", Path::new(TARSY)),
            ("nats-server", Path::new(&nats)),
        ] {
            let copy = folder.join(name);
            std::fs::hard_link(program, &copy)
                .or_else(|_| std::fs::copy(program, &copy).map(drop))
                .unwrap();
        }
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The program tarsy.
    pub(super) fn tarsy(&self) -> PathBuf {
        self.folder.join("tarsy")
    }

    /// The program of a container, which listens on this address. `None`: no registry has the image.
    pub(super) fn command(&self, pod: &Value, container: &Value, address: &str) -> Option<Command> {
        let image = text(&container["image"]);
        let shared = &pod["spec"]["securityContext"];
        let (mut user, group) = (id(shared, "runAsUser"), id(shared, "runAsGroup"));
        let mut command = if image.starts_with(&format!("{IMAGE}:")) {
            Command::new(self.tarsy())
        } else if image.contains("library/nats:") {
            let mut nats = Command::new(self.folder.join("nats-server"));
            nats.args(["--addr", address]);
            nats
        } else if image.contains("library/postgres:") {
            let (programs, owner) = postgres_server::programs();
            // The image has a user 70, and this machine may have none.
            user = owner;
            let mut postgres = Command::new("sh");
            postgres
                .arg(script("postgres.sh"))
                .arg(programs)
                .arg(address);
            postgres
        } else {
            return None;
        };
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if geteuid().is_root() {
            command.uid(user?).gid(group?);
        }
        Some(command)
    }
}

/// A user or group of a pod's security context.
pub(super) fn id(context: &Value, key: &str) -> Option<u32> {
    u32::try_from(context[key].as_u64()?).ok()
}
