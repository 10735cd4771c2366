//! Counts the calls at each position of a transcript: in a file that tests read, otherwise in memory.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The position of an execution in its transcript.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) execution_id: String,
    /// The number of assistant messages in the request.
    pub(super) index: usize,
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct CallRecord {
    #[serde(flatten)]
    position: Position,
    request_id: String,
}

/// The log of the calls at each position.
#[derive(Debug)]
pub(super) struct CallLog {
    /// All replicas append to the same file, and their restarts do not reset it.
    file: Option<PathBuf>,
    /// The counts of this process, without a file; only for positions with a failure that ends after some calls.
    counts: Mutex<HashMap<Position, u32>>,
}

impl CallLog {
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            counts: Mutex::default(),
        }
    }

    /// Appends a call to the file.
    pub(super) async fn record(&self, position: &Position, request_id: &str) -> io::Result<()> {
        let Some(path) = self.file.clone() else {
            return Ok(());
        };
        let line = CallRecord {
            position: position.clone(),
            request_id: request_id.to_owned(),
        };
        tokio::task::spawn_blocking(move || append(&path, &line)).await?
    }

    /// Counts the calls of this position, including the current one. Must be called once per call.
    pub(super) async fn count(&self, position: &Position) -> io::Result<u32> {
        let position = position.clone();
        match self.file.clone() {
            Some(path) => tokio::task::spawn_blocking(move || count_in(&path, &position)).await?,
            None => {
                let mut counts = self.counts.lock();
                let count = counts.entry(position).or_default();
                *count += 1;
                Ok(*count)
            }
        }
    }
}

/// Writes the line at once, so that the lines of several processes do not mix.
fn append(path: &Path, line: &CallRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(&text)
}

fn count_in(path: &Path, position: &Position) -> io::Result<u32> {
    let mut count = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let line: CallRecord = serde_json::from_str(&line?)?;
        if line.position == *position {
            count += 1;
        }
    }
    Ok(count)
}
