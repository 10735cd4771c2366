//! Budgets of a page: its size, and its times in a browser on a slow processor. `-- --nocapture` prints the figures.
//! With `TARSY_WEB_BUDGETS=1` and an optimised program (`TARSY_TEST_PROGRAM`) the times have to be within their
//! budgets. The proof has wide bounds. The suite compares no time and slows no processor down, because parallel tests
//! decide about both; it has the bounds of nodes, rows and bytes.

use diesel::connection::{Connection as _, SimpleConnection as _};
use serde_json::{Value, json};
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use super::driver::Browser;
use super::{OVERFLOW, web_of};
use crate::support::figures::is_proof;
use crate::support::system::{Setup, TestSystem};
use crate::web::list::SESSIONS;

fn is_strict() -> bool {
    std::env::var("TARSY_WEB_BUDGETS").is_ok_and(|value| value == "1")
}

/// The factor by which the processor of the page is slower than this machine.
fn slowness() -> u32 {
    if is_strict() || is_proof() { 4 } else { 1 }
}

/// The budget under `TARSY_WEB_BUDGETS=1`, else a bound that holds on a busy machine with a program that is not
/// optimised.
fn within(what: &str, took: f64, budget: f64) {
    println!("{what}: {took:.1} ms");
    if !is_strict() && !is_proof() {
        return;
    }
    let most = if is_strict() {
        budget
    } else {
        (budget * 20.0).max(5_000.0)
    };
    assert!(took <= most, "{what}: {took:.1} ms of {most} ms");
}

/// A number that the page computes.
async fn number(browser: &mut Browser, expression: &str) -> f64 {
    browser
        .eval(expression)
        .await
        .as_f64()
        .unwrap_or_else(|| panic!("{expression} is no number"))
}

/// The first paint after the first byte of the page, and the end of its load, in milliseconds.
async fn times(browser: &mut Browser) -> [f64; 2] {
    let since = "((at) => at - performance.getEntriesByType('navigation')[0].responseStart)";
    browser
        .until("performance.getEntriesByName('first-contentful-paint').length > 0")
        .await;
    let paint = number(
        browser,
        &format!("{since}(performance.getEntriesByName('first-contentful-paint')[0].startTime)"),
    )
    .await;
    [
        paint,
        number(
            browser,
            &format!("{since}(performance.getEntriesByType('navigation')[0].loadEventEnd)"),
        )
        .await,
    ]
}

/// An investigation of 5,000 events whose results have 2.4 kB each, the analysis cites two of them.
const LONG: &str = "
INSERT INTO alerts (alert_id, last_delivery, stream_sequence, deliveries, place, body_sha256, subject, headers, title, severity,
                    fingerprint, body)
  VALUES ('ID', 'ID', 1, 1, 'opened', sha256('x'), 'tarsy.alerts.high', '{}', 'LedgerDriftDetected payments/ledger', 'high', 'f',
          'the ledger drifts');
INSERT INTO alert_sessions (session_id, created_at, deadline_at, lease_expires_at, lease_period, lease_token, worker_name,
                            fingerprint, chain, event_seq, status, finished_at, settled_at, executive_summary, final_analysis)
  VALUES ('ID', now() - interval '1 h', now(), now(), '30 s', 'ID', 'w', 'f', 'default', 5000, 'completed', now(), now(),
          E'Cause: booked twice [1001]\\nEvidence: the pages [1001, 3001]', E'Cause: booked twice [1001]\\nEvidence: the pages [1001, 3001]');
INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT 'ID', now() - (5000 - n) * interval '700 ms', n, 1,
         CASE WHEN n = 1 THEN 'session_started' WHEN n = 5000 THEN 'session_completed'
              WHEN n % 2 = 0 THEN 'llm_tool_call' ELSE 'tool_result' END, 'completed',
         CASE WHEN n % 2 = 0 THEN '{\"page\": ' || n || '}' ELSE repeat('line of a result' || chr(10), 140) END,
         jsonb_build_object('tool_name', 'drill.journal_page', 'call_id', 'c' || n / 2, 'took_ms', 9)
  FROM generate_series(1, 5000) n;
