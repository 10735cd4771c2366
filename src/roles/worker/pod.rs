//! Finds the earlier workers of this pod, with the proof that they are dead.
//!
//! The pod's uid and the id of each worker are stored in a directory that lives as long as the pod (an `emptyDir`). A
//! worker writes its id only while it holds the lock of a file there, and holds it until its process ends; only the
//! kernel releases it. So a worker that gets the lock knows that every worker in the list is dead. A second process in
//! a living pod gets no lock, and a worker of another pod has another uid: they inherit nothing.
//!
//! The lock is one of `flock`: it belongs to the open file, which Rust opens with `O_CLOEXEC`. No child process
//! continues to hold it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use tarsy_core::ids::WorkerId;

const LOCK_FILE: &str = "lock";
const RECORD_FILE: &str = "workers.json";
/// Workers that are kept in the list. In a row of quick deaths, the leases of the earliest ones have expired.
const MAX_WORKERS: usize = 16;

/// The pod of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Unique in time and space: `metadata.uid` of Kubernetes.
    pub uid: String,
    /// A directory that lives as long as the pod, and that no other pod has.
    pub state_dir: PathBuf,
}

impl Pod {
    /// `None` unless both are given: then no worker inherits anything.
    pub fn given(uid: Option<String>, state_dir: Option<PathBuf>) -> Option<Self> {
        let uid = uid.filter(|uid| !uid.trim().is_empty())?;
        let state_dir = state_dir.filter(|directory| !directory.as_os_str().is_empty())?;
        Some(Self { uid, state_dir })
    }
}

/// The membership of a worker in its pod.
#[derive(Debug, Default)]
pub(super) struct Membership {
    /// Workers of this pod that are dead.
    pub(super) predecessors: Vec<WorkerId>,
    /// Holds the lock.
    lock: Option<File>,
}

/// The file that names the workers of a pod.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pod_uid: String,
    /// The earliest first.
    workers: Vec<Uuid>,
}

impl Membership {
    /// Keeps the lock until the process ends, whatever it still does at its end. Returns the predecessors.
    pub(super) fn keep(self) -> Vec<WorkerId> {
        if let Some(lock) = self.lock {
            Box::leak(Box::new(lock));
        }
        self.predecessors
    }

    /// Enters this worker into the list of its pod. If that fails the worker inherits nothing, and the log has the
    /// reason.
    pub(super) fn take(pod: Option<&Pod>, worker: WorkerId) -> Self {
        let Some(pod) = pod else {
            return Self::default();
        };
        match Self::try_take(pod, worker) {
            Ok(membership) => {
                if membership.lock.is_none() {
                    tracing::warn!(
                        directory = %pod.state_dir.display(),
                        "no session of an earlier worker is taken over before its lease expires: another process of this pod runs"
                    );
                }
                membership
            }
            Err(error) => {
                tracing::warn!(
                    directory = %pod.state_dir.display(),
                    "sessions have to wait for their leases if this worker is restarted: {error}"
                );
                Self::default()
            }
        }
    }

    fn try_take(pod: &Pod, worker: WorkerId) -> io::Result<Self> {
        fs::create_dir_all(&pod.state_dir)?;
        let path = pod.state_dir.join(LOCK_FILE);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Self::default()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut workers = read(pod)?;
        let predecessors = workers.iter().copied().map(WorkerId).collect();
        workers.push(worker.0);
        workers.drain(..workers.len().saturating_sub(MAX_WORKERS));
        let record = Record {
            pod_uid: pod.uid.clone(),
            workers,
        };
        write(&pod.state_dir, &record)?;
        Ok(Self {
            predecessors,
            lock: Some(file),
        })
    }
}

