//! The form of a request: what it records, once, and what a page that is out of date does.

use super::fixture::{Asking, OWN, ana, fields, followed, get, person, send};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_recorded_once_and_the_page_says_so() {
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let _recorder = asking.recorder().await;
    let page = get(&web, &asking.path(), &ana()).await;
    assert!(
        page.status == 200 && page.body.contains("&quot;pod&quot;: &quot;db-1&quot;"),
        "{page:?}"
    );
    let second_tab = get(&web, &asking.path(), &ana()).await;
    let approve = fields(&page.body) + "decision=approve&comment=Go+%3Cahead%3E";

    let sent = send(&web, &asking.path(), &ana(), &approve).await;
    let shown = followed(&web, &sent, &ana()).await;
    assert!(
        shown.body.contains("Recorded: ana approved this call at"),
        "{shown:?}"
    );
    assert!(shown.body.contains("Go &lt;ahead&gt;"), "{shown:?}");
    assert!(!shown.body.contains("<form class=\"order"), "{shown:?}");
    assert_eq!((asking.outcome().as_str(), asking.votes()), ("approved", 1));

    // Back, and the same button once more: the same vote.
    let again = send(&web, &asking.path(), &ana(), &approve).await;
    assert_eq!(again.header("location"), sent.header("location"));
    assert_eq!(asking.votes(), 1);

    let late = fields(&second_tab.body) + "decision=deny";
    let late = send(&web, &asking.path(), &ana(), &late).await;
    let shown = followed(&web, &late, &ana()).await;
    assert!(
        shown.body.contains("Not counted: it was decided before"),
        "{shown:?}"
    );
    assert_eq!((asking.outcome().as_str(), asking.votes()), ("approved", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_from_before_a_change_of_the_alert_approves_nothing_and_denies() {
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let _recorder = asking.recorder().await;
    let stale = get(&web, &asking.path(), &ana()).await;
    asking.change_alert();

    let approve = fields(&stale.body) + "decision=approve";
    let sent = send(&web, &asking.path(), &ana(), &approve).await;
    let shown = followed(&web, &sent, &ana()).await;
    assert!(
        shown
            .body
            .contains("Not counted: the alert has changed since the page was made"),
        "{shown:?}"
    );
    assert_eq!(asking.outcome(), "");
    assert_ne!(
        fields(&shown.body).split("seen_updates").nth(1),
        fields(&stale.body).split("seen_updates").nth(1),
        "the page that is shown then is up to date"
    );

    let deny = fields(&stale.body) + "decision=deny_session";
    let sent = send(&web, &asking.path(), &ana(), &deny).await;
    let shown = followed(&web, &sent, &ana()).await;
    assert!(
        shown.body.contains("Recorded: ana denied every call"),
        "{shown:?}"
    );
    assert_eq!(asking.outcome(), "denied_session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_worker_or_a_broker_the_page_says_that_nothing_is_recorded() {
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let page = get(&web, &asking.path(), &ana()).await;
    let deny = fields(&page.body) + "decision=deny&comment=typed";
    let sent = send(&web, &asking.path(), &ana(), &deny).await;
    assert_eq!(sent.status, 202, "{sent:?}");
    assert!(
        sent.body.contains("Sent, not recorded yet") && sent.body.contains("typed"),
        "{sent:?}"
    );
    let again = sent
        .body
        .split("href=\"")
        .find(|rest| rest.contains("?vote="));
    let again = again.and_then(|rest| rest.split('"').next()).unwrap();
    let shown = get(&web, again, &ana()).await;
    assert!(!shown.body.contains("id=\"outcome\""), "{shown:?}");

    let _recorder = asking.recorder().await;
    // The same form once more is the same vote, and now it is recorded.
    let sent = send(&web, &asking.path(), &ana(), &deny).await;
    let shown = followed(&web, &sent, &ana()).await;
    assert!(
        shown.body.contains("Recorded: ana denied this call"),
        "{shown:?}"
    );
    assert_eq!(asking.votes(), 1);

    let nowhere = [
        ("NATS_URL", "nats://127.0.0.1:1"),
        ("TARSY_WEB_PROXY_SECRET", super::fixture::SECRET),
    ];
    let alone = asking.web("{auth: proxy}", &nowhere).await;
    let refused = send(&alone, &asking.path(), &ana(), &deny).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(
        refused.body.contains("Not sent: nats unavailable") && refused.body.contains("nats"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_with_a_wrong_field_or_from_another_site_sends_nothing() {
    let asking = Asking::new().await;
    let web = asking.behind_proxy().await;
    let _recorder = asking.recorder().await;
    let page = get(&web, &asking.path(), &ana()).await;
    let fields = fields(&page.body);
    let long = format!("{fields}decision=deny&comment={}", "x".repeat(2_001));
    for wrong in [
        "decision=approve",
        &fields,
        &format!("{fields}decision=yes"),
        &fields.replace("call=07", "call=7"),
        &long,
    ] {
        let answer = send(&web, &asking.path(), &ana(), wrong).await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    let approve = format!("{fields}decision=approve");
    let other: [&[(&str, &str)]; 4] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", "https://evil.example")],
        &[OWN, ("origin", "https://evil.example")],
    ];
    for headers in other {
        let headers = [&ana()[..], headers].concat();
        let answer = web.post(&asking.path(), &headers, &approve).await;
        assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
    }
    let reader = send(&web, &asking.path(), &person("eve", "dev"), &approve).await;
    assert_eq!(reader.status, 404, "{reader:?}");
    assert_eq!((asking.outcome().as_str(), asking.votes()), ("", 0));
    let framed = page.header("content-security-policy").unwrap_or_default();
    assert!(framed.contains("frame-ancestors 'none'"), "{page:?}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
}
