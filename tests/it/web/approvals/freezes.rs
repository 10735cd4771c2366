//! The freeze of all changes: who may, what every page shows, and that no approval counts meanwhile.

use super::fixture::{Asking, ana, fields, followed, get, person, send};

/// The nonce of the form that begins or ends a freeze.
fn nonce(page: &str) -> String {
    let form = page.split("action=\"/approvals/freeze\"").nth(1);
    let value = form.and_then(|form| form.split("name=\"nonce\" value=\"").nth(1));
    let value = value.and_then(|rest| rest.split('"').next());
    value
        .unwrap_or_else(|| panic!("no form: {page}"))
        .to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freeze_is_on_every_page_and_no_approval_counts_until_a_person_ends_it() {
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let _recorder = asking.recorder().await;
    let before = get(&web, &asking.path(), &ana()).await;
    let reader = person("eve@example.com", "sre");
    let list = get(&web, "/approvals", &reader).await;
    assert!(
        !list.body.contains("action=\"/approvals/freeze\""),
        "{list:?}"
    );
    let begin = "freeze=begin&hours=4&reason=release+%3C7%3E";
    let refused = send(&web, "/approvals/freeze", &reader, begin).await;
    assert_eq!(refused.status, 404, "no person of the file: {refused:?}");

    let bob = person("bob@example.com", "");
    let list = get(&web, "/approvals", &bob).await;
    let wrong = format!("{begin}&nonce={}&hours=3", nonce(&list.body));
    assert_eq!(
        send(&web, "/approvals/freeze", &bob, &wrong).await.status,
        400
    );
    let begin = format!("{begin}&nonce={}", nonce(&list.body));
    let sent = send(&web, "/approvals/freeze", &bob, &begin).await;
    let list = followed(&web, &sent, &bob).await;
    assert!(list.body.contains("release &lt;7&gt;"), "{list:?}");
    for path in ["/", "/queue", &asking.path()] {
        let page = get(&web, path, &ana()).await;
        assert!(
            page.body
                .contains("All changes are frozen</a> by bob since"),
            "{path}: {page:?}"
        );
    }
    let frozen = get(&web, &asking.path(), &ana()).await;
    assert!(!frozen.body.contains("value=\"approve\""), "{frozen:?}");
    let approve = fields(&before.body) + "decision=approve";
    let sent = send(&web, &asking.path(), &ana(), &approve).await;
    let shown = followed(&web, &sent, &ana()).await;
    assert!(
        shown.body.contains("Not counted: all changes are frozen"),
        "{shown:?}"
    );

    let end = format!("freeze=end&nonce={}", nonce(&list.body));
    let sent = send(&web, "/approvals/freeze", &bob, &end).await;
    let list = followed(&web, &sent, &bob).await;
    assert!(!list.body.contains("All changes are frozen"), "{list:?}");
    let page = get(&web, &asking.path(), &ana()).await;
    let approve = fields(&page.body) + "decision=approve";
    let sent = send(&web, &asking.path(), &ana(), &approve).await;
    followed(&web, &sent, &ana()).await;
    assert_eq!(asking.outcome(), "approved");
}