ANALYZE;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_five_thousand_events_is_usable_on_a_slow_processor() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let id = SessionId(Uuid::now_v7());
    system
        .database
        .execute(&LONG.replace("ID", &id.to_string()));
    let (_web, base) = web_of(&system).await;
    let page = format!("{base}/sessions/{id}");
    browser.looks(390, "light").await;
    browser
        .call(
            "Emulation.setCPUThrottlingRate",
            json!({"rate": slowness()}),
        )
        .await;
    browser.open(&page).await;
    let [paint, load] = times(&mut browser).await;
    let nodes = "((walk, n) => { while (walk.nextNode()) n += 1; return n; })(document.createTreeWalker(document, NodeFilter.SHOW_ALL), 1)";
    let nodes = number(&mut browser, nodes).await;
    let rows = number(
        &mut browser,
        "document.querySelectorAll('#rows > .r:not(.run)').length",
    )
    .await;
    let append = "(() => { const rows = document.querySelector('#rows'), row = rows.lastElementChild.cloneNode(true); row.id = 'r9999'; \
                  scrollTo(0, document.body.scrollHeight); rows.offsetHeight; const begun = performance.now(); rows.append(row); \
                  rows.getBoundingClientRect(); row.offsetHeight; return performance.now() - begun; })()";
    let append = number(&mut browser, append).await;
    println!("5,000 events: {nodes} nodes, {rows} rows in the page");
    assert!(
        nodes <= 12_000.0 && rows <= 410.0,
        "{nodes} nodes, {rows} rows"
    );
    within(
        "5,000 events, slow processor: first paint after the first byte",
        paint,
        500.0,
    );
    within(
        "5,000 events, slow processor: loaded after the first byte",
        load,
        1_000.0,
    );
    within("5,000 events, slow processor: a row appended", append, 20.0);
    browser
        .call("Emulation.setCPUThrottlingRate", json!({"rate": 1}))
        .await;

    // A number in a folded range loads the range; a cited one is there.
    for number in [1001, 2001] {
        browser.open(&format!("{page}#{number}")).await;
        let shown = format!(
            "document.querySelector('details[open] [id=\"{number}\"] pre')?.textContent.includes('line of a result') ?? false"
        );
        browser.until(&shown).await;
    }
    assert_eq!(browser.eval(OVERFLOW).await, 0);
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_five_hundred_sessions_is_painted_in_time() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    system
        .database
        .execute(&format!("{}ANALYZE;", SESSIONS.replace("COUNT", "600")));
    let (_web, base) = web_of(&system).await;
    browser.looks(390, "light").await;
    browser
        .call(
            "Emulation.setCPUThrottlingRate",
            json!({"rate": slowness()}),
        )
        .await;
    browser
        .open(&format!("{base}/?since=&limit=500&alike=0"))
        .await;
    let [paint, load] = times(&mut browser).await;
    assert_eq!(
        number(&mut browser, "document.querySelectorAll('.sr').length").await,
        500.0
    );
    within(
        "500 sessions, slow processor: first paint after the first byte",
        paint,
        500.0,
    );
    within(
        "500 sessions, slow processor: loaded after the first byte",
        load,
        1_000.0,
    );
}

/// Keeps when each event's row was drawn: after the frame that has it.
const DRAWN: &str = "window.drawn = []; addEventListener('DOMContentLoaded', () => {
  const rows = document.querySelector('#rows');
  if (!rows) return;
  const drawn = (number) => requestAnimationFrame(() => setTimeout(() => drawn_at(number)));
  const drawn_at = (number) => window.drawn.push([number, performance.timeOrigin + performance.now()]);
  const take = (row) => row.matches?.('.r:not(.live)') && drawn(Number(row.dataset.n));
  new MutationObserver((all) => all.forEach((one) => one.addedNodes.forEach(take))).observe(rows, { childList: true });
});";

