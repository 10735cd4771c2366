//! The runbooks of listed hosts, fetched from a real web server.

use std::time::{Duration, Instant};

use tarsy_config::Config;
use tarsy_core::runbook::FetchedRunbook;
use tarsy_mask::Mask;
use tarsy_runbooks::{FETCH_TIMEOUT, Runbooks};

use crate::support::certificates::localhost_tls;
use crate::support::http::pages::{Pages, hanging, page, redirect};

fn runbooks(keys: &str) -> Runbooks {
    runbooks_within(FETCH_TIMEOUT, keys)
}

fn runbooks_within(timeout: Duration, keys: &str) -> Runbooks {
    let config = Config::parse("f", &format!("runbooks: {{{keys}}}"), &|_| None).unwrap();
    Runbooks::new(
        &config.runbooks,
        timeout,
        Mask::new(["known-val5e".to_owned()]),
    )
}

fn refused(why: &str) -> Option<FetchedRunbook> {
    Some(FetchedRunbook::Refused(why.to_owned()))
}

fn failed(why: &str) -> Option<FetchedRunbook> {
    Some(FetchedRunbook::Failed(why.to_owned()))
}

#[tokio::test]
async fn a_runbook_is_fetched_once_masked_and_as_text() {
    let html = "<html><head><script>x</script></head><body><h1>OOM</h1><p>Look at\u{200b} limits.</p></body></html>";
    let pages = Pages::serve(&[
        (
            "/oom.md",
            page(
                "text/markdown",
                "# OOM\nUse known-val5e and\npassword=hunter2-hunter2\n",
            ),
        ),
        ("/oom.html", page("text/html; charset=utf-8", html)),
        ("/long", page("", &"x".repeat(200_000))),
        ("/moved", redirect("/oom.html")),
    ])
    .await;
    let runbooks = runbooks(&format!("private_hosts: ['{}']", pages.address));
    let fetch = async |path: &str| {
        runbooks
            .fetch(&format!("http://{}{path}", pages.address))
            .await
    };
    let masked = "# OOM\nUse [masked] and\npassword=[masked]";
    let expected = Some(FetchedRunbook::Page(masked.to_owned()));
    assert_eq!(
        (fetch("/oom.md").await, fetch("/oom.md").await),
        (expected.clone(), expected)
    );
    assert_eq!(
        fetch("/moved").await,
        Some(FetchedRunbook::Page("# OOM\n\nLook at limits.".to_owned()))
    );
    let Some(FetchedRunbook::Page(long)) = fetch("/long").await else {
        panic!("no page")
    };
    assert!(
        long.len() < 66_000
            && long.ends_with("only the first 65536 bytes of the runbook are shown]")
    );
    assert_eq!(
        pages.requests(),
        ["/oom.md", "/moved", "/oom.html", "/long"]
    );
}

