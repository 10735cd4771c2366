//! From a request to an alert that may come in, or to the reason why not.

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::{HeaderMap, Method, Request};

use super::answer::Fault;
use super::{Headers, Settings, Visitor};
use crate::investigation::alert::Severity;
use crate::investigation::intake::{Hints, normalise};

/// The three entrances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    Alertmanager,
    Grafana,
    Alert,
}

impl Entrance {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/alertmanager" => Some(Self::Alertmanager),
            "/grafana" => Some(Self::Grafana),
            "/alert" => Some(Self::Alert),
            _ => None,
        }
    }

    /// The word in metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Grafana => "grafana",
            Self::Alert => "alert",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Grafana => "grafana",
            Self::Alert => "http",
        }
    }

    /// Whether what the intake made of the body belongs here. Grafana's form is Alertmanager's with more fields, and a
    /// proxy may add or drop those: each of the two entrances takes both.
    fn takes(self, source: &str) -> bool {
        match self {
            Self::Alertmanager | Self::Grafana => matches!(source, "alertmanager" | "grafana"),
            Self::Alert => true,
        }
    }
}

/// Browsers send these with what a page asks for, and pages cannot leave them out.
const FROM_PAGES: [&str; 2] = ["origin", "sec-fetch-site"];

/// Reads a request, its body last: nobody who may not come in gets that far.
pub(super) async fn read(
    settings: &Settings,
    entrance: Option<Entrance>,
    request: Request<Incoming>,
) -> Result<Visitor, Fault> {
    let (head, body) = request.into_parts();
    let entrance = entrance.ok_or(Fault::NoSuchPath)?;
    if head.method != Method::POST {
        return Err(Fault::OnlyPost);
    }
    if settings.token.as_ref().is_some_and(|token| !token.is_shown(&head.headers)) {
        return Err(Fault::Unauthorized);
    }
    if settings.token.is_none() && FROM_PAGES.iter().any(|name| head.headers.contains_key(*name)) {
        return Err(Fault::Browser);
    }
    let chosen = priority(head.uri.query().unwrap_or_default())?;
    let headers = passed(&head.headers, &settings.headers)?;
    let left_out = present(&head.headers, &settings.headers.left_out).collect();
    let body = whole(settings, body).await?;
    let alert = normalise(&body, &Hints::default()).map_err(|error| Fault::Never(error.to_string()))?;
    if !entrance.takes(&alert.source) {
        return Err(Fault::Never(format!("body is no webhook of Alertmanager or Grafana but {}", alert.source)));
    }
    Ok(Visitor { priority: chosen.unwrap_or(alert.severity), suffix: entrance.suffix(), headers, left_out, body })
}

/// The value of `priority` in a query; other keys are nobody's business.
fn priority(query: &str) -> Result<Option<Severity>, Fault> {
    let Some(word) = query.split('&').find_map(|pair| pair.strip_prefix("priority=")) else {
        return Ok(None);
    };
    word.parse().map(Some).map_err(|_| Fault::Never("priority is one of critical, high, normal, low".to_owned()))
}

fn present(headers: &HeaderMap, names: &[&'static str]) -> impl Iterator<Item = &'static str> {
    names.iter().copied().filter(|name| headers.contains_key(*name))
}

fn passed(headers: &HeaderMap, rules: &Headers) -> Result<Vec<(&'static str, String)>, Fault> {
    if let Some(name) = present(headers, &rules.refused).next() {
        return Err(Fault::Never(format!("header {name}: a webhook is an alert and no question; tarsy ask asks")));
    }
    let given = rules.passed.iter().filter_map(|name| Some((*name, headers.get(*name)?)));
    let text = |(name, value): (&'static str, &hyper::header::HeaderValue)| {
        let text = std::str::from_utf8(value.as_bytes());
        text.map(|text| (name, text.to_owned())).map_err(|_| Fault::Never(format!("header {name} is not UTF-8 text")))
    };
    given.map(text).collect()
}

/// The whole body. One that says that it is too long is not read at all, one that becomes so no further.
async fn whole(settings: &Settings, body: Incoming) -> Result<Bytes, Fault> {
    let limit = settings.max_body_bytes;
    let too_large = || Fault::TooLarge(format!("body is larger than {limit} bytes"));
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(too_large());
    }
    match tokio::time::timeout(settings.patience, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Fault::Never(format!("body cannot be read: {error}"))),
        Err(_elapsed) => Err(Fault::Slow(settings.patience)),
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
    fn only_listed_headers_come_in_and_under_their_listed_names() {
        let rules = Headers {
            passed: vec!["Tarsy-Title", "Tarsy-Chain"],
            left_out: vec!["Tarsy-Force", "Tarsy-Retry-Of"],
            refused: vec!["Tarsy-Parent-Id"],
        };
        let mut headers = HeaderMap::new();
        headers.insert("tarsy-title", HeaderValue::from_bytes("größer".as_bytes()).unwrap());
        headers.insert("nats-msg-id", HeaderValue::from_static("x"));
        headers.insert("tarsy-force", HeaderValue::from_static("true"));
        assert_eq!(passed(&headers, &rules).unwrap(), [("Tarsy-Title", "größer".to_owned())]);
        assert_eq!(present(&headers, &rules.left_out).collect::<Vec<_>>(), ["Tarsy-Force"]);
        headers.insert("tarsy-chain", HeaderValue::from_bytes(&[0xff]).unwrap());
        assert!(passed(&headers, &rules).is_err());
        headers.remove("tarsy-chain");
        headers.insert("TARSY-PARENT-ID", HeaderValue::from_static("x"));
        assert!(matches!(passed(&headers, &rules), Err(Fault::Never(why)) if why.contains("Tarsy-Parent-Id")));
    }
}
