//! The process of Chromium that all tests share: messages in JSON over a pipe, each ended by NUL. It needs no port, no
//! socket and no driver program. It starts with the first test, and ends with the last one that uses it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

const TIMEOUT: Duration = Duration::from_secs(180);
/// Descriptors 3 and 4 are the pipe, which a child gets as its standard streams.
const START: &str =
    "exec \"$0\" \"$@\" --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>&1";
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--mute-audio",
    "--hide-scrollbars",
    // The windows of other tests are not in the foreground, and their pages run as if they were.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
];

/// The process, while a test uses it.
static RUNNING: Mutex<Weak<Process>> = Mutex::new(Weak::new());

/// Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    _profile: tempfile::TempDir,
    to: Mutex<ChildStdin>,
    number: AtomicU64,
    routes: Arc<Mutex<Routes>>,
}

/// The receivers of the browser's messages.
#[derive(Debug, Default)]
struct Routes {
    /// The tests that wait for an answer, by the number of their command.
    answers: HashMap<u64, oneshot::Sender<Value>>,
    /// The events of each page, by its session.
    events: HashMap<String, Vec<Value>>,
}

impl Process {
    /// The process of the other tests, or a new one; `None` where there is no Chromium.
    pub(super) fn shared() -> Option<Arc<Self>> {
        let program = std::env::var("TARSY_TEST_CHROMIUM")
            .ok()
            .filter(|program| !program.is_empty())?;
        let mut running = RUNNING.lock().unwrap();
        Some(running.upgrade().unwrap_or_else(|| {
            let process = Arc::new(Self::start(&program));
            *running = Arc::downgrade(&process);
            process
        }))
    }

    fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", START, program])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let routes = Arc::<Mutex<Routes>>::default();
        let reader = Arc::clone(&routes);
        // The runtime of a test ends with it, so a thread reads. It ends with the process.
        std::thread::spawn(move || route(from, &reader));
        Self {
            child,
            _profile: profile,
            to: Mutex::new(to),
            number: AtomicU64::new(1),
            routes,
        }
    }

    /// The result of a command to a page, or to the browser if `page` is empty; panics when the browser refuses it.
    pub(super) async fn call(&self, page: &str, method: &str, params: Value) -> Value {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.routes.lock().unwrap().answers.insert(number, sender);
        let mut message = json!({"id": number, "method": method, "params": params});
        if !page.is_empty() {
            message["sessionId"] = page.into();
        }
        self.send(&message).expect("the browser has ended");
        let answer = tokio::time::timeout(TIMEOUT, answer)
            .await
            .expect("the browser does not answer");
        let answer = answer.expect("the browser has ended");
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn send(&self, message: &Value) -> std::io::Result<()> {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.lock().unwrap().write_all(&bytes)
    }

    /// The events of a page, in order.
    pub(super) fn events(&self, page: &str) -> Vec<Value> {
        self.routes
            .lock()
            .unwrap()
            .events
            .get(page)
            .cloned()
            .unwrap_or_default()
    }

    /// Closes a context with its page. No caller waits for the answer.
    pub(super) fn close(&self, context: &str, page: &str) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let params = json!({"browserContextId": context});
        self.send(
            &json!({"id": number, "method": "Target.disposeBrowserContext", "params": params}),
        )
        .ok();
        self.routes.lock().unwrap().events.remove(page);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Gives each answer to its test, and keeps the events, until the browser ends.
fn route(from: ChildStdout, routes: &Mutex<Routes>) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    while from.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        bytes.clear();
        let mut routes = routes.lock().unwrap();
        if let Some(number) = message["id"].as_u64() {
            if let Some(waiting) = routes.answers.remove(&number) {
                waiting.send(message).ok();
            }
        } else if let Some(page) = message["sessionId"].as_str() {
            routes
                .events
                .entry(page.to_owned())
                .or_default()
                .push(message);
        }
    }
    // Without their senders the tests that wait get an error.
    routes.lock().unwrap().answers.clear();
}
