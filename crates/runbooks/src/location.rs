//! Maps the URL of a runbook to the URL that is fetched.

use reqwest::Url;

use tarsy_core::runbook::{RunbookHost, is_listed};

/// The host of pages that show a file of a repository.
pub(super) const GITHUB: &str = "github.com";
/// The host of the files themselves.
pub(super) const GITHUB_RAW: &str = "raw.githubusercontent.com";

/// The URL to fetch first; `None` when the runbook's host is not listed.
pub(super) fn start(listed: &[RunbookHost], url: &str) -> Option<Url> {
    if !is_listed(listed, url) {
        return None;
    }
    // Parsing changes how some hosts are written, for example numbers; then the host is another one than was listed.
    let parsed = Url::parse(url)
        .ok()
        .filter(|parsed| is_listed(listed, parsed.as_str()))?;
    Some(raw(&parsed).unwrap_or(parsed))
}

/// The target of a redirect.
///
/// # Errors
/// When it leads to a host that is not listed, from TLS to none, or has a user and a password, which would be sent.
pub(super) fn redirected(
    listed: &[RunbookHost],
    from: &Url,
    location: &str,
) -> Result<Url, String> {
    let to = from
        .join(location)
        .map_err(|error| format!("it redirects to an invalid URL: {error}"))?;
    if !to.username().is_empty() || to.password().is_some() {
        return Err("it redirects to a URL with a user".to_owned());
    }
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err("it redirects to a URL without TLS".to_owned());
    }
    let is_same_host = to.origin() == from.origin();
    if !is_same_host && !is_listed(listed, to.as_str()) {
        return Err("it redirects to a host that runbooks.hosts does not list".to_owned());
    }
    Ok(raw(&to).unwrap_or(to))
}

/// The file itself behind a page of GitHub that shows it: `/owner/repository/blob/branch/path`.
fn raw(url: &Url) -> Option<Url> {
    if url.host_str() != Some(GITHUB) || url.scheme() != "https" {
        return None;
    }
    let mut parts = url.path_segments()?;
    let owner = parts.next()?;
    let repository = parts.next()?;

    parts
        .next()
        .filter(|word| matches!(*word, "blob" | "raw"))?;
    let path = parts.collect::<Vec<_>>().join("/");
    let (_, file) = path.split_once('/')?;
    if file.is_empty() {
        return None;
    }
    Url::parse(&format!("https://{GITHUB_RAW}/{owner}/{repository}/{path}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<RunbookHost> {
        ["github.com", "runbooks.example.com", "10.0.0.7:8080"]
            .map(|host| RunbookHost::parse(host).unwrap())
            .into()
    }

    fn started(url: &str) -> Option<String> {
        start(&hosts(), url).map(String::from)
    }

    #[test]
    fn a_page_of_a_listed_host_is_fetched_and_a_page_of_github_as_its_file() {
        for (url, expected) in [
            (
                "https://runbooks.example.com/oom?a=b#c",
                "https://runbooks.example.com/oom?a=b#c",
            ),
            ("http://10.0.0.7:8080/x", "http://10.0.0.7:8080/x"),
            (
                "https://github.com/o/r/blob/main/docs/oom.md",
                "https://raw.githubusercontent.com/o/r/main/docs/oom.md",
            ),
            (
                "https://github.com/o/r/raw/main/oom.md",
                "https://raw.githubusercontent.com/o/r/main/oom.md",
            ),
            (
                "https://github.com/o/r/wiki/OOM",
                "https://github.com/o/r/wiki/OOM",
            ),
            (
                "https://github.com/o/r/blob/main",
                "https://github.com/o/r/blob/main",
            ),
        ] {
            assert_eq!(started(url).as_deref(), Some(expected));
        }
        for url in [
            "https://raw.githubusercontent.com/o/r/main/x",
            "https://evil.test/",
            "http://0xa.0.0.7:8080/",
        ] {
            assert_eq!(started(url), None, "{url}");
        }
    }

    #[test]
    fn a_redirect_stays_on_listed_hosts_and_on_tls() {
        let from = Url::parse("https://runbooks.example.com/a/b").unwrap();
        let to = |location: &str| redirected(&hosts(), &from, location).map(String::from);
        assert_eq!(to("../c").unwrap(), "https://runbooks.example.com/c");
        assert_eq!(
            to("https://github.com/o/r/blob/main/x").unwrap(),
            "https://raw.githubusercontent.com/o/r/main/x"
        );
        for location in [
            "https://evil.test/",
            "//evil.test/x",
            "http://runbooks.example.com/",
            "https://runbooks.example.com:8443/",
            "https://user@github.com/",
            "https://user:word@runbooks.example.com/a",
            "https://:word@runbooks.example.com/a",
            "file:///etc/passwd",
            "https://[",
        ] {
            assert!(to(location).is_err(), "{location}");
        }
    }
}
