//! Pages of running investigations: each number once, whatever is cut off in between.

use serde_json::{Value, json};

use super::driver::Browser;
use super::{OVERFLOW, accessible, web_of};
use crate::interfaces::commands::run_with;
use crate::support::link::{Link, Mode};
use crate::support::process::metric_is;
use crate::support::process::ports::free_port;
use crate::support::system::{Setup, TestSystem};
use crate::web::Web;

/// Records the number of each event that the page has at first or gets later, in the order of their arrival. At the end
/// the page replaces its list by that of the server; `live` stays the one that the stream has made.
const RECORD: &str = "addEventListener('DOMContentLoaded', () => {
  window.live = document.querySelector('#rows');
  if (!window.live) return;
  window.numbers = [...live.children].flatMap((row) => row.querySelector('.n').textContent.match(/\\d+/g)).map(Number)
    .sort((one, other) => one - other);
  const take = (row) => row.matches?.('.r:not(.live)') && numbers.push(Number(row.dataset.n));
  new MutationObserver((all) => all.forEach((one) => one.addedNodes.forEach(take))).observe(live, { childList: true });
});";
/// The content of the rows, from their elements; a live row is not marked as cited.
const ROWS: &str = "((list) => [...list.children].map((row) => [row.id, row.dataset.n, ...['.n', 'time', '.w', '.d', '.x', '.tk', '.io', '.io ~ .io']\
                    .map((part) => row.querySelector(part)?.textContent)]))";
const IS_LOST: &str = "document.querySelector('#banner').textContent.includes('Not connected')";
const IS_LIVE: &str = "document.querySelector('#net').textContent.trim() === 'live'";

