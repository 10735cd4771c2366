//! Backups of a running server, and their restoration.

use std::io::Write as _;
use std::process::Stdio;

use super::PostgresServer;
use crate::support::process::ports::free_port;

impl PostgresServer {
    /// Whether this Postgres has the programs for backups; if not, prints why the caller's test is skipped.
    pub(crate) fn can_back_up(&self) -> bool {
        let missing = ["pg_basebackup", "pg_dump", "pg_restore"]
            .into_iter()
            .find(|name| !self.programs.join(name).exists());
        if let Some(name) = missing {
            // This bypasses the test harness, which captures the output of tests.
            let why = format!(
                "\nSKIPPED: a test with a backup: there is no {name} in {}\n\n",
                self.programs.display()
            );
            std::io::stderr()
                .write_all(why.as_bytes())
                .expect("standard error");
        }
        missing.is_none()
    }

    /// The URL of one of its databases.
    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// A dump of one database.
    pub(crate) fn dump(&self, database: &str) -> Vec<u8> {
        let dumped = self
            .program("pg_dump")
            .args(["--format=custom", "--dbname", &self.url_of(database)])
            .output()
            .expect("pg_dump");
        assert!(
            dumped.status.success(),
            "pg_dump: {}",
            String::from_utf8_lossy(&dumped.stderr)
        );
        dumped.stdout
    }

    /// Restores a dump into an empty database.
    pub(crate) fn restore_dump(&self, database: &str, dump: &[u8]) {
        let mut restoring = self
            .program("pg_restore")
            .args(["--exit-on-error", "--dbname", &self.url_of(database)])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pg_restore");
        restoring
            .stdin
            .take()
            .expect("its input")
            .write_all(dump)
            .expect("pg_restore reads the dump");
        let restored = restoring.wait_with_output().expect("pg_restore");
        assert!(
            restored.status.success(),
            "pg_restore: {}",
            String::from_utf8_lossy(&restored.stderr)
        );
    }

    /// A copy of the whole running server, which is not started.
    pub(crate) fn base_backup(&self) -> Self {
        let (programs, settings) = (self.programs.clone(), self.settings.clone());
        let directory = Self::directory_of(self.user);
        let copy = Self {
            directory,
            programs,
            user: self.user,
            port: free_port(),
            settings,
            process: None,
        };
        copy.copy(&self.url(), &[]);
        copy
    }
}
