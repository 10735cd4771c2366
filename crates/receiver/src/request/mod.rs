//! Checks a request and reads its alerts.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use chrono::Utc;
use http_body_util::BodyExt as _;
use hyper::HeaderMap;
use hyper::body::{Body as _, Bytes};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use serde_json::Value;
use tokio::time::Instant;
use url::form_urlencoded;

use super::alerts::{self, ReadBody, Received};
use super::budget::{Exhausted, Held};
use super::endpoint::Endpoint;
use super::proof::sns::unsigned_control;
use super::proof::{Head, Proof, Proven, Signed};
use super::readers::Readers;
use super::response::Rejection;
use super::{HeaderRules, InboundAlerts, Settings};
use tarsy_core::alert::Severity;
use tarsy_core::intake::headers::{self, TRACEPARENT};
use tarsy_core::intake::{cloud_event, decode, event_grid_answer};
use tarsy_http::listener::http::{self, ClientAddress};

/// A client whose body was too slow may try again soon.
const SLOW_BODY_RETRY_DELAY: Duration = Duration::from_secs(1);
/// A client whose body had no room may try again when another one has been read.
const BUDGET_RETRY_DELAY: Duration = Duration::from_secs(2);
/// The largest body whose signature is checked, unless `max_body` of its source permits more.
const UNPROVEN_BYTES: usize = 512 * 1024;
const SECOND: Duration = Duration::from_secs(1);
/// Browsers add these headers to the requests of a page, and the page cannot remove them.
const BROWSER_HEADERS: [&str; 2] = ["origin", "sec-fetch-site"];
/// The tenant of Mimir, Loki and Cortex.
const SCOPE_ORG_ID: HeaderName = HeaderName::from_static("x-scope-orgid");
/// The origin that asks with `OPTIONS` whether it may send CloudEvents.
const REQUEST_ORIGIN: HeaderName = HeaderName::from_static("webhook-request-origin");

/// The result of reading a request: alerts, or the reason why there are none.
#[derive(Debug)]
pub(super) enum RequestContent {
    /// The word of the source is that of the metric, here and below.
    Alerts {
        source: &'static str,
        alerts: InboundAlerts,
    },
    /// No alert is published, for this reason.
    Ignored {
        source: &'static str,
        reason: String,
    },
    /// The answer to a validation of Event Grid.
    Validation(Value),
}

/// The parts that are needed to read requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestReader<'r> {
    pub(super) settings: &'r Arc<Settings>,
    pub(super) readers: &'r Readers,
    /// A larger body is reduced.
    pub(super) max_alert_bytes: usize,
}

impl RequestReader<'_> {
    /// Checks the head of a request, then reads its body: the body of a client that lacks a token is not read.
    pub(super) async fn read(
        self,
        endpoint: Option<Endpoint<'_>>,
        request: Request,
    ) -> Result<RequestContent, Rejection> {
        let Self {
            settings, readers, ..
        } = self;
        let (head, body) = request.into_parts();
        let endpoint = endpoint.ok_or(Rejection::UnknownPath)?;
        let proof = check_sender(settings, endpoint, &head.headers)?;
        if proof == HeaderCover::Covered {
            http::authenticated(&head.extensions);
        }
        let requested = priority(head.uri.query().unwrap_or_default())?;
        let (mut headers, ignored_headers) = described(&head.headers, &settings.headers, proof)?;
        headers.extend(tenant(&head, &settings.headers, proof));
        headers.extend(content(&head.headers, proof));
        let mut held = readers.budget.hold();
        let limits = BodyLimits {
            bytes: max_body_bytes(settings, endpoint),
            timeout: settings.body_timeout,
        };
        let body = read_body(limits, &mut held, body).await?;
        let proven = check_body(endpoint, &head, &body).await?;
        http::authenticated(&head.extensions);
        let session_id = match proven {
            Proven::Alert(session_id) => session_id,
            Proven::Control(reason) => {
                return Ok(RequestContent::Ignored {
                    source: alerts::source_word(endpoint.source().unwrap_or_default()),
                    reason,
                });
            }
        };
        if let Some(answer) = event_grid_answer(&body) {
            return Ok(RequestContent::Validation(answer));
        }
        // Attributes in headers count only if the proof of the sender covers them.
        let body = match event_of(&head.headers, &body) {
            Some(event) if proof == HeaderCover::Covered => {
                // It is UTF-8, whatever the bytes were.
                headers.retain(|(name, _)| {
                    ![headers::CONTENT_TYPE, headers::CONTENT_ENCODING].contains(name)
                });
                event
            }
            Some(_) | None => body,
        };
        let received = Received {
            body,
            headers,
            requested,
            max_alert_bytes: self.max_alert_bytes,
        };
        let size = received.body.len();
        let shared = Arc::clone(settings);
        let path = head.uri.path().to_owned();
        let read = readers.run(size, move || {
            // The memory of the body is free when it is reduced.
            let _held = held;
            let endpoint = Endpoint::of_path(&path, &shared.hooks).ok_or(Rejection::UnknownPath)?;
            alerts::read(&shared, endpoint, received)
        });
        match read.await?? {
            ReadBody::Ignored { source, reason } => Ok(RequestContent::Ignored { source, reason }),
            ReadBody::Alerts {
                source,
                alerts,
                body,
                headers,
            } => {
                let alerts = InboundAlerts {
                    alerts,
                    suffix: endpoint.suffix().to_owned(),
                    source: endpoint.source().map(ToOwned::to_owned),
                    session_id,
                    headers,
                    ignored_headers,
                    body,
                };
                Ok(RequestContent::Alerts { source, alerts })
            }
        }
    }
}

