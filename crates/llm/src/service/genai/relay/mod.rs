//! A relay between the crate `genai` and a provider: it repairs the bytes of an answer before the crate reads them.
//!
//! The crate opens its own connections and has no place for another reader, and it loses what is not as documented: a
//! whole answer in one JSON body, a text after a byte order mark, half a letter. So it sends its request to a socket
//! of this process, which accepts one connection. The request is passed to the provider unchanged, except for Vertex
//! AI (`form.rs`); the events of its answer come back in the form of the interface (`normal/`). What failed is kept
//! here, in the provider's words.

mod form;
mod normal;

use parking_lot::Mutex;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use ::genai::ServiceTarget;
use ::genai::resolver::{AuthData, Endpoint};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, TRANSFER_ENCODING,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

pub(super) use self::form::RequestForm;
use self::normal::Normal;
use super::fault;
use super::target::Api;
use crate::service::provider::events::Events;
use crate::service::provider::key::ApiKey;
use crate::service::provider::{ProviderError, http};

/// The rest of a longer error is not read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// A longer answer in one JSON body is not read.
const MAX_WHOLE_BYTES: usize = 32 * 1024 * 1024;
/// A comment, so that the crate does not take a part of an event for silence.
const COMMENT: &[u8] = b": \n\n";
const NAME: &str = "http://relay.invalid";

/// A connection for one request.
#[derive(Debug)]
pub(super) struct Relay {
    failure: Failure,
    _task: AbortOnDropHandle<()>,
}

/// The interface of the provider, and the form in which it wants a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    pub(super) api: Api,
    pub(super) form: RequestForm,
}

/// The first failure of the relay.
type Failure = Arc<Mutex<Option<ProviderError>>>;

/// The way of a request from the crate to the provider.
#[derive(Debug)]
pub(super) struct Route {
    /// `None` for a request that goes to the provider directly.
    pub(super) relay: Option<Relay>,
    pub(super) client: reqwest::Client,
    pub(super) target: ServiceTarget,
}

impl Relay {
    /// Whether the crate reads server-sent events of this interface.
    pub(super) fn fits(api: Api) -> bool {
        match api {
            Api::Chat | Api::Messages | Api::Responses => true,
            Api::Ollama | Api::Converse => false,
        }
    }

    /// Starts a relay to the provider at `target`.
    ///
    /// # Errors
    /// `internal` when the socket cannot be opened.
    pub(super) fn start(
        interface: Interface,
        target: &ServiceTarget,
        key: Option<&ApiKey>,
    ) -> Result<Route, ProviderError> {
        let fault =
            |reason: &str| ProviderError::internal(format!("relay to the provider: {reason}"));
        let base = Url::parse(target.endpoint.base_url())
            .map_err(|_error| fault("the address is none"))?;
        let origin = base
            .join("/")
            .map_err(|_error| fault("the address has no host"))?;
        let (listener, path) = listen().map_err(|error| fault(&error.to_string()))?;
        let client = http::socket_client(path.clone())?;
        let failure = Failure::default();
        let upstream = Upstream {
            interface,
            origin,
            key: key.cloned(),
            client: http::client()?,
            failure: Arc::clone(&failure),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(serve(listener, path, upstream)));
        let target = relayed(target).ok_or_else(|| fault("the address has no path"))?;
        Ok(Route {
            relay: Some(Self {
                failure,
                _task: task,
            }),
            client,
            target,
        })
    }

    /// The reason why the answer is not whole, in the words of the provider.
    pub(super) fn failure(&self) -> Option<ProviderError> {
        self.failure.lock().clone()
    }
}

/// A target whose host is the socket.
fn relayed(target: &ServiceTarget) -> Option<ServiceTarget> {
    let moved = |url: &str| {
        let url = Url::parse(url).ok()?;
        let query = url
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        Some(format!("{NAME}{}{query}", url.path()))
    };
    let auth = match &target.auth {
        AuthData::RequestOverride { url, headers } => AuthData::RequestOverride {
            url: moved(url)?,
            headers: headers.clone(),
        },
        AuthData::FromEnv(_) | AuthData::Key(_) | AuthData::MultiKeys(_) | AuthData::None => {
            target.auth.clone()
        }
    };
    Some(ServiceTarget {
        endpoint: Endpoint::from_owned(moved(target.endpoint.base_url())?),
        auth,
        model: target.model.clone(),
    })
}

/// A socket that is in no folder: its name is a random one, and it ends with this process.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn listen() -> std::io::Result<(UnixListener, PathBuf)> {
    let path = PathBuf::from(format!("\0tarsy-relay-{}", uuid::Uuid::new_v4().simple()));
    Ok((UnixListener::bind(&path)?, path))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn listen() -> std::io::Result<(UnixListener, PathBuf)> {
    let path = std::env::temp_dir().join(format!("tarsy-{}", uuid::Uuid::new_v4().simple()));
    Ok((UnixListener::bind(&path)?, path))
}

/// Removes the file of a socket; one without a folder has none.
async fn remove(path: PathBuf) {
    if path.is_absolute() {
        tokio::fs::remove_file(path).await.ok();
    }
}

/// Accepts the connection of the crate and answers its request.
async fn serve(listener: UnixListener, path: PathBuf, upstream: Upstream) {
    let accepted = accept(&listener).await;
    // The relay is for one request: no other connection is accepted, and its name disappears.
    drop(listener);
    remove(path).await;
    let Some(stream) = accepted else { return };
    let answer = service_fn(move |request| {
        let upstream = upstream.clone();
        async move { Ok::<_, Infallible>(upstream.answer(request).await) }
    });
    // The crate closes the connection when it has read enough.
    http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await
        .ok();
}

