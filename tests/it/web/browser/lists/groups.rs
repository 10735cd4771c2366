//! Folded rows of alike sessions.

use serde_json::json;

use crate::support::system::TestSystem;
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, accessible, web_of};

/// Ended sessions: two storms of five alike ones with one other between them, on one page; more on the next one.
pub(super) const STORMS: &str = "
CREATE FUNCTION made(n int) RETURNS uuid LANGUAGE sql AS $$
  SELECT (lpad(to_hex(extract(epoch FROM now())::bigint * 1000 - n * 1000), 12, '0') || '7' || lpad(to_hex(n), 3, '0')
          || '8' || lpad(to_hex(n), 15, '0'))::uuid $$;
INSERT INTO alerts (alert_id, last_delivery, stream_sequence, place, body_sha256, subject, headers, title, severity,
                    alert_type, fingerprint, body)
  SELECT made(n), made(n), n, 'opened', sha256('x'), 'tarsy.alerts.high', '{}',
         CASE WHEN n = 6 THEN 'Other thing' WHEN n < 6 THEN 'KubeJobFailed job-' || n ELSE 'TargetDown host-' || n END,
         'high', 'x', 'f' || n, 'text ' || n
  FROM generate_series(1, 16) n;
INSERT INTO alert_sessions (session_id, created_at, deadline_at, lease_expires_at, lease_period, lease_token, worker_name,
                            fingerprint, chain, event_seq, status, finished_at, settled_at, executive_summary)
  SELECT made(n), now() - n * interval '1 s', now(), now(), '30 s', made(n), 'w', 'f' || n, 'default', 1, 'completed',
         now(), now(), 'Cause: limit ' || n
  FROM generate_series(1, 16) n;";

/// The text of the document: rows outside the window have no drawn text before the first frame.
const ROWS: &str = "[...document.querySelectorAll('.sr')].map((row) => row.querySelector('.ti').textContent.split(' ')[0])";

fn rows(parts: &[(&str, usize)]) -> serde_json::Value {
    json!(
        parts
            .iter()
            .flat_map(|(name, count)| std::iter::repeat_n(*name, *count))
            .collect::<Vec<_>>()
    )
}

/// Clicks the element, and waits for the page that it leads to.
pub(super) async fn follow(browser: &mut Browser, element: &str) {
    browser.eval("window.isOld = true; 0").await;
    browser.click_element(element).await;
    browser
        .until("!window.isOld && document.readyState === 'complete'")
        .await;
}

fn folded(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.sr.grp > a')].find((row) => row.textContent.includes('{name}'))"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folded_row_opens_in_its_place_and_the_key_o_opens_its_newest_session() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    system.database.execute(STORMS);
    let (_web, base) = web_of(&system).await;
    for (width, is_scripted) in [(1280, true), (390, false)] {
        browser.looks(width, "light").await;
        let off = json!({"value": !is_scripted});
        browser
            .call("Emulation.setScriptExecutionDisabled", off)
            .await;
        browser
            .open(&format!("{base}/?since=24h&status=completed&limit=15"))
            .await;
        assert_eq!(
            browser.eval(ROWS).await,
            rows(&[("KubeJobFailed", 1), ("Other", 1), ("TargetDown", 1)])
        );
        follow(&mut browser, &folded("KubeJobFailed")).await;
        let opened = rows(&[("KubeJobFailed", 6), ("Other", 1), ("TargetDown", 1)]);
        assert_eq!(
            browser.eval(ROWS).await,
            opened,
            "its head and each of its sessions"
        );
        let kept = "['status', 'since', 'limit'].map((name) => new URLSearchParams(location.search).get(name))";
        assert_eq!(browser.eval(kept).await, json!(["completed", "24h", "15"]));
        assert_eq!(
            browser
                .eval("document.querySelector(location.hash).className")
                .await,
            "sr grp open"
        );
        assert_eq!(browser.eval(OVERFLOW).await, 0);
        follow(&mut browser, &folded("TargetDown")).await;
        assert_eq!(
            browser.eval(ROWS).await,
            rows(&[("KubeJobFailed", 6), ("Other", 1), ("TargetDown", 10)])
        );
        if is_scripted {
            assert_eq!(
                accessible::in_each_width(&mut browser).await,
                Vec::<String>::new()
            );
            browser.looks(width, "light").await;
        }
        follow(&mut browser, &folded("KubeJobFailed")).await;
        assert_eq!(
            browser.eval(ROWS).await,
            rows(&[("KubeJobFailed", 1), ("Other", 1), ("TargetDown", 10)])
        );
    }
    browser
        .call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": false}),
        )
        .await;
    // The second page keeps its place when a row of it opens.
    browser.open(&format!("{base}/?since=24h&limit=6")).await;
    follow(&mut browser, "document.querySelector('a[rel=next]')").await;
    assert_eq!(browser.eval(ROWS).await, rows(&[("TargetDown", 1)]));
    follow(&mut browser, &folded("TargetDown")).await;
    assert_eq!(browser.eval(ROWS).await, rows(&[("TargetDown", 7)]));
    // The key `o` on a folded row opens its newest session.
    browser.open(&format!("{base}/")).await;
    browser.press("j").await;
    browser.eval("window.isOld = true; 0").await;
    browser.press("o").await;
    browser
        .until(
            "!window.isOld && document.readyState === 'complete' && !!document.querySelector('h1')",
        )
        .await;
    assert_eq!(
        browser
            .eval("document.querySelector('h1').textContent")
            .await,
        "KubeJobFailed job-1"
    );
    assert_eq!(browser.problems(), Vec::<String>::new());
}
