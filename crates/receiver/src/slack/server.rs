//! Serves the paths of Slack and counts their requests.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use chrono::Utc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::events::{self, Event};
use super::{SlackQueue, SlackSettings, actions, signature};
use crate::budget::Budget;
use crate::request::{BodyLimits, read_body};
use crate::response::{Rejection, response};
use crate::server::{OVER_LIMIT, count, finish};
use tarsy_engine::trace::servers;
use tarsy_http::listener::http;

/// A larger body is none of Slack: a message has at most 50 blocks.
const MAX_BODY_BYTES: usize = 512 * 1024;
/// Slack waits for three seconds in all.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for an answer, which has to arrive within Slack's three seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(2_500);
const LIFETIME: Duration = Duration::from_secs(300);
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// Slack shows the person an error and does not repeat a click by itself.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The words of the paths in metrics and spans.
const ACTIONS: &str = "slack/actions";
const EVENTS: &str = "slack/events";

/// The part that all connections share.
#[derive(Debug)]
struct Receiver<Q> {
    settings: SlackSettings,
    budget: Budget,
    queue: Q,
}

/// Receives requests of Slack on `listener` until `stop` is cancelled, then finishes the open ones for a bounded time.
pub async fn serve<Q: SlackQueue>(
    listener: TcpListener,
    settings: SlackSettings,
    queue: Q,
    stop: CancellationToken,
) {
    let options = http::Options {
        name: "slack",
        limits: settings.limits,
        header_timeout: settings.header_timeout,
        write_timeout: http::WRITE_TIMEOUT,
        lifetime: Some(LIFETIME),
        last_request_timeout: LAST_REQUEST_TIMEOUT,
        drain_timeout: DRAIN_TIMEOUT,
        over_limit_response: OVER_LIMIT,
        open_connections: Some("tarsy_receive_connections"),
    };
    let receiver = Arc::new(Receiver {
        settings,
        budget: Budget::default(),
        queue,
    });
    http::serve(listener, options, router(receiver), stop).await;
}

fn router<Q: SlackQueue>(receiver: Arc<Receiver<Q>>) -> Router {
    Router::new()
        .route("/slack/actions", post(act::<Q>))
        .route("/slack/events", post(take_event::<Q>))
        .fallback(async || response(Err(Rejection::UnknownPath)))
        .method_not_allowed_fallback(async || response(Err(Rejection::MethodNotAllowed)))
        .with_state(receiver)
}

async fn act<Q: SlackQueue>(
    State(receiver): State<Arc<Receiver<Q>>>,
    request: Request,
) -> Response {
    let span = servers::receive(ACTIONS, None);
    let acted = in_time(receiver.act(request))
        .instrument(span.clone())
        .await;
    // Slack shows the body of an answer to the person, so there is none.
    answer(ACTIONS, &span, acted.map(|()| Body::empty()))
}

async fn take_event<Q: SlackQueue>(
    State(receiver): State<Arc<Receiver<Q>>>,
    request: Request,
) -> Response {
    let span = servers::receive(EVENTS, None);
    let taken = in_time(receiver.take_event(request))
        .instrument(span.clone())
        .await;
    answer(EVENTS, &span, taken)
}

/// The response to a request, counted.
fn answer(path: &'static str, span: &Span, answered: Result<Body, Rejection>) -> Response {
    let response = match answered {
        Ok(body) => Response::new(body),
        Err(rejection) => {
            tracing::warn!("request of Slack refused: {rejection:?}");
            response(Err(rejection))
        }
    };
    finish(span, &response);
    count(path, &response);
    response
}

impl<Q: SlackQueue> Receiver<Q> {
    async fn act(&self, request: Request) -> Result<(), Rejection> {
        let body = self.proven(request).await?;
        let Some(click) = actions::read(&self.settings, &body)? else {
            return Ok(());
        };
        let id = click.id;
        let topic = click.topic;
        self.queue.publish(click).await?;
        tracing::info!(%id, ?topic, "click of a person published");
        Ok(())
    }

    /// Publishes the question of an event; returns the body of the answer.
    async fn take_event(&self, request: Request) -> Result<Body, Rejection> {
        let body = self.proven(request).await?;
        match events::read(&self.settings, &body)? {
            Event::Challenge(challenge) => Ok(Body::from(challenge)),
            Event::Other => Ok(Body::empty()),
            Event::Question(question) => {
                let session_id = question.id;
                self.queue.ask(question).await?;
                tracing::info!(%session_id, "question of a thread published");
                Ok(Body::empty())
            }
        }
    }

    /// The body of a request that Slack has signed.
    async fn proven(&self, request: Request) -> Result<hyper::body::Bytes, Rejection> {
        let (head, body) = request.into_parts();
        let mut held = self.budget.hold();
        let limits = BodyLimits {
            bytes: MAX_BODY_BYTES,
            timeout: BODY_TIMEOUT,
        };
        let body = read_body(limits, &mut held, body).await?;
        signature::check(&self.settings.keys, &head.headers, &body, Utc::now())?;
        http::authenticated(&head.extensions);
        Ok(body)
    }
}

/// The result of a request, for which Slack does not wait long.
async fn in_time<T>(answering: impl Future<Output = Result<T, Rejection>>) -> Result<T, Rejection> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answering).await {
        Ok(answered) => answered,
        Err(_elapsed) => Err(Rejection::Unavailable {
            reason: "the queue did not answer in time".to_owned(),
            retry_after: RETRY_DELAY,
        }),
    }
}
