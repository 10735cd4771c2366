//! Checks a request and reads its alert.

use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::{HeaderMap, Method, Request};

use super::response::Rejection;
use super::{HeaderRules, InboundAlert, Settings};
use crate::investigation::alert::Severity;
use crate::investigation::intake::{Hints, normalise};

/// The three paths that take alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Alertmanager,
    Grafana,
    Alert,
}

impl Endpoint {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let all = [Self::Alertmanager, Self::Grafana, Self::Alert];
        all.into_iter().find(|endpoint| path.strip_prefix('/') == Some(endpoint.as_str()))
    }

    /// The path without its slash, which is the value of the metric label `path`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Grafana => "grafana",
            Self::Alert => "alert",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Alertmanager | Self::Grafana => self.as_str(),
            Self::Alert => "http",
        }
    }

    /// Whether a body from this source may be sent here. Grafana's form is Alertmanager's with more fields, which a
    /// proxy may add or drop, so each of the two endpoints accepts both.
    fn accepts(self, source: &str) -> bool {
        match self {
            Self::Alertmanager | Self::Grafana => matches!(source, "alertmanager" | "grafana"),
            Self::Alert => true,
        }
    }
}

/// A client whose body was too slow may try again soon.
const SLOW_BODY_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Browsers add these headers to the requests of a page, and the page cannot remove them.
const BROWSER_HEADERS: [&str; 2] = ["origin", "sec-fetch-site"];

/// Checks the head of a request, then reads its body: the body of a rejected client is not read.
pub(super) async fn read(
    settings: &Settings,
    endpoint: Option<Endpoint>,
    request: Request<Incoming>,
) -> Result<InboundAlert, Rejection> {
    let (head, body) = request.into_parts();
    let endpoint = endpoint.ok_or(Rejection::UnknownPath)?;
    if head.method != Method::POST {
        return Err(Rejection::MethodNotAllowed);
    }
    if settings.token.as_ref().is_some_and(|token| !token.matches(&head.headers)) {
        return Err(Rejection::Unauthorized);
    }
    if settings.token.is_none() && BROWSER_HEADERS.iter().any(|name| head.headers.contains_key(*name)) {
        return Err(Rejection::FromWebPage);
    }
    let requested = priority(head.uri.query().unwrap_or_default())?;
    let headers = forwarded(&head.headers, &settings.headers)?;
    let ignored_headers = present(&head.headers, &settings.headers.ignored).collect();
    let body = read_body(settings, body).await?;
    let alert = normalise(&body, &Hints::default()).map_err(|error| Rejection::Invalid(error.to_string()))?;
    if !endpoint.accepts(&alert.source) {
        return Err(Rejection::Invalid(format!(
            "body is not an Alertmanager or Grafana webhook (looks like {})",
            alert.source
        )));
    }
    let priority = requested.unwrap_or(alert.severity);
    Ok(InboundAlert { priority, suffix: endpoint.suffix(), headers, ignored_headers, body })
}

/// The value of `priority` in a query. Other keys are ignored.
fn priority(query: &str) -> Result<Option<Severity>, Rejection> {
    let Some(word) = query.split('&').find_map(|pair| pair.strip_prefix("priority=")) else {
        return Ok(None);
    };
    word.parse().map(Some).map_err(|_| Rejection::Invalid("priority is one of critical, high, normal, low".to_owned()))
}

fn present(headers: &HeaderMap, names: &[&'static str]) -> impl Iterator<Item = &'static str> {
    names.iter().copied().filter(|name| headers.contains_key(*name))
}

fn forwarded(headers: &HeaderMap, rules: &HeaderRules) -> Result<Vec<(&'static str, String)>, Rejection> {
    if let Some(name) = present(headers, &rules.forbidden).next() {
        return Err(Rejection::Invalid(format!(
            "header {name} is not accepted: a webhook is an alert, not a question; to ask one, run tarsy ask"
        )));
    }
    let given = rules.forwarded.iter().filter_map(|name| Some((*name, headers.get(*name)?)));
    let text = |(name, value): (&'static str, &hyper::header::HeaderValue)| {
        let text = std::str::from_utf8(value.as_bytes());
        text.map(|text| (name, text.to_owned()))
            .map_err(|_| Rejection::Invalid(format!("header {name} is not UTF-8 text")))
    };
    given.map(text).collect()
}

/// Reads the whole body. If its declared length is too large, nothing is read; otherwise reading stops at the limit.
async fn read_body(settings: &Settings, body: Incoming) -> Result<Bytes, Rejection> {
    let limit = settings.max_body_bytes;
    let too_large = || Rejection::TooLarge(format!("body is larger than {limit} bytes"));
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(too_large());
    }
    match tokio::time::timeout(settings.body_timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Rejection::Invalid(format!("cannot read the body: {error}"))),
        // A later try may be faster, so the status is no 4xx.
        Err(_elapsed) => {
            let reason = format!("body did not arrive within {} s", settings.body_timeout.as_secs_f64());
            Err(Rejection::Unavailable { reason, retry_after: SLOW_BODY_RETRY_DELAY })
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_priority_in_the_query_is_one_of_four_words() {
        assert_eq!(priority("").unwrap(), None);
        assert_eq!(priority("a=b&priority=low").unwrap(), Some(Severity::Low));
        for wrong in ["priority=", "priority=urgent", "priority=LOW", "priority=low%20"] {
            assert!(priority(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_listed_headers_are_forwarded_and_under_their_listed_names() {
        let rules = HeaderRules {
            forwarded: vec!["Tarsy-Title", "Tarsy-Chain"],
            ignored: vec!["Tarsy-Force", "Tarsy-Retry-Of"],
            forbidden: vec!["Tarsy-Parent-Id"],
        };
        let mut headers = HeaderMap::new();
        headers.insert("tarsy-title", HeaderValue::from_bytes("größer".as_bytes()).unwrap());
        headers.insert("nats-msg-id", HeaderValue::from_static("x"));
        headers.insert("tarsy-force", HeaderValue::from_static("true"));
        assert_eq!(forwarded(&headers, &rules).unwrap(), [("Tarsy-Title", "größer".to_owned())]);
        assert_eq!(present(&headers, &rules.ignored).collect::<Vec<_>>(), ["Tarsy-Force"]);
        headers.insert("tarsy-chain", HeaderValue::from_bytes(&[0xff]).unwrap());
        assert!(forwarded(&headers, &rules).is_err());
        headers.remove("tarsy-chain");
        headers.insert("TARSY-PARENT-ID", HeaderValue::from_static("x"));
        assert!(matches!(forwarded(&headers, &rules), Err(Rejection::Invalid(why)) if why.contains("Tarsy-Parent-Id")));
    }
}
