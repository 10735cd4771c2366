//! Checks the `Host` header against the host names of this server.
//!
//! A page of another site can let its own name resolve to 127.0.0.1 and then read a server that asks for no login. Its
//! requests still carry that site's name in `Host`.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::Authority;

/// The names of this server. Loopback names always belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The address that people use, such as `https://tarsy.example.com`, without a path.
    pub public_url: Option<String>,
    /// Further names, without ports: for clients within a cluster.
    pub further: Vec<String>,
}

impl Hosts {
    /// Whether the request names this server, in its one `Host` and, if it has one, in its own address.
    pub(super) fn admit(&self, request: &Request) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let Some(named) = host
            .to_str()
            .ok()
            .and_then(|host| host.parse::<Authority>().ok())
        else {
            return false;
        };
        let has_user = named.as_str().contains('@');
        !has_user
            && self.has(named.host())
            && request.uri().host().is_none_or(|host| self.has(host))
    }

    fn has(&self, host: &str) -> bool {
        let public = self.public_url.as_deref().and_then(authority);
        is_loopback(host)
            || public.is_some_and(|public| public.host().eq_ignore_ascii_case(host))
            || self
                .further
                .iter()
                .any(|further| further.eq_ignore_ascii_case(host))
    }

    /// Whether a page with this origin is one of this server, which was asked as `host`.
    pub(super) fn is_own_origin(&self, origin: &str, host: &str) -> bool {
        let is_public = self
            .public_url
            .as_deref()
            .is_some_and(|public| public.eq_ignore_ascii_case(origin));
        is_public
            || authority(origin)
                .is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host))
    }

    /// Whether browsers reach this server by TLS only.
    pub(super) fn is_secure(&self) -> bool {
        self.public_url
            .as_deref()
            .is_some_and(|url| url.starts_with("https://"))
    }
}

/// The part of `scheme://authority` after the scheme.
fn authority(url: &str) -> Option<Authority> {
    match url.split_once("://")? {
        ("http" | "https", rest) => rest.parse().ok(),
        (_, _) => None,
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn admits(hosts: &Hosts, named: &[&str]) -> bool {
        let builder = named
            .iter()
            .fold(Request::builder().uri("/"), |builder, host| {
                builder.header(HOST, *host)
            });
        hosts.admit(&builder.body(Body::empty()).unwrap())
    }

    #[test]
    fn only_loopback_names_the_public_url_and_listed_names_are_admitted() {
        let none = Hosts::default();
        let public = Hosts {
            public_url: Some("https://tarsy.example.com".to_owned()),
            further: vec!["web".to_owned()],
        };
        for local in [
            "localhost",
            "LOCALHOST:8476",
            "127.0.0.1:8476",
            "127.9.9.9",
            "[::1]:8476",
        ] {
            assert!(
                admits(&none, &[local]) && admits(&public, &[local]),
                "{local}"
            );
        }
        for name in [
            "tarsy.example.com",
            "Tarsy.Example.com:443",
            "web",
            "web:8476",
        ] {
            assert!(
                !admits(&none, &[name]) && admits(&public, &[name]),
                "{name}"
            );
        }
        for hostile in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "tarsy.example.com.evil.example",
            "localhost@evil.example",
            "evil.example@localhost",
            "10.0.0.7:8476",
            "0.0.0.0",
            "",
            "[::1",
            "a b",
        ] {
            assert!(!admits(&public, &[hostile]), "{hostile}");
        }
        assert!(!admits(&none, &[]) && !admits(&none, &["localhost", "localhost"]));
        let absolute = Request::builder()
            .uri("http://evil.example/")
            .header(HOST, "localhost");
        assert!(!none.admit(&absolute.body(Body::empty()).unwrap()));
    }

    #[test]
    fn an_origin_is_that_of_the_host_that_was_asked_or_the_public_one() {
        let public = Hosts {
            public_url: Some("https://tarsy.example.com".to_owned()),
            further: Vec::new(),
        };
        assert!(public.is_own_origin("https://tarsy.example.com", "10.0.0.7:8476"));
        assert!(public.is_own_origin("http://localhost:8476", "localhost:8476"));
        for other in [
            "null",
            "",
            "http://localhost:9999",
            "http://tarsy.example.com",
            "https://evil.example",
            "file://",
        ] {
            assert!(!public.is_own_origin(other, "localhost:8476"), "{other}");
        }
    }
}
