//! The search in a session in the browser: from the page to its results, and back to an event.

use crate::support::system::TestSystem;
use crate::web::browser::accessible::in_each_width;
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, web_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_searches_in_a_session_and_follows_a_result_to_its_event() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let (_web, base) = web_of(&system).await;
    let page = format!("/sessions/{session}");
    for width in [390, 1280] {
        browser.looks(width, "light").await;
        browser.open(&format!("{base}{page}")).await;
        assert_eq!(browser.eval(OVERFLOW).await, 0, "the session at {width}");
        // The key leads into the field, and Enter sends the form.
        browser.press("f").await;
        browser.until("document.activeElement.id === 'find'").await;
        browser
            .eval("document.querySelector('#find').value = 'REVISION 43'")
            .await;
        browser.press("Enter").await;
        browser.arrives_at(&format!("{page}/search")).await;
        browser
            .until("document.querySelectorAll('.hits mark').length > 1")
            .await;
        let marks = "[...document.querySelectorAll('.hits mark')].every((mark) => mark.textContent.toLowerCase() === 'revision 43')";
        assert_eq!(browser.eval(marks).await, true);
        let note = browser
            .eval("document.querySelector('#searched').innerText")
            .await;
        assert!(
            note.as_str().unwrap().contains("All stored events up to"),
            "{note}"
        );
        assert_eq!(browser.eval(OVERFLOW).await, 0, "the results at {width}");
        assert_eq!(in_each_width(&mut browser).await, Vec::<String>::new());
        browser.looks(width, "light").await;
        let number = browser
            .eval("document.querySelector('.hits li a b').textContent")
            .await;
        let number = number.as_str().unwrap().to_owned();
        browser
            .click_element("document.querySelector('.hits li a')")
            .await;
        browser.arrives_at(&page).await;
        let target =
            format!("location.hash === '#{number}' && !!document.querySelector(':target')");
        browser.until(&target).await;
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}
