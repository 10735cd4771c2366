//! Every form of the pages, clicked in the browser: in each mode of authentication, with and without script.

mod alerts;
mod approvals;

use serde_json::{Value, json};
use tarsy_core::ids::SessionId;

use super::Web;
use super::driver::Browser;
use crate::support::system::TestSystem;

const TOKEN: &str = "t0ken-of-the-team";
const SECRET: &str = "s3cret-of-the-proxy";
const ALLOWED: &str = "allow: {ask: ['*'], cancel: ['*']}";

/// Whether the scripts of the pages run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scripts {
    On,
    Off,
}

impl Browser {
    /// Clicks the middle of an element, as a mouse does.
    pub(in crate::web) async fn click(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?}) !== null"))
            .await;
        let place = format!(
            "(() => {{ const found = document.querySelector({selector:?}); found.scrollIntoView({{block: 'center'}}); \
             const {{x, y, width, height}} = found.getBoundingClientRect(); return [x + width / 2, y + height / 2]; }})()"
        );
        let place = self.eval(&place).await;
        for kind in ["mousePressed", "mouseReleased"] {
            let mouse = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", mouse).await;
        }
    }

    /// Clicks an element of the page, unless the browser has left the page already.
    async fn click_if_there(&mut self, selector: &str) {
        let click = format!("document.querySelector({selector:?})?.click(); 0");
        self.eval(&click).await;
    }

    /// Clicks a field and types.
    async fn fill(&mut self, selector: &str, text: &str) {
        self.click(selector).await;
        self.call("Input.insertText", json!({"text": text})).await;
    }

    /// Waits for a page whose path begins like this, and returns its path.
    pub(in crate::web) async fn arrives_at(&mut self, path: &str) -> String {
        self.until(&format!(
            "location.pathname.startsWith({path:?}) && document.readyState === 'complete'"
        ))
        .await;
        self.eval("location.pathname")
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn with(scripts: Scripts) -> Option<Self> {
        let mut browser = Self::start().await?;
        let disabled = json!({"value": scripts == Scripts::Off});
        browser
            .call("Emulation.setScriptExecutionDisabled", disabled)
            .await;
        Some(browser)
    }
}

async fn web(system: &TestSystem, section: &str, secret: (&str, &str)) -> (Web, String) {
    std::fs::write(system.file("web.yaml"), format!("web: {{{section}}}\n")).unwrap();
    let config = system.file("web.yaml").display().to_string();
    let web = Web::start(system, &[("TARSY_CONFIG", &config), secret]).await;
    let base = format!("http://{}", web.address);
    (web, base)
}

/// Cancels a running investigation and asks about one that is over, as a person who is known.
async fn cancels_and_asks(system: &mut TestSystem, browser: &mut Browser, base: &str) {
    let running = system.publish().await;
    let held = system.gates.next().await;
    let page = format!("/sessions/{running}");
    browser.open(&format!("{base}{page}")).await;
    browser.click(&format!("a[href='{page}/cancel']")).await;
    browser.arrives_at(&format!("{page}/cancel")).await;
    browser.click("form.ask-form button").await;
    browser
        .until(&format!("location.pathname === {page:?}"))
        .await;
    let mut timeline = system.follow(running).await;
    held.open().await;
    assert_eq!(
        timeline.finish().await.event_type.as_str(),
        "session_cancelled"
    );

    browser.open(&format!("{base}{page}")).await;
    browser.fill("#question", "Would 5 % more be enough?").await;
    browser.click("form[action$='/questions'] button").await;
    browser
        .until(&format!(
            "location.pathname.startsWith('/sessions/') && location.pathname !== {page:?}"
        ))
        .await;
    let asked = browser.arrives_at("/sessions/").await;
    let asked = SessionId::parse(asked.trim_start_matches("/sessions/"))
        .unwrap_or_else(|| panic!("{asked}"));
    assert_ne!(asked, running);
    let question = format!("SELECT body FROM alerts WHERE alert_id = '{asked}'");
    let held = system.gates.next().await;
    assert_eq!(system.database.text(&question), "Would 5 % more be enough?");
    held.open().await;
    system.follow(asked).await.finish().await;
}

