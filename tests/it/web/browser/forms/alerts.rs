//! The forms that queue an alert: one that a person writes, and one that is investigated again.

use serde_json::json;
use tarsy_core::ids::SessionId;

use super::super::OVERFLOW;
use super::super::accessible::in_each_width;
use super::super::driver::Browser;
use super::{SECRET, Scripts, TOKEN, web};
use crate::support::system::TestSystem;

const ALERTS: &str = "allow: {rerun: ['*'], submit: ['*']}";
const TEXT: &str = "KubePodOOMKilled checkout\nthe pod restarts <again> & again";
/// The number of links and forms that queue an alert.
const WAYS: &str =
    "document.querySelectorAll('a[href=\"/submit\"], a[href$=\"/rerun\"], form.order').length";

/// In each width: no rule of axe broken, and nothing beyond the window. Then the width of before.
async fn is_well_made(browser: &mut Browser, scripts: Scripts, width: u32) {
    // The rules of axe are a script.
    if scripts == Scripts::On {
        assert_eq!(in_each_width(browser).await, Vec::<String>::new());
    }
    for width in [390, 1280, width] {
        browser.looks(width, "light").await;
        assert_eq!(browser.eval(OVERFLOW).await, 0, "{width}");
    }
}

/// The session on whose page the browser arrives.
async fn arrives_at_session(browser: &mut Browser) -> SessionId {
    browser
        .until("/^\\/sessions\\/[0-9a-f-]{36}$/.test(location.pathname) && document.readyState === 'complete'")
        .await;
    let path = browser
        .eval("location.pathname")
        .await
        .as_str()
        .unwrap()
        .to_owned();
    SessionId::parse(path.trim_start_matches("/sessions/")).unwrap()
}

/// Submits an alert, with a mistake before, and has it investigated again, as a person who is known.
async fn submits_and_reruns(
    system: &mut TestSystem,
    browser: &mut Browser,
    base: &str,
    look: (Scripts, u32),
) {
    let (scripts, width) = look;
    browser.looks(width, "light").await;
    browser.open(&format!("{base}/")).await;
    browser.click("nav a[href='/submit']").await;
    browser.arrives_at("/submit").await;
    is_well_made(browser, scripts, width).await;
    // A text of blanks passes the browser's own check, and the server says what is wrong.
    browser.fill("#alert", "  ").await;
    browser
        .eval("document.querySelector('#priority').value = 'high'; 0")
        .await;
    browser.click("#cooldown").await;
    browser.click("form.order button").await;
    browser.until("document.querySelector('#problem')?.innerText.startsWith('The alert is empty') ?? false").await;
    let kept = "[document.querySelector('#alert').value, document.querySelector('#priority').value, document.querySelector('#cooldown').checked]";
    assert_eq!(browser.eval(kept).await, json!(["  ", "high", true]));
    is_well_made(browser, scripts, width).await;
    browser
        .eval("document.querySelector('#alert').value = ''; 0")
        .await;
    browser.fill("#alert", TEXT).await;
    // A double click: the form is sent twice.
    browser.click("form.order button").await;
    browser.click_if_there("form.order button").await;
    let submitted = arrives_at_session(browser).await;
    let held = system.gates.next().await;
    let stored = system.database.text(&format!(
        "SELECT body FROM alerts WHERE alert_id = '{submitted}'"
    ));
    assert_eq!(stored, TEXT);
    held.open().await;
    system.follow(submitted).await.finish().await;

    let page = format!("/sessions/{submitted}");
    browser.open(&format!("{base}{page}")).await;
    browser.click(&format!("a[href='{page}/rerun']")).await;
    browser.arrives_at(&format!("{page}/rerun")).await;
    let prefilled = browser.eval("document.querySelector('#alert').value").await;
    assert_eq!(
        (
            prefilled,
            browser
                .eval("document.querySelector('#alert').readOnly")
                .await
        ),
        (json!(TEXT), json!(true))
    );
    is_well_made(browser, scripts, width).await;
    browser.click("form.order button").await;
    browser
        .until(&format!("location.pathname !== '{page}/rerun'"))
        .await;
    let rerun = arrives_at_session(browser).await;
    assert_ne!(rerun, submitted);
    system.gates.next().await.open().await;
    system.follow(rerun).await.finish().await;
    let retried = format!("SELECT retry_of::text FROM alert_sessions WHERE session_id = '{rerun}'");
    assert_eq!(system.database.text(&retried), submitted.to_string());

    // From there to the form of a new alert, which has the text already.
    browser.open(&format!("{base}{page}/rerun")).await;
    browser.click("a[href^='/submit?from=']").await;
    browser.arrives_at("/submit").await;
    assert_eq!(
        browser.eval("document.querySelector('#alert').value").await,
        TEXT
    );
    is_well_made(browser, scripts, width).await;
    assert_eq!(
        system.database.number("SELECT count(*) FROM alerts"),
        2,
        "each was queued once"
    );
    let refused = |problem: &String| problem.contains("400 (Bad Request)");
    assert_eq!(
        browser
            .problems()
            .into_iter()
            .filter(|each| !refused(each))
            .collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_with_the_token_submits_an_alert_and_reruns_it() {
    for look in [(Scripts::On, 390), (Scripts::Off, 1280)] {
        let Some(mut browser) = Browser::with(look.0).await else {
            return;
        };
        let mut system = TestSystem::start(&["answer-0-start"]).await;
        let (_worker, _) = system.worker("w1").await;
        let (_web, base) = web(&system, ALERTS, ("TARSY_WEB_TOKEN", TOKEN)).await;
        browser.open(&format!("{base}/login")).await;
        browser.fill("input[name=token]", TOKEN).await;
        browser.click("form button").await;
        browser.until("location.pathname !== '/login'").await;
        submits_and_reruns(&mut system, &mut browser, &base, look).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_of_a_proxy_submits_an_alert_and_reruns_it() {
    for look in [(Scripts::On, 1280), (Scripts::Off, 390)] {
        let Some(mut browser) = Browser::with(look.0).await else {
            return;
        };
        let mut system = TestSystem::start(&["answer-0-start"]).await;
        let (_worker, _) = system.worker("w1").await;
        let section = format!("auth: proxy, {ALERTS}");
        let (_web, base) = web(&system, &section, ("TARSY_WEB_PROXY_SECRET", SECRET)).await;
        browser
            .headers(
                json!({"x-tarsy-proxy-secret": SECRET, "x-forwarded-email": "ada@example.com"}),
            )
            .await;
        submits_and_reruns(&mut system, &mut browser, &base, look).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_rights_no_page_has_a_way_to_queue_an_alert() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    // With `none` no user is known, who could have a right.
    for (section, secret) in [
        (ALERTS, ("TARSY_UNUSED", "")),
        ("auth: proxy", ("TARSY_WEB_PROXY_SECRET", SECRET)),
    ] {
        let (_web, base) = web(&system, section, secret).await;
        browser
            .headers(
                json!({"x-tarsy-proxy-secret": SECRET, "x-forwarded-email": "ada@example.com"}),
            )
            .await;
        let page = format!("/sessions/{session}");
        for path in ["/", "/queue", &page] {
            browser.open(&format!("{base}{path}")).await;
            assert_eq!(browser.eval(WAYS).await, 0, "{section} {path}");
        }
        for path in ["/submit".to_owned(), format!("{page}/rerun")] {
            browser.open(&format!("{base}{path}")).await;
            browser
                .until("document.querySelector('h1')?.innerText === 'Forbidden'")
                .await;
            assert_eq!(browser.eval(WAYS).await, 0, "{section} {path}");
        }
    }
}
