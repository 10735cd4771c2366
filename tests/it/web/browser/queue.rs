//! The page whose address `submit` prints, before a worker has seen the alert; and the system page.

use std::time::Duration;

use serde_json::json;

use super::accessible::in_each_width;
use super::driver::Browser;
use super::{OVERFLOW, web_of};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;
use crate::web::system::{started, system_of};

/// Whether something in the page says this.
fn says(selector: &str, words: &str) -> String {
    format!("(document.querySelector({selector:?})?.innerText ?? '').includes({words:?})")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_opened_in_the_queue_goes_on_to_the_end_by_itself() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (web, base) = web_of(&system).await;
    let session = system.publish().await;
    let page = format!("/sessions/{session}");
    eventually("the queue has the alert", async || {
        web.get(&page).await.body.contains("Waiting: 1 critical")
    })
    .await;
    assert_eq!(
        (
            web.get(&page).await.status,
            web.get(&format!("/api/v1{page}")).await.status
        ),
        (200, 404)
    );
    assert_eq!(
        web.get("/sessions/0198b2c4").await.status,
        404,
        "a part of an id that no session has"
    );
    browser.open(&format!("{base}{page}")).await;
    browser.until(&says("#head", "in the queue")).await;
    browser
        .until(&says("#answer", "no worker has sent its status"))
        .await;
    browser.until(&says("#net", "live")).await;
    let (_worker, _) = system.worker("w1").await;
    let last = system.follow(session).await.finish().await.session_seq;
    browser.until(&says("#head", "completed")).await;
    browser.until(&says("#answer", "revision 43")).await;
    browser.until(&says("#beside", "OOM-killed")).await;
    let numbers = "[...document.querySelectorAll('#rows > .r')].flatMap((row) => row.querySelector('.n').textContent.match(/\\d+/g))\
                   .map(Number).sort((one, other) => one - other)";
    assert_eq!(
        browser.eval(numbers).await,
        json!((1..=last).collect::<Vec<_>>()),
        "each number once"
    );
    assert_eq!(
        browser
            .eval("document.querySelectorAll('#lanes, h1, #head').length")
            .await,
        3
    );
    let title = browser.eval("document.title").await;
    assert!(
        title.as_str().unwrap().starts_with("KubePodOOMKilled"),
        "{title}"
    );
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_an_alert_that_joins_another_one_says_so_by_itself() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start_with(Setup {
        cooldown: Duration::from_secs(3_600),
        ..Setup::default()
    })
    .await;
    let (mut worker, _) = system.worker("w1").await;
    let first = system.publish().await;
    system.follow(first).await.finish().await;
    worker.kill().await;
    let (_web, base) = web_of(&system).await;
    let second = system.publish().await;
    browser.open(&format!("{base}/sessions/{second}")).await;
    browser.until(&says("#head", "in the queue")).await;
    let (_worker, _) = system.worker("w2").await;
    browser.until(&says("#head", "joined")).await;
    let link = format!("document.querySelector('#answer a')?.pathname === '/sessions/{first}'");
    browser.until(&link).await;
    browser
        .until("document.querySelector('#net').innerText.trim() === ''")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_reads_the_system_page_in_the_browser() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let (_system, _worker, web) = started().await;
    eventually("the worker has reported", async || {
        system_of(&web).await["workers"][0]["state"] == "current"
    })
    .await;
    browser
        .headers(json!({"authorization": "Bearer s3cret-of-the-web"}))
        .await;
    let base = format!("http://{}", web.address);
    for width in [390, 1280] {
        browser.looks(width, "light").await;
        browser.open(&format!("{base}/")).await;
        browser
            .click_element("document.querySelector('nav a[href=\"/system\"]')")
            .await;
        browser
            .until("location.pathname === '/system' && document.readyState === 'complete'")
            .await;
        browser
            .click_element("document.querySelector('.sys details summary')")
            .await;
        browser
            .until("document.querySelector('.sys details pre').checkVisibility()")
            .await;
        assert_eq!(browser.eval(OVERFLOW).await, 0, "at {width}");
        assert_eq!(in_each_width(&mut browser).await, Vec::<String>::new());
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}