/// An event of CloudEvents in the binary mode as one in the structured mode, which a worker can read without headers.
/// `None` for any other request.
fn event_of(headers: &HeaderMap, body: &[u8]) -> Option<Bytes> {
    let attributes: Vec<_> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    cloud_event(&attributes, body).map(Bytes::from)
}

/// The origin of a handshake of CloudEvents. Its answer reveals nothing and permits nothing: each event still needs the
/// proof of its source.
///
/// # Errors
/// When it names none.
pub(super) fn handshake(headers: &HeaderMap) -> Result<HeaderValue, Rejection> {
    headers
        .get(REQUEST_ORIGIN)
        .cloned()
        .ok_or(Rejection::MethodNotAllowed)
}

/// Checks the token of the sender. Returns whether the proof covers the headers, too.
fn check_sender(
    settings: &Settings,
    endpoint: Endpoint<'_>,
    headers: &HeaderMap,
) -> Result<HeaderCover, Rejection> {
    let (proof, path_token) = match endpoint {
        Endpoint::Hook(hook) => (hook.proof, hook.path_token),
        Endpoint::Alertmanager | Endpoint::Grafana | Endpoint::Alert => (&Proof::OfReceiver, None),
    };
    let head = Head {
        headers,
        path_token,
    };
    proof.check_head(head, settings.token.as_ref())?;
    let is_open = matches!(proof, Proof::OfReceiver) && settings.token.is_none();
    // A page of any site can send to a receiver on the machine of its reader.
    if is_open && present(headers, &BROWSER_HEADERS).next().is_some() {
        return Err(Rejection::FromWebPage);
    }
    Ok(if proof.is_of_body() {
        HeaderCover::Uncovered
    } else {
        HeaderCover::Covered
    })
}

/// Whether the proof of the sender covers the headers of the request as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderCover {
    Covered,
    /// Only the body is signed: a copy of it could be sent with other headers.
    Uncovered,
}

async fn check_body(
    endpoint: Endpoint<'_>,
    head: &Parts,
    body: &[u8],
) -> Result<Proven, Rejection> {
    let Endpoint::Hook(hook) = endpoint else {
        return Ok(Proven::Alert(None));
    };
    let sender = head.extensions.get().map_or(
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        |ClientAddress(address)| *address,
    );
    let signed = Signed {
        source: hook.source,
        headers: &head.headers,
        body,
        sender,
        now: Utc::now(),
    };
    let proven = hook.proof.check_body(signed).await?;
    if !hook.proof.is_of_body()
        && let Some(reason) = unsigned_control(body)
    {
        return Ok(Proven::Control(reason));
    }
    Ok(proven)
}

/// Headers to publish, and the names of those that are not published.
type Described = (Vec<(&'static str, String)>, Vec<&'static str>);

fn described(
    headers: &HeaderMap,
    rules: &HeaderRules,
    cover: HeaderCover,
) -> Result<Described, Rejection> {
    let mut forwarded = forwarded(headers, rules)?;
    let mut ignored: Vec<&'static str> = present(headers, &rules.ignored).collect();
    if cover == HeaderCover::Uncovered {
        ignored.extend(
            forwarded
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| *name != TRACEPARENT),
        );
        forwarded.retain(|(name, _)| *name == TRACEPARENT);
    }
    Ok((forwarded, ignored))
}

/// The tenant in the query, or in the header that Mimir, Loki and Cortex have for it. The header of tarsy has
/// precedence. A signature covers none of them.
fn tenant(head: &Parts, rules: &HeaderRules, cover: HeaderCover) -> Option<(&'static str, String)> {
    let is_given = head.headers.contains_key(headers::TENANT);
    if cover == HeaderCover::Uncovered || is_given || !rules.forwarded.contains(&headers::TENANT) {
        return None;
    }
    let mut query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    let tenant = match query.find(|(name, _)| name == "tenant") {
        Some((_, tenant)) => tenant.into_owned(),
        None => head.headers.get(SCOPE_ORG_ID)?.to_str().ok()?.to_owned(),
    };
    // A line break has no place in a header.
    let is_name = !tenant.trim().is_empty() && !tenant.chars().any(char::is_control);
    is_name.then_some((headers::TENANT, tenant))
}

