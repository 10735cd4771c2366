//! Texts of models, tools, alerts and producers that try to be more than text, in a real browser. The suite opens each
//! page in the narrow window, with a line of 100 kB and lists of 1,000 levels; the proof opens it in a wide one as
//! well, with a line of 1 MB and lists of 10,000 levels.

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use super::driver::Browser;
use super::states::COPY;
use super::{OVERFLOW, web_of};
use crate::support::figures::is_proof;
use crate::support::system::{Setup, TestSystem};

/// The hostile text that every external source sends.
const TEXT: &str = "<script>document.title = 'taken'; fetch('https://evil.example/a')</script>\"'><img src=https://evil.example/b.png \
    onerror=alert(1)><svg onload=alert(2)><iframe src=https://evil.example/c></iframe><style>*{background:url(https://evil.example/d)}\
    </style><meta http-equiv=refresh content='0;url=https://evil.example/e'><base href=https://evil.example/><form \
    action=https://evil.example/f><link rel=stylesheet href=https://evil.example/g> ![image](https://evil.example/h.png) \
    [link](javascript:alert(3)) [other](//evil.example/i) [99999] [0] [1](https://evil.example/j) [7, 8?] \u{202e}gpj.exe\u{2066} \
    \u{200b}\u{1b}[31mred\u{1b}]8;;https://evil.example/k\u{7}\u{1b}\\ ${1} {{2}} --> ]]> </tarsy-rest></main></body></html>";
/// Elements and links that no text may become.
const FOUND: &str = "[...document.querySelectorAll('img, iframe, style, object, embed, base, meta[http-equiv], script:not([src]), \
    [style], [onload], [onerror], a[href^=\"javascript:\"], form[action^=http], link[href^=http]')].map((element) => element.outerHTML)\
    .concat([...document.querySelectorAll('a[href^=http], a[href^=\"//\"]')].filter((a) => !a.rel.includes('noopener'))\
    .map((a) => a.outerHTML)).map((html) => html.slice(0, 200))";
/// Characters that draw a text in another order, or are not drawn.
const UNSEEN: &str = "/[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\u001b]/.test(document.body.innerText + document.title)";

/// A model that thinks, calls and concludes with the hostile text, and waits at a gate while it writes.
fn transcript() -> String {
    // A line is shown when it is known to be no secret; one that ends with a bracket might continue.
    let line = "<script>fetch('https://evil.example/l')</script> <img src=https://evil.example/m.png onerror=alert(4)> is what I see.\n";
    let text = json!(line.repeat(60));
    let name = json!(TEXT);
    let depth = if is_proof() { 10_000 } else { 1_000 };
    let analysis = json!(format!(
        "Cause: {TEXT}\nEvidence: {TEXT}\nDo next: `rm -rf / {TEXT}` {TEXT}\n\n# {TEXT}\n\n{}x\n\n{}\n\n| a |\n|---|\n| {TEXT} |\n\n```\n{TEXT}\n```\n",
        "- ".repeat(depth),
        "> ".repeat(depth / 5),
    ));
    format!(
        "name: hostile\nmatch: KubePodOOMKilled\nanswers:\n  - chunks:\n      - gate: has-begun\n      - text: {text}\n      - thinking: {name}\n      \
         - gate: is-writing\n      - call: {{tool: {name}, arguments: {text}}}\n      \
         - call: {{tool: drill.describe_pod, arguments: {{pod: {text}}}}}\n  - chunks: [text: {analysis}]\n"
    )
}