/// The forms of the list that send nothing.
async fn searches(browser: &mut Browser, base: &str) {
    browser.open(&format!("{base}/")).await;
    browser.fill("#q", "checkout").await;
    browser.press("Enter").await;
    browser
        .until("location.search.includes('q=checkout')")
        .await;
    browser.click("form.flt button").await;
    browser.until("location.search.includes('since=')").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_with_the_token_logs_in_asks_cancels_and_logs_out() {
    for scripts in [Scripts::On, Scripts::Off] {
        let Some(mut browser) = Browser::with(scripts).await else {
            return;
        };
        let mut system = TestSystem::start(&["answer-0-start"]).await;
        let (_worker, _) = system.worker("w1").await;
        let (_web, base) = web(&system, ALLOWED, ("TARSY_WEB_TOKEN", TOKEN)).await;
        browser.open(&format!("{base}/queue")).await;
        browser.arrives_at("/login").await;
        browser.fill("input[name=token]", "wrong").await;
        browser.click("form button").await;
        browser
            .until("document.body?.innerText.includes('This is not the token.') ?? false")
            .await;
        browser.fill("input[name=token]", TOKEN).await;
        browser.click("form button").await;
        browser.arrives_at("/queue").await;
        cancels_and_asks(&mut system, &mut browser, &base).await;
        searches(&mut browser, &base).await;
        browser.click("form.out button").await;
        browser.arrives_at("/login").await;
        browser.open(&format!("{base}/")).await;
        browser.arrives_at("/login").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_of_a_proxy_asks_and_cancels() {
    for scripts in [Scripts::On, Scripts::Off] {
        let Some(mut browser) = Browser::with(scripts).await else {
            return;
        };
        let mut system = TestSystem::start(&["answer-0-start"]).await;
        let (_worker, _) = system.worker("w1").await;
        let section = format!("auth: proxy, {ALLOWED}");
        let (_web, base) = web(&system, &section, ("TARSY_WEB_PROXY_SECRET", SECRET)).await;
        let user = json!({"x-tarsy-proxy-secret": SECRET, "x-forwarded-email": "ada@example.com"});
        browser.headers(user).await;
        cancels_and_asks(&mut system, &mut browser, &base).await;
        searches(&mut browser, &base).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_users_the_pages_have_only_forms_that_send_nothing() {
    for scripts in [Scripts::On, Scripts::Off] {
        let Some(mut browser) = Browser::with(scripts).await else {
            return;
        };
        let system = TestSystem::start(&[]).await;
        let (_worker, _) = system.worker("w1").await;
        let (_web, base) = web(&system, ALLOWED, ("TARSY_UNUSED", "")).await;
        let session = system.publish().await;
        system.follow(session).await.finish().await;
        for path in [
            "/".to_owned(),
            format!("/sessions/{session}"),
            "/queue".to_owned(),
        ] {
            browser.open(&format!("{base}{path}")).await;
            assert_eq!(
                browser
                    .eval("document.querySelectorAll('form[method=post]').length")
                    .await,
                0,
                "{path}"
            );
        }
        searches(&mut browser, &base).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_of_another_site_sends_nothing_that_counts() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let section = format!("auth: proxy, {ALLOWED}");
    let (_web, base) = web(&system, &section, ("TARSY_WEB_PROXY_SECRET", SECRET)).await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    // The browser has the credentials, the page comes from elsewhere: another origin, and none at all.
    browser
        .headers(json!({"x-tarsy-proxy-secret": SECRET, "x-forwarded-email": "ada@example.com"}))
        .await;
    let form = format!(
        "<form method=post action='{base}/sessions/{session}/questions'><input name=question value=Why><button>x</button></form>"
    );
    for page in [
        format!("data:text/html,{form}"),
        format!("data:text/html,<meta name=referrer content=no-referrer>{form}"),
    ] {
        browser.call("Page.navigate", json!({"url": page})).await;
        browser.click("form button").await;
        browser.until("document.body?.innerText.includes('a page of another site sent this request') ?? false").await;
    }
    let questions: Value = system.database.number("SELECT count(*) FROM alerts").into();
    assert_eq!(questions, 1, "no question was asked");
}