/// The headers by which a worker decodes the body, if they say something unusual. A signature does not cover them.
fn content(headers: &HeaderMap, cover: HeaderCover) -> Vec<(&'static str, String)> {
    if cover == HeaderCover::Uncovered {
        return Vec::new();
    }
    let text = |name: HeaderName| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let charset = text(CONTENT_TYPE).filter(|value| decode::has_charset(value));
    let encoding = text(CONTENT_ENCODING)
        .filter(|value| !value.is_empty() && !value.eq_ignore_ascii_case("identity"));
    let charset = charset.map(|value| (headers::CONTENT_TYPE, value.to_owned()));
    let encoding = encoding.map(|value| (headers::CONTENT_ENCODING, value.to_owned()));
    charset.into_iter().chain(encoding).collect()
}

/// The value of `priority` in a query. Other keys are ignored.
fn priority(query: &str) -> Result<Option<Severity>, Rejection> {
    let Some(word) = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("priority="))
    else {
        return Ok(None);
    };
    word.parse().map(Some).map_err(|_| {
        Rejection::Invalid("priority is one of critical, high, normal, low".to_owned())
    })
}

fn present(headers: &HeaderMap, names: &[&'static str]) -> impl Iterator<Item = &'static str> {
    names
        .iter()
        .copied()
        .filter(|name| headers.contains_key(*name))
}

fn forwarded(
    headers: &HeaderMap,
    rules: &HeaderRules,
) -> Result<Vec<(&'static str, String)>, Rejection> {
    if let Some(name) = present(headers, &rules.forbidden).next() {
        return Err(Rejection::Invalid(format!(
            "header {name} is not accepted: a webhook is an alert, not a question; to ask one, run tarsy ask"
        )));
    }
    let mut forwarded = Vec::new();
    for name in &rules.forwarded {
        if let Some(value) = headers.get(*name) {
            let text = std::str::from_utf8(value.as_bytes())
                .map_err(|_| Rejection::Invalid(format!("header {name} is not UTF-8 text")))?;
            forwarded.push((*name, text.to_owned()));
        }
    }
    Ok(forwarded)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    pub(super) bytes: usize,
    /// The time limit for the first [`UNPROVEN_BYTES`]. Each second more is for as many bytes.
    pub(super) timeout: Duration,
}

/// The largest body on this path. One that claims to be signed is in memory before that is known, so its limit is
/// lower.
fn max_body_bytes(settings: &Settings, endpoint: Endpoint<'_>) -> usize {
    let Endpoint::Hook(hook) = endpoint else {
        return settings.max_body_bytes;
    };
    let usual = if hook.proof.is_of_body() {
        UNPROVEN_BYTES.min(settings.max_body_bytes)
    } else {
        settings.max_body_bytes
    };
    settings
        .max_body_of_source
        .get(hook.source)
        .copied()
        .unwrap_or(usual)
}

/// Reads the whole body. If its declared length is too large, nothing is read; otherwise reading stops at the limit.
pub(super) async fn read_body(
    limits: BodyLimits,
    held: &mut Held,
    mut body: Body,
) -> Result<Bytes, Rejection> {
    let BodyLimits {
        bytes: limit,
        timeout,
    } = limits;
    let too_large = || {
        Rejection::TooLarge(format!(
            "body is larger than {limit} bytes; max_body of its source in tarsy.yaml may permit up to 32MiB"
        ))
    };
    let declared = body.size_hint();
    if declared.lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(too_large());
    }
    let declared = declared
        .exact()
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or_default();
    let began = Instant::now();
    let mut bytes = Vec::new();
    loop {
        let progress = u32::try_from(bytes.len() / UNPROVEN_BYTES).unwrap_or(u32::MAX);
        let deadline = began + timeout + SECOND * progress;
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(None) => return Ok(Bytes::from(bytes)),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                return Err(Rejection::Invalid(format!("cannot read the body: {error}")));
            }
            // A later try may be faster, so the status is no 4xx.
            Err(_elapsed) => {
                let reason = format!(
                    "body did not arrive within {} s",
                    (deadline - began).as_secs_f64()
                );
                return Err(Rejection::Unavailable {
                    reason,
                    retry_after: SLOW_BODY_RETRY_DELAY,
                });
            }
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(too_large());
        }
        held.grow(length)
            .map_err(|Exhausted| Rejection::Unavailable {
                reason: "too many large bodies at the same time".to_owned(),
                retry_after: BUDGET_RETRY_DELAY,
            })?;
        if length > bytes.capacity() && length > UNPROVEN_BYTES {
            // A buffer that grows step by step is copied again and again.
            bytes.reserve_exact(
                declared
                    .max(2 * bytes.len())
                    .saturating_sub(bytes.len())
                    .max(data.len()),
            );
        }
        bytes.extend_from_slice(&data);
    }
}

#[cfg(test)]
mod tests;
