//! Debian's Chromium, driven over a pipe by its protocol for developer tools: messages in JSON, each ended by NUL. It
//! needs no port, no socket and no driver program.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Descriptors 3 and 4 are the pipe, which a child gets as its standard streams.
const START: &str = "exec \"$0\" \"$@\" --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// A browser with one page.
#[derive(Debug)]
pub(super) struct Browser {
    _process: Child,
    _profile: tempfile::TempDir,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    page: String,
    number: u64,
    /// What the page requested, logged or reported, in order.
    pub(super) events: Vec<Value>,
}

impl Browser {
    /// `None` where there is no Chromium: `./dev test` says so.
    pub(super) async fn start() -> Option<Self> {
        let program = std::env::var("TARSY_TEST_CHROMIUM").ok().filter(|program| !program.is_empty())?;
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new("sh")
            .args(["-c", START, &program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--mute-audio",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (page, number, events) = Default::default();
        let mut browser = Self { _process: process, _profile: profile, to, from, page, number, events };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.page = browser.call("Target.attachToTarget", attach).await["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Network.enable", "Log.enable", "Audits.enable"] {
            browser.call(domain, json!({})).await;
        }
        Some(browser)
    }

    /// The result of a command; panics when the browser refuses it.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if !self.page.is_empty() {
            message["sessionId"] = self.page.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).await.unwrap();
        loop {
            let answer = self.read().await;
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    async fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(TIMEOUT, self.from.read_until(0, &mut bytes)).await;
        let read = read.expect("the browser does not answer").unwrap();
        assert!(read > 0, "the browser has ended");
        bytes.pop();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Opens an address and waits until it is loaded.
    pub(super) async fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": "about:blank"})).await;
        self.call("Page.navigate", json!({"url": url})).await;
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'").await;
    }

    /// The value of an expression; a promise is awaited.
    pub(super) async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", params).await;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&mut self, expression: &str) {
        let begun = tokio::time::Instant::now();
        while self.eval(expression).await != true {
            if begun.elapsed() > TIMEOUT {
                let page = self.eval("location.href + '\\n' + document.body?.innerText").await;
                panic!("never true: {expression} of {page:#}");
            }
            // A page has no signal that reaches this process.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The width of the page in CSS pixels, and its colours: `light` or `dark`.
    pub(super) async fn looks(&mut self, width: u32, theme: &str) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", features).await;
    }

    /// Presses a key as a keyboard does: a character, `Tab`, `Enter` or `Escape`.
    pub(super) async fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            character => (0, character),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", params).await;
        }
    }

    /// Sends these headers with every request.
    pub(super) async fn headers(&mut self, headers: Value) {
        self.call("Network.setExtraHTTPHeaders", json!({"headers": headers})).await;
    }

    /// Runs a script in every later page, before the scripts of the page.
    pub(super) async fn before_each_page(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
    }

    /// The whole page as a PNG file; of a higher page the upper part. A scale below 1 makes it smaller.
    pub(super) async fn screenshot(&mut self, file: &Path, most_height: f64, scale: f64) {
        let size = self.call("Page.getLayoutMetrics", json!({})).await["cssContentSize"].clone();
        let height = size["height"].as_f64().unwrap().min(most_height);
        // Rows outside of the window are not drawn.
        let metrics = json!({"width": size["width"], "height": height, "deviceScaleFactor": 1, "mobile": size["width"].as_f64() < Some(600.0)});
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": scale});
        let shot = self.call("Page.captureScreenshot", json!({"captureBeyondViewport": true, "clip": clip})).await;
        let bytes = base64(shot["data"].as_str().unwrap());
        std::fs::write(file, bytes).unwrap();
    }

    /// What went wrong or was reported: every line of the console, exceptions, violations of the policy, dialogs.
    pub(super) fn problems(&self) -> Vec<String> {
        let wrong = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Audits.issueAdded",
            "Page.javascriptDialogOpening",
        ];
        let events = self.events.iter().filter(|event| wrong.iter().any(|method| event["method"] == *method));
        events.map(|event| event["params"].to_string()).collect()
    }

    /// The addresses that were requested of others than the server at `base`.
    pub(super) fn foreign(&self, base: &str) -> Vec<String> {
        let is_own = |url: &String| url.starts_with(base) || url == "about:blank";
        self.requested().into_iter().filter(|url| !is_own(url)).collect()
    }

    /// The addresses that were requested.
    pub(super) fn requested(&self) -> Vec<String> {
        let requests = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.filter_map(|event| Some(event["params"]["request"]["url"].as_str()?.to_owned())).collect()
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let join = |four: &[u8]| {
        let bits = four.iter().enumerate().fold(0_u32, |bits, (at, digit)| bits | u32::from(*digit) << (18 - 6 * at));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(join).collect()
}
