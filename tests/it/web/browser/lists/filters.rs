//! The filter of the list: its form, the values that are set, and an empty list.

use serde_json::json;

use super::groups::{STORMS, follow};
use crate::support::system::TestSystem;
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, accessible, web_of};

const WORDS: &str = "
UPDATE alerts SET severity = CASE WHEN stream_sequence < 6 THEN 'critical' ELSE 'low' END,
  source = CASE WHEN stream_sequence < 9 THEN 'grafana' ELSE 'alertmanager' END,
  body = E'labels:\\n  namespace: ' || CASE WHEN stream_sequence < 4 THEN 'shop' ELSE 'other' END;
UPDATE alert_sessions SET chain = 'team' WHERE fingerprint IN ('f1', 'f9');";

const COUNT: &str = "document.querySelectorAll('.sr').length";
const CHIPS: &str = "[...document.querySelectorAll('.chips b')].map((value) => value.innerText)";

fn chip(value: &str) -> String {
    format!(
        "[...document.querySelectorAll('.chips a')].find((link) => link.innerText.includes('{value}'))"
    )
}

/// Sets fields of the form as a person does, and sends it.
async fn filter(browser: &mut Browser, script: &str) {
    browser
        .click_element("document.querySelector('.fd > summary')")
        .await;
    browser
        .until("document.querySelector('.ff button').checkVisibility()")
        .await;
    browser.eval(&format!("{script}; 0")).await;
    follow(browser, "document.querySelector('.ff button')").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_filters_the_list_and_removes_each_value_by_itself() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    system.database.execute(STORMS);
    system.database.execute(WORDS);
    system.database.store().complete_some_words().await.unwrap();
    let (_web, base) = web_of(&system).await;
    for (width, is_scripted) in [(1280, true), (390, false)] {
        browser.looks(width, "light").await;
        browser
            .call(
                "Emulation.setScriptExecutionDisabled",
                json!({"value": !is_scripted}),
            )
            .await;
        browser.open(&format!("{base}/?since=7d&alike=0")).await;
        assert_eq!(browser.eval(COUNT).await, 16);
        let offered = "['chain', 'source'].map((name) => [...document.querySelector(`.ff [name=${name}]`).options]\
                       .map((option) => option.value))";
        assert_eq!(
            browser.eval(offered).await,
            json!([["", "default", "team"], ["", "alertmanager", "grafana"]])
        );
        filter(
            &mut browser,
            "document.querySelector('.ff [value=critical]').click()",
        )
        .await;
        assert_eq!(
            browser.eval(COUNT).await,
            1,
            "five alike sessions are one row: the form begins anew"
        );
        let kept = "new URLSearchParams(location.search).get('since')";
        assert_eq!(browser.eval(kept).await, "7d");
        let more = "document.querySelector('.ff [name=source]').value = 'grafana'; \
                    document.querySelector('.ff [name=label]:not([type=hidden])').value = 'namespace=shop'";
        filter(&mut browser, more).await;
        assert_eq!(
            (browser.eval(COUNT).await, browser.eval(CHIPS).await),
            (json!(3), json!(["critical", "grafana", "namespace=shop"]))
        );
        assert_eq!(browser.eval(OVERFLOW).await, 0);
        if is_scripted {
            assert_eq!(
                accessible::in_each_width(&mut browser).await,
                Vec::<String>::new()
            );
            browser.looks(width, "light").await;
        }
        // The tabs keep the filter, and count with it.
        let completed = "[...document.querySelectorAll('.seg a')].find((tab) => tab.innerText.startsWith('Completed'))";
        assert_eq!(
            browser.eval(&format!("{completed}.innerText")).await,
            "Completed 3"
        );
        follow(&mut browser, completed).await;
        assert_eq!(browser.eval(COUNT).await, 3);
        // With one more value the list is empty, and says which values hide what.
        filter(
            &mut browser,
            "document.querySelector('.ff [name=chain]').value = 'team'",
        )
        .await;
        filter(
            &mut browser,
            "document.querySelector('.ff [name=label]:not([type=hidden])').value = 'pod=x'",
        )
        .await;
        let said = browser
            .eval("document.querySelector('.empty').innerText")
            .await;
        assert!(
            said.as_str()
                .unwrap()
                .contains("Without label pod=x: 1 session"),
            "{said}"
        );
        if is_scripted {
            assert_eq!(
                accessible::in_each_width(&mut browser).await,
                Vec::<String>::new()
            );
            browser.looks(width, "light").await;
        }
        follow(&mut browser, "document.querySelector('.hid a')").await;
        assert_eq!(browser.eval(COUNT).await, 1);
        for (value, left) in [
            ("namespace=shop", 1),
            ("critical", 1),
            ("team", 8),
            ("grafana", 16),
        ] {
            follow(&mut browser, &chip(value)).await;
            let count = "document.querySelector('.seg a[aria-current]').innerText.split(' ')[1]";
            assert_eq!(
                browser.eval(count).await,
                left.to_string(),
                "without {value}"
            );
        }
        assert_eq!(browser.eval(CHIPS).await, json!([]));
        // A range of time.
        filter(
            &mut browser,
            "document.querySelector('.ff [name=until]').value = '2020-01-01T00:00'",
        )
        .await;
        let said = browser
            .eval("document.querySelector('.empty').innerText")
            .await;
        assert!(
            said.as_str()
                .unwrap()
                .contains("Without to 2020-01-01T00:00: 16 sessions"),
            "{said}"
        );
        filter(
            &mut browser,
            "document.querySelector('.ff [name=until]').value = ''; \
            document.querySelector('.ff [name=from]').value = '2020-01-01T00:00'",
        )
        .await;
        assert_eq!(browser.eval(CHIPS).await, json!(["2020-01-01T00:00"]));
        assert_eq!(
            browser
                .eval("document.querySelector('.seg a[aria-current]').innerText")
                .await,
            "Completed 16"
        );
    }
    browser
        .call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": false}),
        )
        .await;
    // Pages keep the filter; a link with words that are unknown opens the list.
    browser
        .open(&format!(
            "{base}/?severity=low&limit=4&alike=0&unknown=1&status=lost"
        ))
        .await;
    assert_eq!(browser.eval(COUNT).await, 4);
    assert_eq!(
        browser.eval("document.querySelector('.banner').innerText.startsWith('Left out: status: accepted')").await,
        true
    );
    follow(&mut browser, "document.querySelector('a[rel=next]')").await;
    assert_eq!(
        (browser.eval(COUNT).await, browser.eval(CHIPS).await),
        (json!(4), json!(["low"]))
    );
    assert_eq!(browser.problems(), Vec::<String>::new());
}
