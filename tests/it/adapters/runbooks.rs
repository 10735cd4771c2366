//! The runbooks of listed hosts, fetched from a real web server.

use tarsy::config::Config;
use tarsy::investigation::mask::Mask;
use tarsy::investigation::runbook::FetchedRunbook;
use tarsy::runbooks::Runbooks;

use crate::support::http::pages::{Pages, page, redirect};

fn runbooks(hosts: &str) -> Runbooks {
    let config = Config::parse("f", &format!("runbooks: {{{hosts}}}"), &|_| None).unwrap();
    Runbooks::new(&config.runbooks, Mask::new(["known-val5e".to_owned()]))
}

fn failed(why: &str) -> Option<FetchedRunbook> {
    Some(FetchedRunbook::Failed(why.to_owned()))
}

#[tokio::test]
async fn a_runbook_is_fetched_once_masked_and_as_text() {
    let html = "<html><head><script>x</script></head><body><h1>OOM</h1><p>Look at\u{200b} limits.</p></body></html>";
    let pages = Pages::serve(&[
        ("/oom.md", page("text/markdown", "# OOM\nUse known-val5e and\npassword=hunter2-hunter2\n")),
        ("/oom.html", page("text/html; charset=utf-8", html)),
        ("/long", page("", &"x".repeat(200_000))),
        ("/moved", redirect("/oom.html")),
    ])
    .await;
    let runbooks = runbooks(&format!("private_hosts: ['{}']", pages.address));
    let fetch = async |path: &str| runbooks.fetch(&format!("http://{}{path}", pages.address)).await;
    let masked = "# OOM\nUse [masked] and\npassword=[masked]";
    let expected = Some(FetchedRunbook::Page(masked.to_owned()));
    assert_eq!((fetch("/oom.md").await, fetch("/oom.md").await), (expected.clone(), expected));
    assert_eq!(fetch("/moved").await, Some(FetchedRunbook::Page("# OOM\n\nLook at limits.".to_owned())));
    let Some(FetchedRunbook::Page(long)) = fetch("/long").await else { panic!("no page") };
    assert!(long.len() < 66_000 && long.ends_with("only the first 65536 bytes of the runbook are shown]"));
    assert_eq!(pages.requests(), ["/oom.md", "/moved", "/oom.html", "/long"]);
}

#[tokio::test]
async fn a_runbook_that_cannot_be_fetched_has_a_reason() {
    let other = Pages::serve(&[("/", page("text/plain", "secret"))]).await;
    let pages = Pages::serve(&[
        ("/image", page("image/png", "PNG")),
        ("/away", redirect(&format!("http://{}/", other.address))),
        ("/loop", redirect("/loop")),
    ])
    .await;
    let runbooks = runbooks(&format!("private_hosts: ['{}']", pages.address));
    for (path, why) in [
        ("/nothing", "its server answered with HTTP 404"),
        ("/image", "it is no text, but \"image/png\""),
        ("/away", "it redirects to a host that runbooks.hosts does not list"),
        ("/loop", "it redirects more than 5 times"),
    ] {
        let url = format!("http://{}{path}", pages.address);
        assert_eq!(runbooks.fetch(&url).await, failed(why), "{path}");
        assert_eq!(runbooks.fetch(&url).await, failed(why), "{path}");
    }
    assert_eq!(pages.requests().iter().filter(|path| *path == "/nothing").count(), 1, "a failure is kept for a while");
    assert_eq!(other.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn no_request_reaches_an_unlisted_host_or_a_private_address_of_a_public_one() {
    let pages = Pages::serve(&[("/", page("text/plain", "internal"))]).await;
    let port = pages.address.rsplit_once(':').unwrap().1;
    let runbooks = runbooks(&format!("hosts: ['localhost:{port}', '{}', '*.example.com']", pages.address));
    let private = "its host has a private address; runbooks.private_hosts lists hosts that may";
    let unreached = format!("it cannot be reached: {private}");
    assert_eq!(runbooks.fetch(&format!("http://localhost:{port}/")).await, failed(&unreached));
    assert_eq!(runbooks.fetch(&format!("http://{}/", pages.address)).await, failed(private));
    for url in
        [format!("http://127.1:{port}/"), format!("http://a.example.com@{}/", pages.address), "file:///etc".into()]
    {
        assert_eq!(runbooks.fetch(&url).await, None, "{url}");
    }
    assert_eq!(pages.requests(), Vec::<String>::new());
}
