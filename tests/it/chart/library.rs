//! The library of Helm as processes that all tests share: loading it takes longer than most of its answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::helm::script;

/// A process that answers one request after the other. It ends with its standard input, so with the tests.
struct Library {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Two, so that one long answer does not delay all other tests.
static LIBRARIES: [Mutex<Option<Library>>; 2] = [const { Mutex::new(None) }; 2];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The answer to a request of one line; `python` starts the library if none runs.
pub(super) fn ask(python: &Path, request: &str) -> String {
    let place = &LIBRARIES[NEXT.fetch_add(1, Ordering::Relaxed) % LIBRARIES.len()];
    // A test that panics here leaves the place empty, and the next one starts another process.
    let mut kept = place.lock().unwrap_or_else(PoisonError::into_inner);
    let mut library = kept.take().unwrap_or_else(|| Library::start(python));
    let answer = library.ask(request);
    *kept = Some(library);
    answer
}

impl Library {
    fn start(python: &Path) -> Self {
        let mut command = Command::new(python);
        command
            .arg(script("helm.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (requests, answers) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        Self {
            process,
            requests,
            answers: BufReader::new(answers),
        }
    }

    fn ask(&mut self, request: &str) -> String {
        // A process that has ended gets no request; its status says more than the broken pipe.
        writeln!(self.requests, "{request}").ok();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        if answer.is_empty() {
            panic!(
                "the library of Helm has ended with {:?}, see standard error: {request}",
                self.process.wait()
            );
        }
        answer
    }
}
