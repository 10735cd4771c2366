//! Counts the calls of each place in a transcript: in a file that tests read, or else in memory.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Where an execution is in its transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) execution_id: &'a str,
    /// Assistant messages in the request.
    pub(super) index: usize,
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    execution_id: String,
    index: usize,
    request_id: String,
}

/// The calls so far.
#[derive(Debug)]
pub(super) struct CallLog {
    /// Shared by all replicas that write to it, and as old as the file.
    file: Option<PathBuf>,
    /// Of this process; only the places whose calls anybody has to count.
    counts: Mutex<HashMap<(String, usize), u32>>,
}

impl CallLog {
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file, counts: Mutex::default() }
    }

    /// Adds a call to the file.
    pub(super) async fn record(&self, place: Place<'_>, request_id: &str) -> io::Result<()> {
        let Some(path) = self.file.clone() else {
            return Ok(());
        };
        let line =
            Line { execution_id: place.execution_id.to_owned(), index: place.index, request_id: request_id.to_owned() };
        tokio::task::spawn_blocking(move || append(&path, &line)).await?
    }

    /// How many calls this place has had, the present one included. Asked once a call.
    pub(super) async fn count(&self, place: Place<'_>) -> io::Result<u32> {
        let key = (place.execution_id.to_owned(), place.index);
        match self.file.clone() {
            Some(path) => tokio::task::spawn_blocking(move || lines_of(&path, &key)).await?,
            None => {
                let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                let count = counts.entry(key).or_default();
                *count += 1;
                Ok(*count)
            }
        }
    }
}

/// One write, so that the lines of several processes do not mix.
fn append(path: &Path, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    OpenOptions::new().create(true).append(true).open(path)?.write_all(&text)
}

fn lines_of(path: &Path, (execution_id, index): &(String, usize)) -> io::Result<u32> {
    let mut count = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let line: Line = serde_json::from_str(&line?)?;
        if line.execution_id == *execution_id && line.index == *index {
            count += 1;
        }
    }
    Ok(count)
}
