//! States of a running investigation that only a reader of its page sees: an answer that is requested again, a page
//! without a connection, a server without a broker, rows below the window.

use serde_json::json;

use super::driver::Browser;
use super::{accessible, pictures, web_of};
use crate::support::link::{Link, Mode};
use crate::support::system::{Setup, TestSystem};
use crate::web::Web;

const IS_LIVE: &str = "document.querySelector('#net').textContent.trim() === 'live'";
const IS_NOT_LIVE: &str = "document.querySelector('#net.off')?.textContent.trim() === 'not live'";

/// A model that stops at a gate in the middle of its first answer.
fn transcript() -> String {
    // A line is shown when it is known to be no secret.
    let text =
        json!("The working set climbs steadily from 480Mi to 511Mi in forty minutes.\n".repeat(30));
    format!(
        "name: halfway\nmatch: KubePodOOMKilled\nanswers:\n  - chunks:\n      - gate: has-begun\n      - text: {text}\n      \
         - gate: is-writing\n      - call: {{tool: drill.describe_pod, arguments: {{namespace: checkout, pod: \
         checkout-7d9f8b6c5-x2x9p}}}}\n  - chunks: [text: 'Cause: a drill [[*]].']\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_another_worker_requests_again_is_struck_out_until_its_event() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let transcript = Some(transcript());
    let setup = Setup {
        watched: &["has-begun", "is-writing"],
        transcript,
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let (mut first, _) = system.worker("w1").await;
    let (_web, base) = web_of(&system).await;
    let session = system.publish().await;
    let begun = system.gates.next().await;
    browser.open(&format!("{base}/sessions/{session}")).await;
    browser.until(IS_LIVE).await;
    // A delta is sent once: the server has to follow the session before it.
    system.follower_reads().await;
    begun.open().await;
    let writes = system.gates.next().await;
    let is_written = "document.querySelector('.live:not(.gone) .d')?.textContent.includes('working set') ?? false";
    browser.until(is_written).await;
    first.kill().await;
    drop(writes);
    let (_second, _) = system.worker("w2").await;
    let is_gone =
        "document.querySelector('.gone .d')?.textContent.includes('working set') ?? false";
    let begun = system.gates.next().await;
    browser.until(is_gone).await;
    let line = "getComputedStyle(document.querySelector('.gone .d')).textDecorationLine";
    assert_eq!(browser.eval(line).await, "line-through");
    assert_eq!(
        browser
            .eval("document.querySelector('.gone .mk').textContent")
            .await,
        "try 1, cut off"
    );
    begun.open().await;
    let writes = system.gates.next().await;
    browser.until(is_written).await;
    let order =
        "[...document.querySelectorAll('#rows > .live')].map((row) => row.matches('.gone'))";
    assert_eq!(
        browser.eval(order).await,
        json!([true, false]),
        "the first attempt, then the one that goes on"
    );
    pictures::of_state(&mut browser, "superseded").await;
    assert_eq!(
        accessible::of_state(&mut browser).await,
        Vec::<String>::new()
    );
    writes.open().await;
    browser
        .until("document.querySelectorAll('#rows > .live').length === 0 && !!document.querySelector('#rows > .call')")
        .await;
    system.follow(session).await.finish().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
    let head = browser
        .eval("document.querySelector('#head .meta').innerText")
        .await;
    let head = head
        .as_str()
        .unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(head.contains("worker w1 ↻ taken over by w2"), "{head}");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_says_that_it_is_not_live_or_not_connected_while_it_is_so() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = Web::start(&system, &[]).await;
    let session = system.publish().await;
    let arrived = system.gates.next().await;
    let link = Link::to(web.address.rsplit(':').next().unwrap().parse().unwrap()).await;
    let page = format!("http://127.0.0.1:{}/sessions/{session}", link.port());
    browser.open(&page).await;
    browser.until(IS_LIVE).await;
    // The broker is lost while the stream is open, and the page is opened without a broker.
    system.nats.kill();
    browser.until(IS_NOT_LIVE).await;
    browser.open(&page).await;
    browser
        .until("performance.getEntriesByType('resource').length > 0")
        .await;
    browser.until(IS_NOT_LIVE).await;
    browser
        .eval("new Promise((done) => setTimeout(done, 1500))")
        .await; // longer than the stream needs to open
    assert_eq!(
        browser.eval(IS_NOT_LIVE).await,
        true,
        "an open stream is not a live one"
    );
    system.nats.restart().await;
    browser.until(IS_LIVE).await;
    link.set(Mode::Cut);
    browser
        .until("document.querySelector('#banner').textContent.includes('Not connected since')")
        .await;
    browser
        .until("document.querySelector('#net.off')?.textContent.trim() === 'not connected'")
        .await;
    let last = browser
        .eval("document.querySelector('#rows').dataset.last")
        .await;
    let banner = browser
        .eval("document.querySelector('#banner').textContent")
        .await;
    assert!(
        banner
            .as_str()
            .unwrap()
            .contains(&format!("up to number {}", last.as_str().unwrap())),
        "{banner}"
    );
    pictures::of_state(&mut browser, "disconnected").await;
    assert_eq!(
        accessible::of_state(&mut browser).await,
        Vec::<String>::new()
    );
    link.set(Mode::Open);
    browser.until(IS_LIVE).await;
    assert_eq!(
        browser
            .eval("document.querySelector('#banner').textContent")
            .await,
        ""
    );
    arrived.open().await;
    system.follow(session).await.finish().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_who_has_scrolled_is_not_moved_and_gets_the_number_of_new_rows() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let mut system = TestSystem::start(&["answer-1-middle", "answer-3-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let (_web, base) = web_of(&system).await;
    let session = system.publish().await;
    let first = system.gates.next().await;
    browser.looks(390, "light").await;
    let metrics = json!({"width": 390, "height": 400, "deviceScaleFactor": 1, "mobile": true});
    browser
        .call("Emulation.setDeviceMetricsOverride", metrics)
        .await;
    browser.open(&format!("{base}/sessions/{session}")).await;
    browser.until(IS_LIVE).await;
    let rows = "document.querySelectorAll('#rows > .r:not(.live)').length";
    let before = browser.eval(rows).await.as_u64().unwrap();
    browser.eval("scrollTo(0, 40)").await;
    first.open().await;
    let last = system.gates.next().await;
    browser
        .until(&format!(
            "{rows} > {before} + 2 && !document.querySelector('.new').hidden"
        ))
        .await;
    assert_eq!(browser.eval("scrollY").await, 40, "no jump");
    let is_counted = format!(
        "document.querySelector('.new a').textContent === `${{{rows} - {before}}} new rows ↓` && document.querySelector('.new').checkVisibility()"
    );
    browser.until(&is_counted).await;
    browser
        .eval("document.querySelector('.new a').click()")
        .await;
    let is_at_end = "document.querySelector('#rows').lastElementChild.getBoundingClientRect().bottom <= innerHeight + 1";
    browser.until(is_at_end).await;
    assert_eq!(
        browser.eval("document.querySelector('.new').hidden").await,
        true
    );
    // A reader at the end stays there.
    last.open().await;
    system.follow(session).await.finish().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
    assert_eq!(
        browser.eval("document.querySelector('.new').hidden").await,
        true
    );
}