/// The connection of this process. That of another one on the same machine is closed.
async fn accept(listener: &UnixListener) -> Option<UnixStream> {
    let own = std::process::id();
    loop {
        let (stream, _) = listener.accept().await.ok()?;
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
        if peer.is_none_or(|peer| u32::try_from(peer) == Ok(own)) {
            return Some(stream);
        }
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// The provider to which requests are passed.
#[derive(Clone, Debug)]
struct Upstream {
    interface: Interface,
    /// Scheme, host and port.
    origin: Url,
    key: Option<ApiKey>,
    client: reqwest::Client,
    failure: Failure,
}

impl Upstream {
    /// The answer of the provider; an empty one if it failed.
    async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let body = match self.send(request).await {
            Ok(response) => RelayedBody::new(response, self).into_body(),
            Err(error) => {
                fail(&self.failure, error);
                Full::default().boxed()
            }
        };
        let mut response = Response::new(body);
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    async fn send(&self, request: Request<Incoming>) -> Result<reqwest::Response, ProviderError> {
        let (mut parts, body) = request.into_parts();
        // Not joined: a path that begins with two slashes would name another host.
        let mut url = self.origin.clone();
        url.set_path(parts.uri.path());
        url.set_query(parts.uri.query());
        // The client for the provider sets those that describe its own connection.
        for name in [HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING] {
            parts.headers.remove(name);
        }
        let body = body
            .collect()
            .await
            .map_err(|_error| ProviderError::internal("the request could not be read"))?
            .to_bytes();
        let body = self.interface.form.written(body)?;
        let sent = self
            .client
            .request(parts.method, url)
            .headers(parts.headers)
            .body(body)
            .send()
            .await;
        let mut response = sent.map_err(http::unavailable)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let text = beginning(&mut response).await;
        let text = String::from_utf8_lossy(&text);
        Err(fault::of_response(
            response.status().as_u16(),
            &text,
            response.headers(),
            self.key.as_ref(),
        ))
    }
}

/// The first bytes of an error's body, as far as they arrive.
async fn beginning(response: &mut reqwest::Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_ERROR_BYTES
        && let Ok(Some(piece)) = response.chunk().await
    {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

fn fail(failure: &Failure, error: ProviderError) {
    // The first failure is the cause of the others.
    failure.lock().get_or_insert(error);
}

/// The body of a response on its way to the crate.
#[derive(Debug)]
struct RelayedBody {
    response: reqwest::Response,
    upstream: Upstream,
    events: Events,
    normal: Normal,
    /// Whether the answer is one JSON value, which ends with its body.
    whole: Option<Vec<u8>>,
    has_ended: bool,
}

impl RelayedBody {
    fn new(response: reqwest::Response, upstream: Upstream) -> Self {
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let is_whole = kind.to_ascii_lowercase().starts_with("application/json");
        Self {
            events: Events::default(),
            normal: Normal::new(upstream.interface.api),
            whole: is_whole.then(Vec::new),
            has_ended: false,
            response,
            upstream,
        }
    }

    fn into_body(self) -> Body {
        let pieces = stream::unfold(self, |mut answer| async move {
            let piece = answer.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(piece))), answer))
        });
        StreamBody::new(pieces).boxed()
    }

    /// The next bytes for the crate; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if self.has_ended {
            return None;
        }
        let piece = match self.response.chunk().await {
            Ok(piece) => piece,
            Err(error) => {
                // What arrived before counts, and the end is missing.
                self.has_ended = true;
                fail(&self.upstream.failure, http::unavailable(error));
                return None;
            }
        };
        self.has_ended = piece.is_none();
        let written = self.written(piece).unwrap_or_else(|error| {
            fail(&self.upstream.failure, error);
            self.has_ended = true;
            Vec::new()
        });
        let is_silent = written.is_empty() && !self.has_ended;
        Some(if is_silent { COMMENT.to_vec() } else { written })
    }

    fn written(&mut self, piece: Option<Bytes>) -> Result<Vec<u8>, ProviderError> {
        let bytes = match (piece, self.whole.take()) {
            (Some(piece), Some(mut whole)) => {
                whole.extend_from_slice(&piece);
                // Some servers give their events this type, too.
                if whole
                    .first()
                    .is_some_and(|first| !b"{[ \r\n\t\xEF".contains(first))
                    || whole.len() > MAX_WHOLE_BYTES
                {
                    whole
                } else {
                    self.whole = Some(whole);
                    return Ok(Vec::new());
                }
            }
            (None, Some(whole)) => {
                return self
                    .normal
                    .whole(&String::from_utf8_lossy(&whole))
                    .map_err(|reported| self.error(reported));
            }
            (Some(piece), None) => piece.to_vec(),
            (None, None) => {
                self.events.end();
                Vec::new()
            }
        };
        self.events.push(&bytes)?;
        let mut written = Vec::new();
        while let Some(event) = self.events.next() {
            match self.normal.event(&event) {
                Ok(event) => written.extend_from_slice(event.as_bytes()),
                Err(reported) => {
                    // The crate gets what came before.
                    fail(&self.upstream.failure, self.error(reported));
                    self.has_ended = true;
                    break;
                }
            }
        }
        Ok(written)
    }

    fn error(&self, reported: serde_json::Value) -> ProviderError {
        fault::of_event(&reported, self.upstream.key.as_ref())
    }
}