/// The workers of this very pod. A record that is not there, of another pod, or of another form names none.
fn read(pod: &Pod) -> io::Result<Vec<Uuid>> {
    let text = match fs::read(pod.state_dir.join(RECORD_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice::<Record>(&text) {
        Ok(record) if record.pod_uid == pod.uid => Ok(record.workers),
        Ok(record) => {
            tracing::warn!(
                other_pod = record.pod_uid,
                "the state directory belongs to another pod: nothing is taken over"
            );
            Ok(Vec::new())
        }
        Err(error) => {
            tracing::warn!(
                "cannot read the list of the pod's workers: nothing is taken over: {error}"
            );
            Ok(Vec::new())
        }
    }
}

/// Replaces the record. A process that dies meanwhile leaves the former one: a file is renamed whole.
fn write(directory: &Path, record: &Record) -> io::Result<()> {
    let new = directory.join(format!("{RECORD_FILE}.new"));
    fs::write(&new, serde_json::to_vec(record)?)?;
    fs::rename(new, directory.join(RECORD_FILE))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn pod(uid: &str, directory: &Path) -> Pod {
        Pod {
            uid: uid.to_owned(),
            state_dir: directory.join("state"),
        }
    }

    fn worker(number: u128) -> WorkerId {
        WorkerId(Uuid::from_u128(number))
    }

    /// The numbers of the workers that this one inherits from. It dies when the place is dropped.
    fn enters(number: u128, pod: &Pod) -> (Membership, Vec<u128>) {
        let place = Membership::take(Some(pod), worker(number));
        let predecessors = place
            .predecessors
            .iter()
            .map(|worker| worker.0.as_u128())
            .collect();
        (place, predecessors)
    }

    /// Enters after the death of the former worker. A child process that another test starts has a copy of each lock
    /// until it runs its program, so that the lock may be free a moment later.
    fn enters_next(number: u128, pod: &Pod) -> (Membership, Vec<u128>) {
        let began = Instant::now();
        loop {
            let (place, predecessors) = enters(number, pod);
            if place.lock.is_some() || began.elapsed() > Duration::from_secs(10) {
                return (place, predecessors);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_worker_inherits_from_all_that_died_in_its_pod() {
        let directory = tempfile::tempdir().unwrap();
        let pod = pod("a", directory.path());
        for number in 1..=20 {
            let (_place, predecessors) = enters_next(number, &pod);
            let first = number.saturating_sub(16).max(1);
            assert_eq!(predecessors, (first..number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_second_process_in_a_living_pod_inherits_nothing_and_is_inherited_by_none() {
        let directory = tempfile::tempdir().unwrap();
        let pod = pod("a", directory.path());
        let (first, _) = enters(1, &pod);
        let (second, predecessors) = enters(2, &pod);
        assert_eq!((predecessors, second.lock.is_none()), (vec![], true));
        drop(first);
        assert_eq!(enters_next(3, &pod).1, [1], "the second one may live");
    }

    #[test]
    fn a_worker_of_another_pod_inherits_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let first = pod("a", directory.path());
        let second = pod("b", directory.path());

        drop(enters(1, &first));
        assert_eq!(enters_next(2, &second).1, Vec::<u128>::new());
        assert_eq!(enters_next(3, &second).1, [2]);
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(enters(4, &pod("b", elsewhere.path())).1, Vec::<u128>::new());
    }

    #[test]
    fn a_child_process_that_outlives_its_worker_does_not_hold_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let pod = pod("a", directory.path());
        let (place, _) = enters(1, &pod);
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        drop(place);
        assert_eq!(enters_next(2, &pod).1, [1]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_used_and_a_damaged_list_inherit_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(
            enters(
                1,
                &Pod {
                    uid: "a".to_owned(),
                    state_dir: file
                }
            )
            .1,
            Vec::<u128>::new()
        );
        let pod = pod("a", directory.path());
        drop(enters(2, &pod));
        fs::write(
            pod.state_dir.join(RECORD_FILE),
            "{\"pod_uid\": \"a\", \"wor",
        )
        .unwrap();
        assert_eq!(enters_next(3, &pod).1, Vec::<u128>::new());
        assert_eq!(enters_next(4, &pod).1, [3]);
    }

    #[test]
    fn a_pod_needs_a_uid_and_a_directory() {
        let given =
            |uid: &str, directory: &str| Pod::given(Some(uid.to_owned()), Some(directory.into()));
        assert!(given("a", "/state").is_some());
        for (uid, directory) in [("", "/state"), (" ", "/state"), ("a", "")] {
            assert_eq!(given(uid, directory), None);
        }
        assert_eq!(Pod::given(None, Some("/state".into())), None);
        assert_eq!(Pod::given(Some("a".to_owned()), None), None);
    }
}
