//! Tests of model calls in the browser: from the page of a session to its calls, to one of them, to a result.

use crate::support::system::TestSystem;
use crate::web::browser::accessible::in_each_width;
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, web_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_opens_the_calls_of_a_session_one_of_them_and_a_result() {
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
        browser.click(&format!("a[href='{page}/calls']")).await;
        browser.arrives_at(&format!("{page}/calls")).await;
        assert_eq!(browser.eval(OVERFLOW).await, 0, "the list at {width}");
        assert_eq!(in_each_width(&mut browser).await, Vec::<String>::new());
        browser.looks(width, "light").await;
        browser.click(&format!("a[href='{page}/calls/2']")).await;
        browser.arrives_at(&format!("{page}/calls/2")).await;

        // The texts are open, a result is not until it is opened.
        let is_open = async |browser: &mut Browser, message: &str| {
            let text = format!("document.querySelector('#{message} pre').checkVisibility()");
            browser.eval(&text).await == true
        };
        let result = "document.querySelector('details.m[id]:not([open])').id";
        let result = browser
            .eval(result)
            .await
            .as_str()
            .expect("a folded result")
            .to_owned();
        assert!(is_open(&mut browser, "m1").await && is_open(&mut browser, "m2").await);
        assert!(!is_open(&mut browser, &result).await);
        browser.click(&format!("#{result} summary")).await;
        browser
            .until(&format!("document.getElementById('{result}').open"))
            .await;
        assert!(is_open(&mut browser, &result).await);
        assert_eq!(browser.eval(OVERFLOW).await, 0, "a call at {width}");
        assert_eq!(in_each_width(&mut browser).await, Vec::<String>::new());
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}
