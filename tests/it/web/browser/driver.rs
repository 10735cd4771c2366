//! Debian's Chromium, driven over a pipe by its protocol for developer tools. The tests share one process
//! (`process.rs`); each has a separate browser context, so no cookie, cache or connection of another test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::process::Process;

const TIMEOUT: Duration = Duration::from_secs(180);
/// A page has no signal that reaches this process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A browser context with one page.
#[derive(Debug)]
pub(super) struct Browser {
    process: Arc<Process>,
    context: String,
    /// The session of the protocol that is attached to the page.
    page: String,
    /// The number of events of pages that were opened again.
    left_behind: usize,
}

impl Browser {
    /// `None` where there is no Chromium: `./dev test` says so.
    pub(super) async fn start() -> Option<Self> {
        let process = Process::shared()?;
        let context = process
            .call("", "Target.createBrowserContext", json!({}))
            .await;
        let context = context["browserContextId"].as_str().unwrap().to_owned();
        let target = json!({"url": "about:blank", "browserContextId": context, "newWindow": true});
        let target = process.call("", "Target.createTarget", target).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let page = process.call("", "Target.attachToTarget", attach).await["sessionId"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut browser = Self {
            process,
            context,
            page,
            left_behind: 0,
        };
        for domain in [
            "Page.enable",
            "Runtime.enable",
            "Network.enable",
            "Log.enable",
            "Audits.enable",
        ] {
            browser.call(domain, json!({})).await;
        }
        // The window of one test has the keyboard; the others are drawn and used as if they had it.
        browser
            .call(
                "Emulation.setFocusEmulationEnabled",
                json!({"enabled": true}),
            )
            .await;
        Some(browser)
    }

    /// The result of a command; panics when the browser refuses it.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.process.call(&self.page, method, params).await
    }

    /// The requests, log lines and reports of the page, in order.
    pub(super) fn events(&self) -> Vec<Value> {
        self.process.events(&self.page).split_off(self.left_behind)
    }

    /// Opens an address and waits until it is loaded. On a busy machine a connection to the database may take longer
    /// than the page waits for it; then it is opened again.
    pub(super) async fn open(&mut self, url: &str) {
        for _ in 0..10 {
            self.call("Page.navigate", json!({"url": "about:blank"}))
                .await;
            self.call("Page.navigate", json!({"url": url})).await;
            self.until("location.href !== 'about:blank' && document.readyState === 'complete'")
                .await;
            let is_late = "document.body?.innerText.includes('failed: timeout expired') ?? false";
            if self.eval(is_late).await != true {
                return;
            }
            self.left_behind = self.process.events(&self.page).len();
        }
    }

    /// The value of an expression; a promise is awaited.
    pub(super) async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", params).await;
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&mut self, expression: &str) {
        let begun = tokio::time::Instant::now();
        while self.eval(expression).await != true {
            if begun.elapsed() > TIMEOUT {
                let page = self
                    .eval("location.href + '\\n' + document.body?.innerText")
                    .await;
                panic!("never true: {expression} of {page:#}");
            }
            tokio::time::sleep(POLL_INTERVAL).await; // interval between looks
        }
    }

    /// The width of the page in CSS pixels, and its colours: `light` or `dark`.
    pub(super) async fn looks(&mut self, width: u32, theme: &str) {
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", features).await;
    }

    /// Clicks with the mouse in the middle of an element, an expression; panics when the page has none.
    pub(super) async fn click_element(&mut self, element: &str) {
        let middle = format!(
            "((element) => {{ element?.scrollIntoView({{ block: 'center' }}); const box = element?.getClientRects()[0]; \
             return box && [box.x + box.width / 2, box.y + box.height / 2]; }})({element})"
        );
        let middle = self.eval(&middle).await;
        assert!(middle.is_array(), "no {element}");
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params).await;
        }
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
            let mut params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", params).await;
        }
    }

    /// Sends these headers with every request.
    pub(super) async fn headers(&mut self, headers: Value) {
        self.call("Network.setExtraHTTPHeaders", json!({"headers": headers}))
            .await;
    }

    /// Runs a script in every later page, before the scripts of the page.
    pub(super) async fn before_each_page(&mut self, script: &str) {
        self.call(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": script}),
        )
        .await;
    }

    /// Runs no script of later pages.
    pub(super) async fn without_scripts(&mut self) {
        self.call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        )
        .await;
    }

    /// The whole page as a PNG file; of a higher page the upper part. A scale below 1 makes it smaller.
    pub(super) async fn screenshot(&mut self, file: &Path, most_height: f64, scale: f64) {
        let size = self.call("Page.getLayoutMetrics", json!({})).await["cssContentSize"].clone();
        let height = size["height"].as_f64().unwrap().min(most_height);
        // Rows outside of the window are not drawn.
        let metrics = json!({"width": size["width"], "height": height, "deviceScaleFactor": 1, "mobile": size["width"].as_f64() < Some(600.0)});
        self.call("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        let clip =
            json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": scale});
        let shot = self
            .call(
                "Page.captureScreenshot",
                json!({"captureBeyondViewport": true, "clip": clip}),
            )
            .await;
        let bytes = base64(shot["data"].as_str().unwrap());
        std::fs::write(file, bytes).unwrap();
    }

    /// The problems and reports of the page: every line of the console, exceptions, violations of the policy, dialogs.
    pub(super) fn problems(&self) -> Vec<String> {
        let wrong = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Audits.issueAdded",
            "Page.javascriptDialogOpening",
        ];
        let events = self
            .events()
            .into_iter()
            .filter(|event| wrong.iter().any(|method| event["method"] == *method));
        events.map(|event| event["params"].to_string()).collect()
    }

    /// The addresses that were requested of others than the server at `base`.
    pub(super) fn foreign(&self, base: &str) -> Vec<String> {
        let is_own = |url: &String| url.starts_with(base) || url == "about:blank";
        self.requested()
            .into_iter()
            .filter(|url| !is_own(url))
            .collect()
    }

    /// The addresses that were requested.
    pub(super) fn requested(&self) -> Vec<String> {
        let events = self.events();
        let requests = events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent");
        requests
            .filter_map(|event| Some(event["params"]["request"]["url"].as_str()?.to_owned()))
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.process.close(&self.context, &self.page);
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
        let bits = four.iter().enumerate().fold(0_u32, |bits, (at, digit)| {
            bits | u32::from(*digit) << (18 - 6 * at)
        });
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(join).collect()
}