#[tokio::test]
async fn a_runbook_that_cannot_be_fetched_has_a_reason() {
    let other = Pages::serve(&[("/", page("text/plain", "secret"))]).await;
    let pages = Pages::serve(&[
        ("/image", page("image/png", "PNG")),
        ("/away", redirect(&format!("http://{}/", other.address))),
        ("/loop", redirect("/loop")),
        (
            "/metadata",
            redirect("http://169.254.169.254/latest/meta-data/"),
        ),
    ])
    .await;
    let runbooks = runbooks(&format!("private_hosts: ['{}']", pages.address));
    for (path, why) in [
        ("/nothing", failed("its server answered with HTTP 404")),
        ("/image", failed("it is no text, but \"image/png\"")),
        (
            "/away",
            refused("it redirects to a host that runbooks.hosts does not list"),
        ),
        (
            "/metadata",
            refused("it redirects to a host that runbooks.hosts does not list"),
        ),
        ("/loop", refused("it redirects more than 5 times")),
    ] {
        let url = format!("http://{}{path}", pages.address);
        assert_eq!(runbooks.fetch(&url).await, why, "{path}");
        assert_eq!(runbooks.fetch(&url).await, why, "{path}");
    }
    assert_eq!(
        pages
            .requests()
            .iter()
            .filter(|path| *path == "/nothing")
            .count(),
        1,
        "a failure is kept for a while"
    );
    assert_eq!(other.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn no_request_reaches_an_unlisted_host_or_a_private_address_of_a_public_one() {
    let pages = Pages::serve(&[("/", page("text/plain", "internal"))]).await;
    let port = pages.address.rsplit_once(':').unwrap().1;
    let runbooks = runbooks(&format!(
        "hosts: ['localhost:{port}', '{}', '*.example.com']",
        pages.address
    ));
    let private = "its host has a private address; runbooks.private_hosts lists hosts that may";
    let unreached = format!("it cannot be reached: {private}");
    assert_eq!(
        runbooks.fetch(&format!("http://localhost:{port}/")).await,
        refused(&unreached)
    );
    assert_eq!(
        runbooks.fetch(&format!("http://{}/", pages.address)).await,
        refused(private)
    );
    for url in [
        format!("http://127.1:{port}/"),
        format!("http://a.example.com@{}/", pages.address),
        "file:///etc".into(),
    ] {
        assert_eq!(runbooks.fetch(&url).await, None, "{url}");
    }
    assert_eq!(pages.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_slow_server_is_given_up_in_time_and_delays_no_other_runbook() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\n";
    let pages = Pages::serve(&[
        ("/silent", hanging("")),
        ("/half", hanging(&format!("{head}one line\n"))),
        ("/moved", redirect("/silent")),
        ("/prompt", page("text/plain", "at once")),
    ])
    .await;
    let timeout = Duration::from_millis(1_500);
    let runbooks = runbooks_within(timeout, &format!("private_hosts: ['{}']", pages.address));
    let began = Instant::now();
    let fetch = async |path: &str| {
        let fetched = runbooks
            .fetch(&format!("http://{}{path}", pages.address))
            .await;
        (fetched, began.elapsed())
    };
    let (silent, half, moved, again, prompt) = tokio::join!(
        fetch("/silent"),
        fetch("/half"),
        fetch("/moved"),
        fetch("/silent"),
        fetch("/prompt")
    );
    assert_eq!(prompt.0, Some(FetchedRunbook::Page("at once".to_owned())));
    for (fetched, took) in [silent, half, moved, again] {
        assert_eq!(fetched, failed("no answer within 1.5 s"));
        assert!(
            took >= timeout && took > prompt.1,
            "{took:?} {:?}",
            prompt.1
        );
    }
    assert_eq!(
        pages.requests().len(),
        5,
        "two callers of the same page share its request"
    );
    assert_eq!(FETCH_TIMEOUT, Duration::from_secs(10));
}

#[tokio::test]
async fn a_token_is_sent_to_its_host_only_and_read_again_for_each_page() {
    let folder = tempfile::tempdir().unwrap();
    let (tls, authority) = localhost_tls(folder.path());
    let other = Pages::serve_tls(&[("/", page("text/plain", "other"))], tls.clone()).await;
    let port = |pages: &Pages| pages.address.rsplit_once(':').unwrap().1.to_owned();
    let to_other = redirect(&format!("https://localhost:{}/", port(&other)));
    let answers = [
        ("/a", page("text/plain", "a")),
        ("/b", redirect("/a")),
        ("/away", to_other),
        ("/c", page("", "c second-t0ken")),
    ];
    let pages = Pages::serve_tls(&answers, tls).await;
    let (host, file) = (
        format!("localhost:{}", port(&pages)),
        folder.path().join("token"),
    );
    let keys = format!(
        "private_hosts: [{{host: '{host}', token_file: '{}'}}, 'localhost:{}'], ca_file: '{}'",
        file.display(),
        port(&other),
        authority.display()
    );
    let runbooks = runbooks(&keys);
    let fetch = async |path: &str| runbooks.fetch(&format!("https://{host}{path}")).await;
    let page = |text: &str| Some(FetchedRunbook::Page(text.to_owned()));

    std::fs::write(&file, "first-t0ken\n").unwrap();
    assert_eq!(
        (fetch("/b").await, fetch("/away").await),
        (page("a"), page("other"))
    );
    std::fs::write(&file, "second-t0ken\n").unwrap();
    assert_eq!(
        fetch("/c").await,
        page("c [masked]"),
        "the new token is masked, too"
    );
    let (first, second) = ("Bearer first-t0ken", "Bearer second-t0ken");
    assert_eq!(pages.authorizations(), [first, first, first, second]);
    assert_eq!(
        other.authorizations(),
        [""],
        "a redirect takes no token to another host"
    );

    let plain = runbooks.fetch(&format!("http://{host}/a")).await;
    assert_eq!(
        plain,
        failed("its host has a token, which is sent over TLS only; the URL begins with http://")
    );
    std::fs::remove_file(&file).unwrap();
    let Some(FetchedRunbook::Failed(why)) = fetch("/missing").await else {
        panic!("fetched without a token")
    };
    assert!(
        why.starts_with("the token of its host cannot be read: "),
        "{why}"
    );
    assert_eq!(
        pages.requests().len(),
        4,
        "no request is sent without the token"
    );
}

#[tokio::test]
async fn only_the_authorities_of_the_system_and_of_the_file_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (tls, authority) = localhost_tls(folder.path());
    let pages = Pages::serve_tls(&[("/a", page("text/plain", "a"))], tls).await;
    let host = format!("localhost:{}", pages.address.rsplit_once(':').unwrap().1);
    let fetched = async |ca_file: &str| {
        let runbooks = runbooks(&format!("private_hosts: ['{host}']{ca_file}"));
        runbooks.fetch(&format!("https://{host}/a")).await
    };
    let trusted = fetched(&format!(", ca_file: '{}'", authority.display())).await;
    assert_eq!(trusted, Some(FetchedRunbook::Page("a".to_owned())));
    let Some(FetchedRunbook::Failed(why)) = fetched("").await else {
        panic!("an unknown authority is trusted")
    };
    assert!(why.contains("certificate"), "{why}");
    let Some(FetchedRunbook::Failed(why)) = fetched(", ca_file: /no/such/file").await else {
        panic!("no such file")
    };
    assert!(
        why.starts_with("runbooks.ca_file cannot be used: No such file"),
        "{why}"
    );
}