/// A system whose model is hostile, with an alert of a hostile producer.
async fn hostile() -> (TestSystem, SessionId) {
    let transcript = Some(transcript());
    let setup = Setup {
        watched: &["has-begun", "is-writing", "answer-1-middle"],
        transcript,
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let id = SessionId(Uuid::now_v7());
    let wide = "KubePodOOMKilled".repeat(60);
    let body = format!(
        "KubePodOOMKilled {TEXT} {wide}\nlabels:\n  {TEXT}: {TEXT}\nannotations:\n  runbook_url: {TEXT}\n"
    );
    let headers = json!({SESSION_ID: id.to_string()});
    let alert = NewAlert {
        priority: Priority::High,
        suffix: None,
        body: body.into_bytes(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    (system, id)
}

/// Everything else that is stored says it too: results of tools with a long line, names, reasons, a dead letter.
fn spread(system: &TestSystem, id: SessionId) -> SessionId {
    let (dead, question) = (SessionId(Uuid::now_v7()), SessionId(Uuid::now_v7()));
    let text = format!("$t${TEXT}$t$");
    let long = if is_proof() { 1_000_000 } else { 100_000 };
    system.database.execute(&format!(
        "{COPY}
         UPDATE timeline_events SET content = {text} || repeat('x', {long}) WHERE session_id = '{id}' AND event_type = 'tool_result';
         UPDATE timeline_events SET content = {text} WHERE session_id = '{id}' AND content = '';
         UPDATE timeline_events SET metadata = jsonb_set(metadata, '{{tool_name}}', to_jsonb({text}::text))
           WHERE session_id = '{id}' AND metadata ? 'tool_name';
         UPDATE agent_executions SET agent = {text}, model = {text}, strategy = {text} WHERE session_id = '{id}';
         UPDATE stages SET name = {text} WHERE session_id = '{id}';
         UPDATE alert_sessions SET chain = {text}, worker_name = {text} WHERE session_id = '{id}';
         UPDATE alerts SET title = 'KubePodOOMKilled ' || {text}, body = coalesce(body, '') || {text}, subject = {text}, alert_type = {text}
           WHERE alert_id = '{id}';
         SELECT copy_session('{id}', '{question}', 1000, 10), copy_session('{id}', '{dead}', 1, 10);
         UPDATE alert_sessions SET parent_id = '{id}', fingerprint = NULL WHERE session_id = '{question}';
         DELETE FROM timeline_events WHERE session_id = '{dead}'; DELETE FROM stages WHERE session_id = '{dead}';
         DELETE FROM agent_executions WHERE session_id = '{dead}'; DELETE FROM tool_interactions WHERE session_id = '{dead}';
         DELETE FROM llm_interactions WHERE session_id = '{dead}'; DELETE FROM alert_sessions WHERE session_id = '{dead}';
         UPDATE alerts SET place = 'dead', dead_reason = 'unknown_chain', dead_detail = {text} WHERE alert_id = '{dead}';"
    ));
    dead
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_texts_load_nothing_report_nothing_and_fit_the_window() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let (mut system, id) = hostile().await;
    let (_worker, _) = system.worker("w1").await;
    let (_web, base) = web_of(&system).await;
    let page = format!("/sessions/{id}");
    browser.looks(390, "light").await;
    // While it is written, and as it comes over the stream.
    let begun = system.gates.next().await;
    browser.open(&format!("{base}{page}")).await;
    browser
        .until("document.querySelector('#net').textContent.trim() === 'live'")
        .await;
    // The page is told that it is live before the server follows the session, and a delta is sent once.
    system.follower_reads().await;
    begun.open().await;
    let writes = system.gates.next().await;
    browser
        .until("document.querySelector('.live')?.textContent.includes('evil.example') ?? false")
        .await;
    assert_harmless(&mut browser, "an unfinished text").await;
    writes.open().await;
    let last = system.gates.next().await;
    browser
        .until("document.querySelectorAll('#rows > .call, #rows > .bad').length >= 2")
        .await;
    assert_harmless(&mut browser, "live rows").await;
    last.open().await;
    browser
        .until("!!document.querySelector('#head .st.completed')")
        .await;
    assert_harmless(&mut browser, "the end").await;

    let dead = spread(&system, id);
    let result = system.database.number(&format!(
        "SELECT max(session_seq)::bigint FROM timeline_events WHERE session_id = '{id}' AND event_type = 'tool_result'"
    ));
    let widths: &[u32] = if is_proof() { &[390, 1280] } else { &[390] };
    let search: String = url::form_urlencoded::byte_serialize(&TEXT.as_bytes()[..190]).collect();
    for path in [
        "/?since=".to_owned(),
        format!("/?since=&q={search}"),
        format!("/?status={search}"),
        "/queue".to_owned(),
        page.clone(),
        format!("{page}?view=all"),
        format!("{page}?view=cited"),
        format!("{page}?view=errors"),
        format!("{page}/events/{result}"),
        format!("/sessions/{dead}"),
        format!("/s/{search}"),
    ] {
        for width in widths {
            browser.looks(*width, "light").await;
            browser.open(&format!("{base}{path}")).await;
            browser
                .eval("document.querySelectorAll('details').forEach((details) => { details.open = true; }); 0")
                .await;
            assert_harmless(&mut browser, &format!("{path} at {width}")).await;
        }
    }
    assert_eq!(
        browser.foreign(&base),
        Vec::<String>::new(),
        "no foreign request"
    );
    // The console names the two requests that the server refuses.
    let is_refused = |report: &String| report.contains("/?status=") || report.contains("/s/");
    let reports: Vec<String> = browser
        .problems()
        .into_iter()
        .filter(|report| !is_refused(report))
        .collect();
    assert_eq!(reports, Vec::<String>::new(), "no report and no message");
}

async fn assert_harmless(browser: &mut Browser, what: &str) {
    assert_eq!(browser.eval(FOUND).await, json!([]), "{what}");
    assert_eq!(browser.eval(UNSEEN).await, false, "{what}");
    assert_eq!(
        browser.eval(OVERFLOW).await,
        0,
        "{what} has no sideways scroll"
    );
    assert_ne!(browser.eval("document.title").await, "taken", "{what}");
}
