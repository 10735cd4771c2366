//! Alerts above the limit of a route: the status in the list, the page that names them, and the page of one of them.

use serde_json::json;

use super::groups::follow;
use crate::lifecycle::routes::{events_of, publish, start, webhook};
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, accessible, pictures, web_of};

/// The words of an element on one line.
async fn words(browser: &mut Browser, selector: &str) -> String {
    let line = format!(
        "[...document.querySelectorAll('{selector}')].map((one) => one.innerText).join(' ').replace(/\\s+/g, ' ')"
    );
    browser.eval(&line).await.as_str().unwrap().to_owned()
}

/// axe answers by a promise, which never ends in a page without script.
async fn is_well_made(browser: &mut Browser, is_scripted: bool) {
    assert_eq!(browser.eval(OVERFLOW).await, 0);
    if is_scripted {
        assert_eq!(accessible::of_state(browser).await, [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_finds_the_alerts_above_the_limit_of_a_route() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = start().await;
    let (_worker, _) = system.worker("w1").await;
    for name in ["DiskA", "DiskB", "DiskC", "DiskD", "DiskE"] {
        let body = webhook(name, &json!({"team": "storage"}));
        let alert = publish(&system, body, &[]).await;
        events_of(&system, alert).await;
    }
    let (_web, base) = web_of(&system).await;
    for (width, is_scripted) in [(1280, true), (390, false)] {
        browser.looks(width, "light").await;
        let off = json!({"value": !is_scripted});
        browser
            .call("Emulation.setScriptExecutionDisabled", off)
            .await;
        browser.open(&format!("{base}/?since=7d")).await;
        let tab = "[...document.querySelectorAll('.seg a')].find((tab) => tab.innerText.startsWith('Limited'))";
        follow(&mut browser, tab).await;
        assert_eq!(
            words(&mut browser, ".seg [aria-current]").await,
            "Limited 1"
        );
        browser
            .until("document.querySelector('.sr').innerText !== ''")
            .await; // its first frame is drawn
        let row = words(&mut browser, ".sr").await;
        for shown in [
            "limited",
            "DiskC",
            "Route storage opens at most 2 investigations an hour",
            "+2 above the limit, too",
        ] {
            assert!(row.contains(shown), "{shown}: {row}");
        }
        is_well_made(&mut browser, is_scripted).await;

        follow(&mut browser, "document.querySelector('.sr > a')").await;
        let head = words(&mut browser, ".meta").await;
        assert!(
            head.contains("limited") && !head.contains("iteration"),
            "{head}"
        );
        let beside = words(&mut browser, "#beside").await;
        assert!(
            beside.contains("DiskD") && beside.contains("DiskE") && !beside.contains("Agents"),
            "{beside}"
        );
        let colours = "['.meta .st', '.end .w'].map((name) => getComputedStyle(document.querySelector(name)).color)";
        let colours = browser.eval(colours).await;
        assert_eq!(
            colours[0], colours[1],
            "the row has the colour of the state"
        );
        let is_broken = "(() => { const word = document.createRange(); word.setStart(document.querySelector('.why h2').firstChild, 4); \
                         word.setEnd(document.querySelector('.why h2').firstChild, 16); return word.getClientRects().length; })()";
        assert_eq!(browser.eval(is_broken).await, 1, "a word is on one line");
        is_well_made(&mut browser, is_scripted).await;

        follow(&mut browser, "document.querySelector('details.raw li a')").await;
        let answer = words(&mut browser, "#answer").await;
        assert!(
            answer.contains("lists this alert with the others."),
            "{answer}"
        );
        is_well_made(&mut browser, is_scripted).await;
    }
    pictures::of_state(&mut browser, "limited-alert").await;
}
