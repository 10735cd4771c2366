//! `Skills`, the present skills of a worker: read when it starts, and again when a minute has passed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::library::Library;
use tarsy_mask::Mask;

/// The time after which the directories are read again, when an alert needs them.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The time limit of a further reading; a file system that hangs leaves the skills as they are.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The skills of the configured directories.
#[derive(Debug)]
pub struct Skills {
    directories: Vec<PathBuf>,
    max_bytes: u64,
    mask: Mask,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    library: Arc<Library>,
    read_at: Instant,
}

impl Skills {
    /// Reads the directories.
    pub fn new(config: &tarsy_config::Skills, mask: Mask) -> Self {
        let directories = config.directories.iter().map(PathBuf::from).collect();
        let skills = Self {
            directories,
            max_bytes: config.max_bytes,
            mask,
            state: Mutex::new(State {
                library: Arc::default(),
                read_at: Instant::now(),
            }),
        };
        skills.take(Library::read(
            &skills.directories,
            skills.max_bytes,
            &skills.mask,
        ));
        skills
    }

    /// The skills, at most a minute old while the file system answers.
    pub async fn current(&self) -> Arc<Library> {
        if !self.directories.is_empty() && self.is_due() {
            let directories = self.directories.clone();
            let mask = self.mask.clone();
            let max_bytes = self.max_bytes;
            let reading =
                tokio::task::spawn_blocking(move || Library::read(&directories, max_bytes, &mask));
            match tokio::time::timeout(READ_TIMEOUT, reading).await {
                Ok(Ok(library)) => self.take(library),
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!("skills not read again: the file system does not answer");
                }
            }
        }
        Arc::clone(&self.state.lock().library)
    }

    /// Whether this caller reads the directories; others use the former skills meanwhile.
    fn is_due(&self) -> bool {
        let mut state = self.state.lock();
        let is_due = state.read_at.elapsed() >= MAX_AGE;
        if is_due {
            state.read_at = Instant::now();
        }
        is_due
    }

    fn take(&self, library: Library) {
        let mut state = self.state.lock();
        if *state.library == library {
            return;
        }
        tracing::info!(skills = library.skills.len(), "skills read");
        for fault in &library.faults {
            tracing::warn!(path = %fault.path.display(), why = fault.why, "skill left out");
        }
        state.library = Arc::new(library);
    }
}
