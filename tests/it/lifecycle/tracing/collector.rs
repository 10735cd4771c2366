//! A collector of OpenTelemetry for tests: it keeps every span that it receives over OTLP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

const TIMEOUT: Duration = Duration::from_secs(180);

/// A received span.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) service: String,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) trace_id: String,
    pub(super) id: String,
    /// Empty for the first span of a trace.
    pub(super) parent: String,
    /// `trace_id-span_id` of each link.
    pub(super) links: Vec<String>,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) failed: bool,
}

/// A running collector. Dropped, it ends.
pub(super) struct Collector {
    pub(super) address: String,
    received: Received,
}

#[derive(Clone, Default)]
struct Received(Arc<Kept>);

#[derive(Default)]
struct Kept {
    spans: Mutex<Vec<Span>>,
    /// The header `x-scope` of each request.
    scopes: Mutex<Vec<String>>,
    grown: Notify,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let received = Received::default();
        let service = TraceServiceServer::new(received.clone());
        tokio::spawn(Server::builder().serve_with_incoming(service, TcpIncoming::from(listener)));
        Self { address, received }
    }

    /// Every span so far.
    pub(super) fn spans(&self) -> Vec<Span> {
        self.received.0.spans.lock().unwrap().clone()
    }

    /// The values of the header `x-scope` so far.
    pub(super) fn scopes(&self) -> Vec<String> {
        self.received.0.scopes.lock().unwrap().clone()
    }

    /// Returns the first span for which `is_it` holds, when it has arrived.
    pub(super) async fn first(&self, what: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        let found = async {
            loop {
                let grown = self.received.0.grown.notified();
                if let Some(span) = self.spans().into_iter().find(&is_it) {
                    return span;
                }
                grown.await;
            }
        };
        let names = || {
            self.spans()
                .iter()
                .map(|span| span.name.clone())
                .collect::<Vec<_>>()
        };
        tokio::time::timeout(TIMEOUT, found)
            .await
            .unwrap_or_else(|_| panic!("no {what} among {:?}", names()))
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scope = request
            .metadata()
            .get("x-scope")
            .map(|value| value.to_str().unwrap().to_owned());
        self.0.scopes.lock().unwrap().extend(scope);
        for resource in request.into_inner().resource_spans {
            let service = texts(resource.resource.unwrap().attributes)
                .remove("service.name")
                .unwrap();
            let spans = resource
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans);
            self.0.spans.lock().unwrap().extend(spans.map(|span| {
                Span {
                    service: service.clone(),
                    kind: span.kind(),
                    failed: span.status.as_ref().is_some_and(|status| status.code == 2),
                    name: span.name,
                    trace_id: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    links: span
                        .links
                        .iter()
                        .map(|link| format!("{}-{}", hex(&link.trace_id), hex(&link.span_id)))
                        .collect(),
                    attributes: texts(span.attributes),
                }
            }));
        }
        self.0.grown.notify_waiters();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .into_iter()
        .map(|pair| {
            (
                pair.key,
                pair.value.and_then(|value| value.value).map(text).unwrap(),
            )
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
