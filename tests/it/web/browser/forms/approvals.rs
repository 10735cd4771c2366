//! The form that decides about a call, in the browser: with and without script, by mouse and by keyboard.

use serde_json::json;

use super::super::OVERFLOW;
use super::super::accessible::in_each_width;
use super::super::driver::Browser;
use super::Scripts;
use crate::web::approvals::fixture::{Asking, SECRET};

/// A text that would be code, or another text than it shows, if the page did not mark and escape it.
const HOSTILE: &str = "{\"pod\":\"db-1</pre><img src=x onerror=document.title=1>\u{202e}gnp\",\"n\":12345678901234567890123}";

async fn as_ana(browser: &mut Browser) {
    browser
        .headers(json!({"X-Tarsy-Proxy-Secret": SECRET, "X-Forwarded-Email": "ana@example.com"}))
        .await;
}

/// Waits for a text of the page.
async fn says(browser: &mut Browser, text: &str) {
    browser
        .until(&format!(
            "document.body?.innerText.includes({text:?}) ?? false"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_approves_what_the_page_shows_and_back_approves_nothing_again() {
    for scripts in [Scripts::On, Scripts::Off] {
        let Some(mut browser) = Browser::with(scripts).await else {
            return;
        };
        let asking = Asking::with("default", HOSTILE).await;
        let web = asking.behind_proxy().await;
        let _recorder = asking.recorder().await;
        let base = format!("http://{}", web.address);
        as_ana(&mut browser).await;
        browser.open(&format!("{base}/")).await;
        browser.click("nav a[href='/approvals']").await;
        browser.arrives_at("/approvals").await;
        if scripts == Scripts::On {
            assert_eq!(in_each_width(&mut browser).await, Vec::<String>::new());
        }
        browser.click(&format!("a[href='{}']", asking.path())).await;
        browser.arrives_at(&asking.path()).await;
        if scripts == Scripts::On {
            assert_eq!(in_each_width(&mut browser).await, Vec::<String>::new());
        }
        for width in [390, 1280] {
            browser.looks(width, "light").await;
            assert_eq!(browser.eval(OVERFLOW).await, 0, "{width}");
        }
        let arguments = browser
            .eval("document.querySelector('pre.args').innerText")
            .await;
        let arguments = arguments.as_str().unwrap().to_owned();
        assert!(
            arguments.contains("<img src=x onerror=document.title=1>U+202Egnp")
                && arguments.contains("12345678901234567890123"),
            "{arguments}"
        );
        assert_eq!(browser.eval("document.images.length").await, 0);
        browser.fill("#comment", "once <only>").await;
        browser.click("button[value=approve]").await;
        says(&mut browser, "Recorded: ana approved this call").await;
        assert_eq!(
            browser.eval("document.querySelector('form.decide')").await,
            json!(null)
        );
        browser.eval("history.back(); 0").await;
        browser
            .until("document.querySelector('button[value=approve]') !== null")
            .await;
        browser.click("button[value=deny]").await;
        says(&mut browser, "Not counted: it was decided before").await;
        assert_eq!(
            asking.system.database.text("SELECT outcome FROM approvals"),
            "approved"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_denies_by_keyboard_and_a_stale_page_says_what_changed() {
    let Some(mut browser) = Browser::with(Scripts::On).await else {
        return;
    };
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let _recorder = asking.recorder().await;
    as_ana(&mut browser).await;
    browser
        .open(&format!("http://{}{}", web.address, asking.path()))
        .await;
    asking
        .system
        .database
        .execute("UPDATE alert_sessions SET updates = updates + 1");
    browser
        .eval("document.querySelector('#comment').focus(); 0")
        .await;
    browser.press("Tab").await;
    browser
        .until("document.activeElement.value === 'approve'")
        .await;
    browser.press("Enter").await;
    says(&mut browser, "Not counted: the alert has changed").await;
    browser
        .eval("document.querySelector('#comment').focus(); 0")
        .await;
    for value in ["approve", "deny"] {
        browser.press("Tab").await;
        browser
            .until(&format!("document.activeElement.value === {value:?}"))
            .await;
    }
    browser.press("Enter").await;
    says(&mut browser, "Recorded: ana denied this call").await;
    let note = "document.querySelector('#outcome').getAttribute('role')";
    assert_eq!(browser.eval(note).await, "status");
    assert_eq!(
        asking.system.database.text("SELECT outcome FROM approvals"),
        "denied"
    );
}