fn hide(hidden: bool) -> String {
    format!(
        "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }}); \
         document.dispatchEvent(new Event('visibilitychange'))"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_rows_equal_watch_while_the_server_is_killed_and_the_network_is_cut() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let gates = [
        "answer-0-middle",
        "answer-1-middle",
        "answer-2-middle",
        "answer-3-middle",
    ];
    let mut system = TestSystem::start(&gates).await;
    let (_worker, _) = system.worker("w1").await;
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let (mut web, link) = (
        Web::start_on(&system, &address, &[]).await,
        Link::to(port).await,
    );
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let first = system.gates.next().await;
    let page = format!("http://127.0.0.1:{}/sessions/{session}", link.port());
    browser.before_each_page(RECORD).await;
    browser.open(&page).await;
    browser.until(IS_LIVE).await;
    first.open().await;
    for (is_killed, is_cut) in [(true, false), (false, true), (true, true)] {
        let arrived = system.gates.next().await;
        if is_cut {
            link.set(Mode::Cut);
        }
        if is_killed {
            web.process.kill().await;
        }
        browser.until(IS_LOST).await;
        // The next steps are committed while the page has no connection.
        arrived.open().await;
        if is_killed {
            web = Web::start_on(&system, &address, &[]).await;
        }
        link.set(Mode::Open);
        browser.until(IS_LIVE).await;
    }
    let last = timeline.finish().await.session_seq;
    browser
        .until(
            "!!document.querySelector('#head .st.completed') && !document.querySelector('.live')",
        )
        .await;

    let env = system.env(system.database.url());
    let watched = run_with(&env.each(), &["watch", "--json", &session.to_string()], b"")
        .await
        .exits(0)
        .out;
    let watched: Vec<Value> = watched
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let numbers: Vec<u32> = serde_json::from_value(browser.eval("numbers").await).unwrap();
    assert_eq!(
        numbers,
        (1..=last).collect::<Vec<_>>(),
        "each number once, in order"
    );
    let watched_numbers: Vec<&Value> = watched.iter().map(|event| &event["session_seq"]).collect();
    assert_eq!(json!(numbers), json!(watched_numbers));
    let live = browser.eval(&format!("{ROWS}(live)")).await;
    for event in watched
        .iter()
        .filter(|event| event["event_type"] == "tool_result")
    {
        let number = event["session_seq"].as_u64().unwrap();
        // A series is shown as lines.
        if event["content"].as_str().unwrap().starts_with('{') {
            continue;
        }
        let shown = browser
            .eval(&format!(
                "live.querySelector('[id=\"{number}\"] pre').textContent"
            ))
            .await;
        assert_eq!(
            shown.as_str().unwrap().trim(),
            event["content"].as_str().unwrap().trim(),
            "{number}"
        );
    }
    // The rows are those of a page that is opened now.
    browser.open(&page).await;
    assert_eq!(
        live,
        browser
            .eval(&format!("{ROWS}(document.querySelector('#rows'))"))
            .await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_tab_holds_no_connection_and_goes_on_with_its_number() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let mut system = TestSystem::start(&["answer-1-middle", "answer-2-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let (web, base) = web_of(&system).await;
    let session = system.publish().await;
    let first = system.gates.next().await;
    browser.before_each_page(RECORD).await;
    browser.open(&format!("{base}/sessions/{session}")).await;
    metric_is(&web.metrics, "tarsy_web_streams", "", 1.0).await;
    let before = browser.eval("numbers.at(-1)").await;
    browser.eval(&hide(true)).await;
    metric_is(&web.metrics, "tarsy_web_streams", "", 0.0).await;
    first.open().await;
    let second = system.gates.next().await;
    assert_eq!(
        browser.eval("numbers.at(-1)").await,
        before,
        "a hidden page gets nothing"
    );
    browser.eval(&hide(false)).await;
    metric_is(&web.metrics, "tarsy_web_streams", "", 1.0).await;
    browser.until(IS_LIVE).await;
    let asked: Vec<String> = browser
        .requested()
        .into_iter()
        .filter(|url| url.contains("/live?"))
        .collect();
    assert_eq!(
        (
            asked.len(),
            asked[1].ends_with(&format!("/live?after={before}"))
        ),
        (2, true),
        "{asked:?}"
    );
    second.open().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
    metric_is(&web.metrics, "tarsy_web_streams", "", 0.0).await;
    let numbers: Vec<u32> = serde_json::from_value(browser.eval("numbers").await).unwrap();
    assert_eq!(
        numbers,
        (1..=system.follow(session).await.finish().await.session_seq).collect::<Vec<_>>()
    );
    // A session that is over opens no stream.
    browser.open(&format!("{base}/sessions/{session}")).await;
    assert_eq!(
        browser
            .requested()
            .iter()
            .filter(|url| url.contains("/live?"))
            .count(),
        2
    );
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_running_investigation_ticks_and_stops_with_it() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let mut system = TestSystem::start(&["answer-0-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = Web::start(&system, &[]).await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let held = system.gates.next().await;
    browser
        .open(&format!("http://{}/sessions/{session}", web.address))
        .await;
    browser.until(IS_LIVE).await;
    let clock = "document.querySelector('#head [data-ms]')?.textContent";
    let before = browser.eval(clock).await;
    browser
        .until(&format!("{clock} && {clock} !== {before}"))
        .await;
    let after = browser.eval(clock).await;
    browser.until(&format!("{clock} !== {after}")).await;
    assert!(
        after.as_str().unwrap().starts_with("for ") && after.as_str().unwrap().ends_with(" s"),
        "{after}"
    );
    held.open().await;
    timeline.finish().await;
    browser
        .until("!document.querySelector('#head [data-ms]')")
        .await;
}

/// Two agents that stop in the middle of their first answers, before either has an event.
const PARALLEL: &str = "
agents: {runtime: {}, changes: {}}
agent_chains:
  team: {default: true, stages: [{name: look, agents: [{name: runtime}, {name: changes}]}]}
";

fn writes(agent: &str, gate: &str) -> String {
    // A line is shown when it is known to be no secret.
    let text = json!(format!("The {agent} agent looks at the pod.\n").repeat(30));
    format!(
        "name: pair\nmatch: KubePodOOMKilled\nagent: {agent}\nanswers:\n  - chunks:\n      - gate: begins\n      - text: \
         {text}\n      - gate: {gate}\n      - call: {{tool: drill.describe_pod, arguments: {{namespace: checkout, pod: \
         checkout-7d9f8b6c5-x2x9p}}}}\n  - chunks: [text: 'Cause: a drill [[*]].']\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_two_agents_that_write_at_once_is_named() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let (runtime, changes) = (
        writes("runtime", "one-writes"),
        writes("changes", "other-writes"),
    );
    let ends = "name: pair\nmatch: KubePodOOMKilled\nagent: synthesis\nanswers:\n  - chunks: [text: 'Cause: a drill']\n";
    let setup = Setup {
        watched: &["begins", "one-writes", "other-writes"],
        sections: PARALLEL,
        transcripts: &[&runtime, &changes, ends],
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let (_worker, _) = system.worker("w1").await;
    let (_web, base) = web_of(&system).await;
    let session = system.publish().await;
    let (first, second) = (system.gates.next().await, system.gates.next().await);
    browser.open(&format!("{base}/sessions/{session}")).await;
    browser.until(IS_LIVE).await;
    // A delta is sent once: the server has to follow the session before it.
    system.follower_reads().await;
    first.open().await;
    second.open().await;
    let held = (system.gates.next().await, system.gates.next().await);
    let written = "[...document.querySelectorAll('#rows > .live')].map((row) => [row.querySelector('.ag')?.textContent, \
                   /The (\\w+) agent/.exec(row.querySelector('.d').textContent)?.[1]]).sort()";
    let expected = json!([["changes", "changes"], ["runtime", "runtime"]]);
    browser
        .until(&format!(
            "JSON.stringify({written}) === JSON.stringify({expected})"
        ))
        .await;
    for width in [390, 1280] {
        browser.looks(width, "light").await;
        let seen = "[...document.querySelectorAll('#rows > .live .ag')].map((name) => name.checkVisibility() && \
                    name.getBoundingClientRect().width > 20)";
        assert_eq!(browser.eval(seen).await, json!([true, true]), "{width}");
        assert_eq!(browser.eval(OVERFLOW).await, 0, "{width}");
    }
    assert_eq!(
        accessible::of_state(&mut browser).await,
        Vec::<String>::new()
    );
    held.0.open().await;
    held.1.open().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
    assert_eq!(browser.problems(), Vec::<String>::new());
}
