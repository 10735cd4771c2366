//! The data of a fresh cluster. `initdb` makes it once for each version of Postgres; each server gets a copy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::PostgresServer;

impl PostgresServer {
    /// Fills the folder of the data.
    pub(super) fn make_cluster(&self) {
        static FRESH: OnceLock<PathBuf> = OnceLock::new();
        let fresh = FRESH.get_or_init(|| {
            let version = output(self.program("initdb").arg("--version"));
            let name: String = Sha256::digest(format!("{} {version}", self.programs.display()))
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("postgres-{name}"));
            if !fresh.exists() {
                self.keep_fresh(&fresh);
            }
            fresh
        });
        copy(fresh, &self.data());
        if let Some(user) = self.user {
            output(
                Command::new("chown")
                    .args(["-R", &format!("{user}:{user}")])
                    .arg(self.data()),
            );
        }
    }

    /// Makes a cluster and leaves its data in this folder, which then is complete.
    fn keep_fresh(&self, fresh: &Path) {
        // The user of the server may be unable to reach the target folder.
        let directory = Self::directory_of(self.user);
        let data = directory.path().join("data");
        let options = [
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--pgdata",
        ];
        output(self.program("initdb").args(options).arg(&data));
        let parent = fresh.parent().expect("the target folder");
        let making = tempfile::Builder::new()
            .prefix("making-")
            .tempdir_in(parent)
            .expect("a directory");
        let complete = making.path().join("data");
        copy(&data, &complete);
        // Another process of tests may have been faster.
        if std::fs::rename(&complete, fresh).is_err() {
            assert!(fresh.exists(), "{} cannot be made", fresh.display());
        }
    }
}

/// Copies a folder to a path that does not exist; the owner of the copy is this user.
fn copy(from: &Path, to: &Path) {
    output(Command::new("cp").arg("-R").arg(from).arg(to));
}

fn output(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stdout).into_owned()
}
