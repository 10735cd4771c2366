//! The collector: spans as messages of OTLP, and the client that sends them over gRPC.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Link;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tower::service_fn;

use super::authorities::client_config;
use super::pairs::{Pairs, pairs};
use super::settings::Settings;
use super::span::{EndedSpan, Value};
use crate::process_mask::ProcessMask;
use tarsy_config::{Secret, SecretError};
use tarsy_core::trace_context::TraceContext;
use tarsy_http::outgoing::tls;
use tarsy_mask::Mask;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    Secret(#[from] SecretError),
    #[error("{}: {}", .0.code(), .0.message())]
    Refused(tonic::Status),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

impl Fault {
    /// Whether the same request may succeed later (OTLP, section "Failures").
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Secret(_) | Self::Timeout(_) => true,
            Self::Refused(status) => matches!(
                status.code(),
                Code::Cancelled
                    | Code::DeadlineExceeded
                    | Code::Aborted
                    | Code::OutOfRange
                    | Code::Unavailable
                    | Code::DataLoss
                    | Code::ResourceExhausted
            ),
        }
    }
}

/// A client of one collector. It connects when it is first used, and again after every loss.
#[derive(Debug)]
pub(super) struct Collector {
    client: TraceServiceClient<Channel>,
    headers: Option<Secret>,
    timeout: Duration,
    resource: Resource,
    mask: ProcessMask,
}

impl Collector {
    /// Needs a Tokio runtime.
    ///
    /// # Errors
    /// When the file of certificates cannot be used, or the address cannot be one of gRPC.
    pub(super) fn new(settings: &Settings, mask: ProcessMask) -> Result<Self, String> {
        let endpoint = Endpoint::from_shared(settings.endpoint.to_string())
            .map_err(|error| error.to_string())?;
        let channel = if settings.endpoint.scheme() == "https" {
            let config = client_config(settings.certificate.as_deref())?;
            endpoint.connect_with_connector_lazy(service_fn(move |uri| {
                tls::connect(uri, Arc::clone(&config), CONNECT_TIMEOUT)
            }))
        } else {
            endpoint.connect_timeout(CONNECT_TIMEOUT).connect_lazy()
        };
        Ok(Self {
            client: TraceServiceClient::new(channel),
            headers: settings.headers.clone(),
            timeout: settings.timeout,
            resource: resource(&settings.resource),
            mask,
        })
    }

    /// The request for these spans. Every text passes the mask of this process.
    pub(super) fn request(&self, spans: Vec<EndedSpan>) -> ExportTraceServiceRequest {
        let mask = self.mask.current();
        let scope = InstrumentationScope {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Default::default()
        };
        let scope_spans = ScopeSpans {
            scope: Some(scope),
            spans: spans.into_iter().map(|span| wire(span, &mask)).collect(),
            ..Default::default()
        };
        let resource_spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![scope_spans],
            ..Default::default()
        };
        ExportTraceServiceRequest {
            resource_spans: vec![resource_spans],
        }
    }

    /// Sends a request once. Returns how many of its spans the collector has rejected.
    pub(super) async fn send(&self, request: ExportTraceServiceRequest) -> Result<u64, Fault> {
        let mut request = Request::new(request);
        if let Some(headers) = &self.headers {
            *request.metadata_mut() = metadata(headers, &self.mask.current())?;
        }
        let mut client = self.client.clone();
        let sent = tokio::time::timeout(self.timeout, client.export(request)).await;
        let answer = sent
            .map_err(|_elapsed| Fault::Timeout(self.timeout))?
            .map_err(Fault::Refused)?;
        let rejected = answer
            .into_inner()
            .partial_success
            .map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(rejected).unwrap_or_default())
    }
}

/// The headers of a request, read anew. The mask hides their values from now on.
pub(super) fn metadata(secret: &Secret, mask: &Mask) -> Result<MetadataMap, SecretError> {
    let headers = pairs(&secret.read()?)
        .map_err(|_part| secret.fault("is no pair; accepted: key=value,key=value"))?;
    mask.learn(headers.values().cloned());
    let mut metadata = MetadataMap::new();
    for (name, value) in headers {
        let key = AsciiMetadataKey::from_str(&name.to_ascii_lowercase())
            .map_err(|_error| secret.fault(&format!("{name:?} is no name of a header")))?;
        let mut value = AsciiMetadataValue::try_from(value).map_err(|_error| {
            secret.fault(&format!("the value of {name} has letters beyond ASCII"))
        })?;
        // The debug form of the request leaves a sensitive value out.
        value.set_sensitive(true);
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn resource(pairs: &Pairs) -> Resource {
    let attributes = pairs
        .iter()
        .map(|(key, value)| text(key, value.clone()))
        .collect();
    Resource {
        attributes,
        ..Default::default()
    }
}

fn text(key: &str, value: String) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value))
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}

fn wire(ended: EndedSpan, mask: &Mask) -> Span {
    let EndedSpan {
        context,
        span,
        ended_ns,
    } = ended;
    let fields = span.fields;
    let masked = |text: &str| mask.apply(text).into_owned();
    let attributes = fields
        .attributes
        .into_iter()
        .map(|(key, value)| match value {
            Value::Text(value) => text(key, masked(&value)),
            Value::Integer(value) => attribute(key, any_value::Value::IntValue(value)),
            Value::Float(value) => attribute(key, any_value::Value::DoubleValue(value)),
        });
    let code = if fields.has_failed {
        StatusCode::Error
    } else {
        StatusCode::Unset
    };
    Span {
        trace_id: context.trace_id.bytes().into(),
        span_id: context.span_id.bytes().into(),
        parent_span_id: span
            .parent
            .map(|parent| parent.bytes().into())
            .unwrap_or_default(),
        flags: u32::from(context.sampled),
        name: masked(&fields.name),
        kind: fields.kind as i32,
        start_time_unix_nano: span.began_ns,
        end_time_unix_nano: ended_ns,
        attributes: attributes.collect(),
        links: fields.link.map(link).into_iter().collect(),
        status: Some(Status {
            code: code.into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn link(to: TraceContext) -> Link {
    Link {
        trace_id: to.trace_id.bytes().into(),
        span_id: to.span_id.bytes().into(),
        flags: u32::from(to.sampled),
        ..Default::default()
    }
}
