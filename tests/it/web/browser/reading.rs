//! Pages without their script, with the keyboard alone, and on paper.

use serde_json::json;

use super::driver::Browser;
use super::{OVERFLOW, web_of};
use crate::support::system::TestSystem;
use crate::web::Web;
use tarsy_core::ids::SessionId;

/// A system with one investigation that is over, its web server and the server's address.
struct Ended {
    _system: TestSystem,
    _web: Web,
    base: String,
    session: SessionId,
    page: String,
}

impl Ended {
    async fn make() -> Self {
        let system = TestSystem::start(&[]).await;
        let (_worker, _) = system.worker("w1").await;
        let session = system.publish().await;
        system.follow(session).await.finish().await;
        let (web, base) = web_of(&system).await;
        let page = format!("{base}/sessions/{session}");
        Self {
            _system: system,
            _web: web,
            base,
            session,
            page,
        }
    }
}

/// A number that the analysis cites.
async fn cited_number(browser: &mut Browser, page: &str) -> u64 {
    browser.open(page).await;
    let number = browser
        .eval("Number(document.querySelector('.answer .cites a').hash.slice(1))")
        .await;
    number.as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_and_the_search_work_without_script() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let Ended {
        base,
        session,
        page,
        ..
    } = &Ended::make().await;
    browser
        .call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        )
        .await;
    let cited = cited_number(&mut browser, page).await;
    for number in [cited, 17] {
        browser.open(&format!("{page}#{number}")).await;
        let row = format!("document.getElementById('{number}').closest('details').open");
        assert_eq!(
            browser.eval(&row).await,
            true,
            "a number opens the closed row that it is in"
        );
        let shown = format!(
            "(({{top, bottom}}) => top < innerHeight && bottom > 0)(document.getElementById('{number}').getBoundingClientRect())"
        );
        assert_eq!(
            browser.eval(&shown).await,
            true,
            "and the row is in the window"
        );
    }
    let short = session.short();
    for path in [
        "/".to_owned(),
        "/?status=failed".to_owned(),
        "/queue".to_owned(),
        "/keys".to_owned(),
        "/nothing".to_owned(),
        format!("/s/{short}"),
        format!("/s/{short}/{cited}"),
        format!("/sessions/{session}?view=all"),
        format!("/sessions/{session}?view=cited"),
        format!("/sessions/{session}?view=errors"),
        format!("/sessions/{session}?from=3&to=9"),
        format!("/sessions/{session}/events/{cited}"),
        format!("/sessions/{session}/calls"),
        format!("/sessions/{session}/calls/last"),
    ] {
        browser.open(&format!("{base}{path}")).await;
        assert!(
            browser
                .eval("document.querySelector('main').innerText.trim().length > 40")
                .await
                == true,
            "{path}"
        );
        let dead = "[...document.querySelectorAll('button')].filter((b) => !b.form && b.checkVisibility()).length";
        assert_eq!(
            browser.eval(dead).await,
            0,
            "{path} has a button that does nothing"
        );
    }
    // The search is a form.
    browser.open(base).await;
    browser.eval("document.querySelector('#q').focus()").await;
    browser
        .call("Input.insertText", json!({"text": "checkout"}))
        .await;
    browser.press("Enter").await;
    browser
        .until("location.search.includes('q=checkout') && document.readyState === 'complete'")
        .await;
    assert_eq!(
        browser
            .eval("document.querySelectorAll('.sr').length")
            .await,
        1
    );
    browser
        .open(&format!("{base}/?q=nothing-like-this&since="))
        .await;
    assert_eq!(
        browser
            .eval("document.querySelectorAll('.sr').length")
            .await,
        0
    );
    browser.open(&format!("{page}?view=cited")).await;
    let all_cited =
        "[...document.querySelectorAll('#rows > .r')].map((row) => row.matches('.cited'))";
    assert!(
        browser
            .eval(all_cited)
            .await
            .as_array()
            .unwrap()
            .iter()
            .all(|cited| *cited == true)
    );
    assert_eq!(browser.foreign(base), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyboard_alone_reaches_every_row_and_the_console_stays_empty() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let Ended { base, page, .. } = &Ended::make().await;
    browser.open(page).await;
    // Tab and Enter: the first stop skips the bar, and every row is a stop.
    browser.press("Tab").await;
    assert_eq!(
        browser.eval("document.activeElement.className").await,
        "skip"
    );
    let (mut stops, mut rows) = (1, 0);
    while browser
        .eval("document.activeElement === document.body")
        .await
        != true
    {
        let is_seen = "document.activeElement.matches(':focus-visible')";
        assert_eq!(
            browser.eval(is_seen).await,
            true,
            "stop {stops} has no outline"
        );
        if browser
            .eval("document.activeElement.matches('#rows summary')")
            .await
            == true
        {
            rows += 1;
            let open = "document.activeElement.parentElement.open";
            browser.press("Enter").await;
            assert_eq!(browser.eval(open).await, true);
            browser.press("Enter").await;
            assert_eq!(browser.eval(open).await, false);
        }
        browser.press("Tab").await;
        stops += 1;
        assert!(stops < 400, "the keyboard is trapped");
    }
    assert_eq!(
        browser
            .eval("document.querySelectorAll('#rows summary').length")
            .await,
        rows
    );
    // The keys of the pages.
    browser.open(page).await;
    browser.press("]").await;
    assert!(
        browser
            .eval("document.querySelector('.here')?.classList.contains('cited')")
            .await
            == true,
        "a cited row"
    );
    browser.press("o").await;
    assert_eq!(
        browser
            .eval("document.querySelector('.here details').open")
            .await,
        true
    );
    browser.press(".").await;
    assert_eq!(
        browser.eval("document.querySelector('.here') === document.querySelector('#rows').lastElementChild").await,
        true
    );
    browser.press("k").await;
    browser.press("j").await;
    assert_eq!(
        browser
            .eval("document.querySelectorAll('.here').length")
            .await,
        1
    );
    for (key, address) in [
        ("?", "/keys"),
        ("g", "/keys"),
        ("q", "/queue"),
        ("g", "/queue"),
        ("s", "/"),
    ] {
        browser.press(key).await;
        browser
            .until(&format!(
                "location.pathname === {address:?} && document.readyState === 'complete'"
            ))
            .await;
    }
    browser.press("/").await;
    assert_eq!(browser.eval("document.activeElement.id").await, "q");
    browser.press("Escape").await;
    browser.press("j").await;
    browser.press("o").await;
    browser
        .until("location.pathname.startsWith('/sessions/') && document.readyState === 'complete'")
        .await;
    // Switched off, they do nothing.
    browser.open(&format!("{base}/keys/off?back=/keys")).await;
    browser.press("g").await;
    browser.press("s").await;
    assert_eq!(browser.eval("location.pathname").await, "/keys");
    assert_eq!(
        (browser.problems(), browser.foreign(base)),
        (Vec::new(), Vec::new())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paper_has_the_cited_results_in_full_and_no_others() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let Ended { page, .. } = &Ended::make().await;
    browser.looks(1280, "dark").await;
    browser.open(page).await;
    // Rows that are open on the screen are not on paper, unless they are cited.
    browser.eval("document.querySelectorAll('#rows details').forEach((row, at) => { row.open = at % 2 === 0; })").await;
    browser
        .call("Emulation.setEmulatedMedia", json!({"media": "print"}))
        .await;
    let whole = "[...document.querySelectorAll('#rows > .cited')].map((row) => { const pre = row.querySelector('pre'); \
                 return pre.clientHeight > 10 && pre.scrollHeight <= pre.clientHeight && pre.scrollWidth <= pre.clientWidth; })";
    let whole = browser.eval(whole).await;
    assert_eq!(
        whole,
        json!([true, true, true, true, true]),
        "the result of each cited row, in full"
    );
    let others = "[...document.querySelectorAll('#rows > .r:not(.cited) .b')].filter((b) => b.getBoundingClientRect().height > 0).length";
    assert_eq!(browser.eval(others).await, 0);
    let words = "getComputedStyle(document.querySelector('.more .md')).display !== 'none' && document.querySelector('.more .md').checkVisibility()";
    assert_eq!(browser.eval(words).await, true, "the whole analysis");
    assert_eq!(
        browser
            .eval("getComputedStyle(document.body).backgroundColor")
            .await,
        "rgb(255, 255, 255)"
    );
    assert_eq!(browser.eval(OVERFLOW).await, 0);
}
