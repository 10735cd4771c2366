//! Protects forms against cross-site request forgery: checks the origin of each request that changes something.

use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, ORIGIN};

use super::{Credentials, Hosts};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const OTHER_SITE: &str = "rejected: a page of another site sent this request";
const NO_ORIGIN: &str = "rejected: without a bearer token, a request that changes something needs the header Origin or \
                         Sec-Fetch-Site, which every browser sends";

/// Refuses a request that a page of another site causes. Its user's browser would add the credentials by itself.
pub(super) fn check(
    headers: &HeaderMap,
    hosts: &Hosts,
    credentials: Credentials,
) -> Result<(), &'static str> {
    let site = single(headers, &SEC_FETCH_SITE);
    let origin = single(headers, &ORIGIN);
    let host = single(headers, &HOST).unwrap_or_default();
    // A proxy may set a referrer policy under which the browser keeps the origin back. Another site cannot set
    // `Sec-Fetch-Site`, and for a page without an origin, as in a sandbox, it is `cross-site`.
    let is_kept_back = site == Some("same-origin") && origin == Some("null");
    let is_foreign =
        !is_kept_back && origin.is_some_and(|origin| !hosts.is_own_origin(origin, host));
    if is_foreign || site.is_some_and(|site| site != "same-origin") {
        return Err(OTHER_SITE);
    }
    if credentials == Credentials::Ambient && site.is_none() && origin.is_none() {
        return Err(NO_ORIGIN);
    }
    Ok(())
}

/// The value of a header; the empty text, which no rule accepts, if the request has it twice.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => first.map(|value| value.to_str().unwrap_or_default()),
        (_, Some(_)) => Some(""),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_of_another_site_is_rejected_and_a_program_needs_no_origin() {
        let hosts = Hosts::default();
        let verdict = |site: Option<&str>, origin: Option<&str>, credentials| {
            let mut headers =
                HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost:8476"))]);
            for (name, value) in [(SEC_FETCH_SITE, site), (ORIGIN, origin)] {
                headers.extend(value.map(|value| (name, value.parse().unwrap())));
            }
            check(&headers, &hosts, credentials)
        };
        let ambient = Credentials::Ambient;
        let bearer = Credentials::Bearer;
        let own = Some("http://localhost:8476");
        assert_eq!(verdict(None, None, bearer), Ok(()));
        assert_eq!(verdict(None, None, ambient), Err(NO_ORIGIN));
        let kept_back = (Some("same-origin"), Some("null"));
        for (site, origin) in [
            (Some("same-origin"), None),
            (None, own),
            (Some("same-origin"), own),
            kept_back,
        ] {
            assert_eq!(
                verdict(site, origin, ambient),
                Ok(()),
                "{site:?} {origin:?}"
            );
        }
        for (site, origin) in [
            (Some("cross-site"), None),
            (Some("same-site"), own),
            (Some("none"), None),
            (None, Some("null")),
            (Some("cross-site"), Some("null")),
            (Some("same-origin"), Some("http://localhost:9999")),
            (None, Some("https://evil.example")),
        ] {
            assert_eq!(
                verdict(site, origin, ambient),
                Err(OTHER_SITE),
                "{site:?} {origin:?}"
            );
            assert_eq!(
                verdict(site, origin, bearer),
                Err(OTHER_SITE),
                "{site:?} {origin:?}"
            );
        }
        let twice = HeaderMap::from_iter([
            (HOST, HeaderValue::from_static("localhost:8476")),
            (ORIGIN, HeaderValue::from_static("http://localhost:8476")),
        ]);
        let mut twice_origin = twice.clone();
        twice_origin.append(ORIGIN, HeaderValue::from_static("https://evil.example"));
        assert_eq!(
            (
                check(&twice, &hosts, ambient),
                check(&twice_origin, &hosts, ambient)
            ),
            (Ok(()), Err(OTHER_SITE))
        );
    }
}
