//! Reads the alerts of a body: by the source that the path names, otherwise as a worker recognises it.

use chrono::Utc;
use hyper::body::Bytes;

use super::endpoint::Endpoint;
use super::response::Rejection;
use super::{InboundAlert, Settings};
use tarsy_config::{AlertRoute, BUILTIN_SOURCE_NAMES};
use tarsy_core::alert::{AlertStatus, Severity};
use tarsy_core::intake::{Hints, IntakeError, MAX_BODY_BYTES, Part, headers};
use tarsy_core::routing::Facts;
use tarsy_core::sources::Note;

/// Forms of bodies that belong to no source.
const FORMS: [&str; 2] = ["json", "text"];
/// Every source that is not built in.
const CUSTOM: &str = "custom";

/// Headers with their names.
type Headers = Vec<(&'static str, String)>;

/// A body with the headers that are passed on with it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) body: Bytes,
    pub(super) headers: Headers,
    /// The priority that the request asks for.
    pub(super) requested: Option<Severity>,
    /// A larger body is reduced.
    pub(super) max_alert_bytes: usize,
}

/// The result of reading a body: alerts, or the reason why there are none. The word of the source is that of the
/// metric.
#[derive(Debug)]
pub(super) enum ReadBody {
    Alerts {
        source: &'static str,
        alerts: Vec<InboundAlert>,
        /// The body to publish, with its headers.
        body: Bytes,
        headers: Headers,
    },
    /// No alert is published, for this reason.
    Ignored {
        source: &'static str,
        reason: String,
    },
}

/// Reads a body, and reduces it if it is large.
///
/// # Errors
/// When the body is no alert, or does not belong to the path.
pub(super) fn read(
    settings: &Settings,
    endpoint: Endpoint<'_>,
    received: Received,
) -> Result<ReadBody, Rejection> {
    let Received {
        mut body,
        mut headers,
        requested,
        max_alert_bytes,
    } = received;
    let mut hints = hints(endpoint, requested, &headers);
    let is_forced = header(&headers, headers::FORCE).is_some_and(|word| headers::is_yes(&word));
    let invalid = |error: IntakeError| Rejection::Invalid(error.to_string());
    if let Some(reduced) = settings
        .intake
        .reduced(&body, &hints, max_alert_bytes)
        .map_err(invalid)?
    {
        if reduced.is_too_large {
            return Err(Rejection::TooLarge(format!(
                "body has more than {MAX_BODY_BYTES} bytes after decompression"
            )));
        }
        tracing::info!(
            bytes = body.len(),
            stored = reduced.body.len(),
            "body reduced: it is larger than what is stored"
        );
        headers
            .retain(|(name, _)| ![headers::CONTENT_TYPE, headers::CONTENT_ENCODING].contains(name));
        headers.extend(
            reduced
                .left_out
                .header()
                .map(|value| (headers::LEFT_OUT, value)),
        );
        hints = reduced.hints(hints);
        body = Bytes::from(reduced.body);
    }
    let parts = settings.intake.read(&body, &hints).map_err(invalid)?;
    warn_of_another_form(endpoint, &parts);
    let Some(first) = parts.first() else {
        return Err(Rejection::Invalid("body has no alert".to_owned()));
    };
    if !endpoint.accepts(&first.alert.source) {
        let reason = format!(
            "body is not an Alertmanager or Grafana webhook (looks like {})",
            first.alert.source
        );
        return Err(Rejection::Invalid(reason));
    }
    let source = source_word(&first.alert.source);
    let Routed {
        alerts,
        ignored_because,
    } = routed(
        settings,
        endpoint,
        parts,
        RequestOptions {
            requested,
            is_forced,
        },
    );
    if alerts.is_empty() {
        return Ok(ReadBody::Ignored {
            source,
            reason: ignored_because.unwrap_or_else(|| "it is no alert".to_owned()),
        });
    }
    Ok(ReadBody::Alerts {
        source,
        alerts,
        body,
        headers,
    })
}

fn header(headers: &Headers, wanted: &str) -> Option<String> {
    let found = headers.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, value)| value.clone())
}

/// Reads the hints about the alert from path and headers.
fn hints(endpoint: Endpoint<'_>, requested: Option<Severity>, headers: &Headers) -> Hints {
    Hints {
        source: endpoint.source().map(ToOwned::to_owned),
        received_at: Some(Utc::now()),
        suffix: endpoint.suffix().to_owned(),
        // A worker reads it with the priority of its subject, which is this one.
        priority: requested,
        tenant: header(headers, headers::TENANT),
        // Routes compare type and title as a worker reads them.
        alert_type: header(headers, headers::ALERT_TYPE),
        title: header(headers, headers::TITLE),
        content_type: header(headers, headers::CONTENT_TYPE),
        content_encoding: header(headers, headers::CONTENT_ENCODING),
        ..Hints::default()
    }
}

/// The parts of a request apart from its body.
struct RequestOptions {
    requested: Option<Severity>,
    /// Whether no route ignores its alerts.
    is_forced: bool,
}

/// The alerts that are published, and why the others are not.
#[derive(Default)]
struct Routed {
    alerts: Vec<InboundAlert>,
    ignored_because: Option<String>,
}

fn routed(
    settings: &Settings,
    endpoint: Endpoint<'_>,
    parts: Vec<Part>,
    options: RequestOptions,
) -> Routed {
    let has_several = parts.len() > 1;
    let mut routed = Routed::default();
    for part in parts {
        let route = settings.routes.first(&Facts::new(&part, endpoint.suffix()));
        let ignored = if options.is_forced {
            None
        } else {
            route.and_then(AlertRoute::ignored_because)
        };
        let alert = match ignored {
            Some(because) => part.alert.ignored(because),
            None => part.alert,
        };
        if alert.status == AlertStatus::Ignored {
            routed.ignored_because = routed.ignored_because.or(alert.ignored_because);
            continue;
        }
        let priority = options
            .requested
            .or_else(|| route?.priority)
            .unwrap_or(alert.severity);
        routed.alerts.push(InboundAlert {
            priority,
            part: has_several.then_some(part.index),
        });
    }
    routed
}

/// A body that does not fit the source of its path is read; an operator has to know that the path may be wrong.
fn warn_of_another_form(endpoint: Endpoint<'_>, parts: &[Part]) {
    let note = parts
        .iter()
        .flat_map(|part| &part.notes)
        .find(|note| matches!(note, Note::OtherForm(_)));
    if let (Some(note), Some(name)) = (note, endpoint.source()) {
        metrics::counter!("tarsy_receive_other_form_total", "source" => source_word(name))
            .increment(1);
        tracing::warn!(source = name, "body accepted: {note}");
    }
}

/// The word of a source in metrics, one of a closed set.
pub(super) fn source_word(source: &str) -> &'static str {
    let mut known = FORMS
        .into_iter()
        .chain(BUILTIN_SOURCE_NAMES.iter().copied());
    known.find(|name| *name == source).unwrap_or(CUSTOM)
}