/// Calls of the measured investigation: each makes two events.
fn calls() -> usize {
    if is_strict() { 120 } else { 30 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_drawn_soon_after_its_commit() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let calls = calls();
    let call = "{tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p, page: '{n}'}}";
    let transcript = format!(
        "name: paced\nmatch: KubePodOOMKilled\nanswers:\n  - chunks: [gate: begin, {{call: {call}}}]\n  \
         - times: {calls}\n    chunks: [{{wait: 20ms}}, {{call: {call}}}]\n  - chunks: [text: 'Cause: a drill [[*]].']\n"
    );
    let sections = "defaults: {max_iterations: 500}\n";
    let setup = Setup {
        watched: &["begin"],
        transcript: Some(transcript),
        sections,
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let (_worker, _) = system.worker("w1").await;
    let (_web, base) = web_of(&system).await;
    let session = system.publish().await;
    let begin = system.gates.next().await;
    browser.before_each_page(DRAWN).await;
    browser.open(&format!("{base}/sessions/{session}")).await;
    browser
        .until("document.querySelector('#net').textContent.trim() === 'live'")
        .await;
    begin.open().await;
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
    let drawn: Vec<(u32, f64)> = serde_json::from_value(browser.eval("drawn").await).unwrap();
    let at = |number: u32| {
        timeline
            .seen
            .iter()
            .find(|event| event.session_seq == number)
            .unwrap()
            .created_at
    };
    let mut took: Vec<f64> = drawn
        .iter()
        .map(|(number, drawn)| drawn - at(*number).timestamp_micros() as f64 / 1_000.0)
        .collect();
    took.sort_by(f64::total_cmp);
    assert!(
        took.len() >= 2 * calls,
        "{} rows came over the stream",
        took.len()
    );
    println!(
        "commit to pixel of {} events: median {:.1} ms",
        took.len(),
        took[took.len() / 2]
    );
    within(
        "commit to pixel, 99th percentile",
        took[took.len() * 99 / 100],
        100.0,
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_and_answer_are_painted_before_the_timeline_is_read() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let id = SessionId(Uuid::now_v7());
    system.database.execute(
        &LONG
            .replace("ID", &id.to_string())
            .replace("(1, 5000)", "(1, 30)"),
    );
    // Without an analysis the head needs no event.
    system.database.execute("UPDATE alert_sessions SET final_analysis = NULL, executive_summary = NULL, status = 'failed', error = 'no answer'");
    let (_web, base) = web_of(&system).await;
    let mut locked = system.database.connection();
    locked.begin_test_transaction().unwrap();
    locked
        .batch_execute("LOCK TABLE timeline_events IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    browser
        .call(
            "Page.navigate",
            json!({"url": format!("{base}/sessions/{id}")}),
        )
        .await;
    browser.until("!!document.querySelector('#answer')?.checkVisibility() && performance.getEntriesByName('first-contentful-paint').length > 0").await;
    let words: Value = browser.eval("[document.querySelector('h1').textContent, document.querySelector('#answer .why p').textContent, document.readyState]").await;
    assert_eq!(
        words,
        json!([
            "LedgerDriftDetected payments/ledger",
            "No answer",
            "loading"
        ])
    );
    assert_eq!(
        browser.eval("document.querySelector('#timeline')").await,
        Value::Null
    );
    locked.batch_execute("ROLLBACK").unwrap();
    drop(locked);
    browser.until("document.readyState === 'complete' && document.querySelectorAll('#rows > .r').length > 10").await;
}

/// The bytes that a browser gets, with a bound for each kind of response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_page_loads_is_small() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let (_web, base) = web_of(&system).await;
    browser.open(&format!("{base}/sessions/{session}")).await;
    let sizes = browser
        .eval("performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((entry) => \
               [entry.name.replace(/.*[/]([a-z]+)-[0-9a-f]+[.]/, '$1.').replace(/.*sessions.*/, 'page'), entry.encodedBodySize])")
        .await;
    let sizes: Vec<(String, u64)> = serde_json::from_value(sizes).unwrap();
    println!("bytes over the network: {sizes:?}");
    let of = |name: &str| {
        sizes
            .iter()
            .find(|(kind, _)| kind == name)
            .unwrap_or_else(|| panic!("no {name}: {sizes:?}"))
            .1
    };
    assert!(
        of("page") <= 20_000 && of("style.css") <= 7_000 && of("script.js") <= 4_000,
        "{sizes:?}"
    );
    // Nothing else but the icon.
    assert!(
        sizes.iter().all(
            |(name, _)| ["page", "style.css", "script.js", "icon.svg"].contains(&name.as_str())
        ),
        "{sizes:?}"
    );
}
