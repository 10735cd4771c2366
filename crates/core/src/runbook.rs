//! The allowed hosts of runbooks, the check of a URL against them, and the fetched page.
//!
//! A URL comes from an alert, so it is parsed strictly. A URL that two programs could parse in two ways (user
//! information, a backslash, a host with a percent sign or letters beyond ASCII, a trailing dot) is never listed.

use std::fmt;

/// A host whose runbooks an agent may be pointed at: `runbooks.example.com`, `wiki.example.com:8443`, or
/// `*.example.com` for every name below `example.com`, but not itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunbookHost {
    /// Lower case, without the `*.`.
    name: String,
    /// Whether only names below it are listed.
    below: bool,
    /// `None`: the port of the URL's scheme.
    port: Option<u16>,
}

impl RunbookHost {
    /// Parses a host of the configuration; `None` for anything else, also for a URL.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, below) = text
            .strip_prefix("*.")
            .map_or((text, false), |name| (name, true));
        let (name, port) = authority(name)?;
        Some(Self { name, below, port })
    }

    /// Whether it represents one host, not for every name below it.
    pub fn is_one_host(&self) -> bool {
        !self.below
    }

    /// Whether the host has this name, at any port.
    pub fn has_name(&self, name: &str) -> bool {
        match name.to_ascii_lowercase().strip_suffix(self.name.as_str()) {
            Some("") => !self.below,
            Some(before) => self.below && before.ends_with('.'),
            None => false,
        }
    }

    fn matches(&self, name: &str, port: Option<u16>, default_port: u16) -> bool {
        self.has_name(name) && self.port.unwrap_or(default_port) == port.unwrap_or(default_port)
    }
}

impl fmt::Display for RunbookHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, below, port } = self;
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{}{name}{port}", if *below { "*." } else { "" })
    }
}

/// The outcome of fetching a runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchedRunbook {
    /// The text of the page, masked and bounded.
    Page(String),
    /// The reason why there is no text, masked.
    Failed(String),
    /// The reason why tarsy refuses to open it, masked: nothing else should.
    Refused(String),
}

/// Whether `url` is a plain `http://` or `https://` URL of one of these hosts.
pub fn is_listed(hosts: &[RunbookHost], url: &str) -> bool {
    let (rest, default_port) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, 443),
        (None, Some(rest)) => (rest, 80),
        (None, None) => return false,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (before, path) = rest.split_at(end);
    let is_path = path
        .chars()
        .all(|c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c));
    if !is_path {
        return false;
    }
    authority(before).is_some_and(|(name, port)| {
        hosts
            .iter()
            .any(|host| host.matches(&name, port, default_port))
    })
}

/// A host name in lower case and its port.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = text
        .split_once(':')
        .map_or((text, None), |(name, port)| (name, Some(port)));
    if !name.split('.').all(|label: &str| {
        let sound = label
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        sound && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    }) || name.len() > 253
    {
        return None;
    }
    let port = match port {
        None => None,
        Some(digits) if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        Some(_) => return None,
    };
    Some((name.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<RunbookHost> {
        [
            "runbooks.example.com",
            "*.wiki.example.com",
            "docs.example.com:8443",
            "localhost",
        ]
        .map(|host| RunbookHost::parse(host).unwrap())
        .into()
    }

    #[test]
    fn a_page_of_a_listed_host_is_listed() {
        for url in [
            "https://runbooks.example.com",
            "https://runbooks.example.com/",
            "http://runbooks.example.com/oom?a=b#c",
            "https://RunBooks.Example.COM/oom",
            "https://runbooks.example.com:443/oom",
            "http://runbooks.example.com:80/oom",
            "https://sre.wiki.example.com/disk",
            "https://a.b.wiki.example.com?x",
            "https://docs.example.com:8443/x",
            "http://docs.example.com:8443/x",
            "https://localhost/x@y",
        ] {
            assert!(is_listed(&hosts(), url), "{url}");
        }
    }

    #[test]
    fn no_trick_makes_another_host_a_listed_one() {
        for url in [
            "https://runbooks.example.com@evil.test/",
            "https://runbooks.example.com:443@evil.test/",
            "https://user:password@runbooks.example.com/",
            "https://evil.test/https://runbooks.example.com/",
            "https://evil.test?https://runbooks.example.com/",
            "https://evil.test#@runbooks.example.com/",
            "https://evil.test\\@runbooks.example.com/",
            "https://runbooks.example.com\\@evil.test/",
            "https:\\\\runbooks.example.com/",
            "https:///runbooks.example.com/",
            "https:/runbooks.example.com/",
            "https://runbooks.example.com.evil.test/",
            "https://evilrunbooks.example.com/",
            "https://x.runbooks.example.com/",
            "https://wiki.example.com/",
            "https://evilwiki.example.com/",
            "https://.wiki.example.com/",
            "https://a..wiki.example.com/",
            "https://runbooks.example.com./",
            "https://runbooks.example.com:8443/",
            "https://runbooks.example.com:/",
            "https://runbooks.example.com:0443x/",
            "https://runbooks.example.com:99999999/",
            "https://docs.example.com/x",
            "https://runbooks%2eexample.com/",
            "https://evil.test%2f.wiki.example.com/",
            "https://runbooks.ex\u{430}mple.com/",
            "https://runbooks\u{3002}example.com/",
            "https://[::1]/",
            "ftp://runbooks.example.com/",
            "HTTPS://runbooks.example.com/",
            "javascript:runbooks.example.com",
            "runbooks.example.com/oom",
            " https://runbooks.example.com/",
            "https://runbooks.example.com/a b",
            "https://runbooks.example.com/a\nb",
            "https://runbooks.example.com/`a`",
            "https://runbooks.example.com/<a>",
            "https://runbooks.example.com/\u{e4}",
            "https://",
            "",
        ] {
            assert!(!is_listed(&hosts(), url), "{url}");
        }
        assert!(!is_listed(&[], "https://runbooks.example.com/"));
    }

    #[test]
    fn a_host_is_shown_as_it_is_written_and_any_other_text_is_refused() {
        for text in [
            "a", "a.b", "*.a.b", "a.b:8443", "*.a.b:1", "10.0.0.7", "a_b.c-d",
        ] {
            assert_eq!(RunbookHost::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(RunbookHost::parse("A.B").unwrap().to_string(), "a.b");
        for text in [
            "",
            "*",
            "*.",
            "a.*",
            "*a",
            "https://a",
            "a/b",
            "a.",
            ".a",
            "a:",
            "a:b",
            "a@b",
            "a b",
            "\u{e4}",
            "-a",
        ] {
            assert_eq!(RunbookHost::parse(text), None, "{text}");
        }
    }
}
