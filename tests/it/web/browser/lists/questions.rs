//! Questions about investigations, below them.

use serde_json::json;

use super::groups::{STORMS, follow};
use crate::support::system::TestSystem;
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, accessible, web_of};

/// The sessions 1, 2 and 3 are questions: two about the investigation 6, one about one of another period.
const QUESTIONS: &str = "
UPDATE alerts SET title = 'Why ' || stream_sequence || '?', severity = 'critical', body = 'why, zeppelin?'
  WHERE stream_sequence < 4;
UPDATE alert_sessions SET parent_id = (SELECT session_id FROM alert_sessions WHERE fingerprint = 'f6'), status = 'failed', error = 'no provider',
  fingerprint = NULL WHERE fingerprint = 'f1';
UPDATE alert_sessions SET parent_id = (SELECT session_id FROM alert_sessions WHERE fingerprint = 'f6'), final_analysis = 'Because of it.',
  fingerprint = NULL WHERE fingerprint = 'f2';
UPDATE alert_sessions SET parent_id = (SELECT session_id FROM alert_sessions WHERE fingerprint = 'f16'),
  fingerprint = NULL WHERE fingerprint = 'f3';
UPDATE alert_sessions SET created_at = now() - interval '9 days' WHERE fingerprint = 'f16';";

const ROWS: &str =
    "[...document.querySelectorAll('.sr .ti')].map((row) => row.textContent.split(' ')[0])";
const BELOW: &str = "[...document.querySelectorAll('.qs li')].map((question) => question.innerText.replace(/\\s+/g, ' '))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_open_below_their_investigation_and_a_search_finds_each() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    system.database.execute(STORMS);
    let (_web, base) = web_of(&system).await;
    system.database.execute(QUESTIONS);
    system.database.store().complete_some_words().await.unwrap();
    for (width, is_scripted) in [(1280, true), (390, false)] {
        browser.looks(width, "light").await;
        browser
            .call(
                "Emulation.setScriptExecutionDisabled",
                json!({"value": !is_scripted}),
            )
            .await;
        browser.open(&format!("{base}/")).await;
        let expected = json!(["KubeJobFailed", "KubeJobFailed", "Other", "TargetDown"]);
        assert_eq!(
            browser.eval(ROWS).await,
            expected,
            "no question is a row, and none is counted"
        );
        assert_eq!(
            browser
                .eval("document.querySelector('.seg a[aria-current]').innerText")
                .await,
            "All 12"
        );
        assert_eq!(
            browser
                .eval("document.querySelectorAll('.failed, .critical').length")
                .await,
            0
        );
        assert_eq!(
            browser
                .eval("document.querySelector('.qs > summary').innerText")
                .await,
            "2 questions"
        );
        browser
            .click_element("document.querySelector('.qs > summary')")
            .await;
        browser
            .until("document.querySelector('.qs li').checkVisibility()")
            .await;
        assert_eq!(
            browser.eval(BELOW).await,
            json!(["✓ answered Why 2?", "– no answer Why 1?"])
        );
        assert_eq!(browser.eval(OVERFLOW).await, 0);
        if is_scripted {
            assert_eq!(
                accessible::in_each_width(&mut browser).await,
                Vec::<String>::new()
            );
            browser.looks(width, "light").await;
        }
        follow(&mut browser, "document.querySelector('.qs li a')").await;
        assert_eq!(
            browser
                .eval("document.querySelector('h1').textContent")
                .await,
            "Why 2?"
        );
        follow(
            &mut browser,
            "document.querySelector('.crumb a[href^=\"/sessions/\"]')",
        )
        .await;
        assert_eq!(
            browser
                .eval("document.querySelector('h1').textContent")
                .await,
            "Other thing"
        );
        let section = browser
            .eval("document.querySelector('#thread').innerText")
            .await;
        let section = section.as_str().unwrap();
        for said in [
            "answered",
            "Because of it.",
            "no answer",
            "No answer: no provider",
        ] {
            assert!(section.contains(said), "{said}: {section}");
        }
        // The question about an investigation of last week is found by its words, and by the box of the form.
        browser.open(&format!("{base}/")).await;
        browser.click_element("document.querySelector('#q')").await;
        browser
            .eval("document.querySelector('#q').value = 'zeppelin'; window.isOld = true; 0")
            .await;
        browser.press("Enter").await;
        browser
            .until("!window.isOld && document.readyState === 'complete'")
            .await;
        let titles = browser
            .eval("[...document.querySelectorAll('.sr .ti')].map((row) => row.textContent.split(' about')[0])")
            .await;
        assert_eq!(titles, json!(["question", "question", "question"]));
        let last = browser
            .eval("[...document.querySelectorAll('.sr .ti')].at(-1).textContent")
            .await;
        assert!(last.as_str().unwrap().ends_with(": Why 3?"), "{last}");
        assert_eq!(
            browser
                .eval("document.querySelectorAll('.sr .failed, .sr .critical, .sr .err').length")
                .await,
            0
        );
        browser.open(&format!("{base}/")).await;
        browser
            .click_element("document.querySelector('.fd > summary')")
            .await;
        browser
            .click_element("document.querySelector('.ff [name=questions]')")
            .await;
        follow(&mut browser, "document.querySelector('.ff button')").await;
        assert_eq!(
            browser
                .eval("document.querySelector('.seg a[aria-current]').innerText")
                .await,
            "All 15"
        );
    }
    browser
        .call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": false}),
        )
        .await;
    // The key `o` opens the investigation, not the list of its questions.
    browser.open(&format!("{base}/")).await;
    for key in ["j", "j", "j"] {
        browser.press(key).await;
    }
    browser.eval("window.isOld = true; 0").await;
    browser.press("o").await;
    browser
        .until("!window.isOld && document.querySelector('h1')?.textContent === 'Other thing'")
        .await;
    assert_eq!(browser.problems(), Vec::<String>::new());
}
