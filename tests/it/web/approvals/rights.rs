//! The form of a request by mode of authentication, person and policy.

use super::fixture::{Asking, ana, ask, fields, get, person, send};

const TOKEN: &str = "s3cret-of-the-web";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_approvers_of_the_policy_have_the_form_and_its_route() {
    let asking = Asking::new().await;
    let drain = ask(&asking.system, "drain", "{}").await;
    let shell = ask(&asking.system, "shell", "{}").await;
    let gone = ask(&asking.system, "gone", "{}").await;
    let default = asking.path();
    let of = |request| format!("/approvals/{request}");
    let web = asking.behind_proxy().await;
    // With no recorder a decision of an approver is sent, and not recorded yet.
    for (headers, path, may) in [
        (person("ana@example.com", ""), default.clone(), true),
        (person("eve@example.com", "sre"), default.clone(), true),
        (person("eve@example.com", "dev"), default.clone(), false),
        (person("bob@example.com", "dev"), default.clone(), false),
        (person("ana@example.com", ""), of(drain), false),
        (person("eve@example.com", "x,lead"), of(drain), true),
        // The policy accepts no page, and this one does not exist any more.
        (person("ana@example.com", "sre"), of(shell), false),
        (person("ana@example.com", "sre"), of(gone), false),
    ] {
        let page = get(&web, &path, &headers).await;
        let label = format!("{headers:?} {path}");
        assert_eq!(page.status, 200, "every reader sees it: {label}");
        assert_eq!(
            page.body.contains("<form class=\"order decide\""),
            may,
            "{label}"
        );
        let form = get(&web, &default, &ana()).await;
        let sent = send(
            &web,
            &path,
            &headers,
            &(fields(&form.body) + "decision=deny"),
        )
        .await;
        assert_eq!(
            sent.status,
            if may { 202 } else { 404 },
            "{label}: {sent:?}"
        );
    }
    let unknown = [("x-forwarded-email", "ana@example.com")];
    assert_eq!(get(&web, &default, &unknown).await.status, 401);

    let bearer = format!("Bearer {TOKEN}");
    let bearer = ("authorization", bearer.as_str());
    let token = asking.web("{}", &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let open = asking.web("{}", &[]).await;
    for (web, headers) in [(&token, &[bearer][..]), (&open, &[][..])] {
        let page = get(web, &default, headers).await;
        assert!(
            page.status == 200 && !page.body.contains("<form class=\"order decide\""),
            "{page:?}"
        );
        let sent = send(web, &default, headers, "decision=deny").await;
        assert_eq!(sent.status, 404, "{sent:?}");
        let frozen = send(web, "/approvals/freeze", headers, "freeze=begin").await;
        assert_eq!(frozen.status, 404, "{frozen:?}");
    }
}
