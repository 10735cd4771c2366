//! Requests that wait for their answers. Progress extends the time-out of a request; a request that ends without an
//! answer is cancelled at its server.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ProgressToken, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use rmcp::{Peer, RoleClient};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The time limit for a cancellation to be written. The server may be dead, so nothing waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);
/// The reasons that a server gets with a cancellation.
const TIMED_OUT: &str = "no answer in time";
const GIVEN_UP: &str = "the call was given up";

/// The time-outs of a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct RequestTimeouts {
    /// The time until the answer or a report of progress, each time anew.
    pub(in crate::client) idle: Duration,
    /// The time until the answer, however much progress is reported.
    pub(in crate::client) total: Duration,
    /// The end of `total`, or an earlier one.
    pub(in crate::client) end: Instant,
}

/// The reason why a request has no answer.
#[derive(Debug)]
pub(in crate::client) enum NoAnswer {
    /// The connection or the server reported a failure.
    Failed(ServiceError),
    /// A time-out is over.
    Timeout(Expired),
}

/// A time-out that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Expired {
    /// Neither an answer nor progress for this time.
    Idle(Duration),
    /// No answer within this time, in spite of progress.
    Total(Duration),
}

impl fmt::Display for Expired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(within) => write!(f, "no answer within {} ms", within.as_millis()),
            Self::Total(within) => write!(
                f,
                "progress, but no answer within {} ms",
                within.as_millis()
            ),
        }
    }
}

/// The requests of a connection that wait for an answer.
#[derive(Clone, Debug)]
pub(in crate::client) struct PendingCalls {
    progress: Arc<ProgressReports>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl PendingCalls {
    /// `tasks` runs the cancellations. `ended` is cancelled when no answer can arrive any more.
    pub(in crate::client) fn new(tasks: TaskTracker, ended: CancellationToken) -> Self {
        Self {
            progress: Arc::default(),
            tasks,
            ended,
        }
    }

    /// The server has reported progress of a request.
    pub(in crate::client) fn progressed(&self, token: &ProgressToken) {
        if let Some(call) = self.progress.waiting.lock().get(token) {
            call.notify_one();
        }
    }

    /// Sends a request once and waits for its answer. When this future is dropped or a time-out is over, a cancellation
    /// of the request is sent to the server.
    pub(in crate::client) async fn send(
        &self,
        peer: &Peer<RoleClient>,
        request: ClientRequest,
        timeouts: RequestTimeouts,
    ) -> Result<ServerResult, NoAnswer> {
        let RequestTimeouts { idle, total, end } = timeouts;
        let sending = peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = tokio::time::timeout_at((Instant::now() + idle).min(end), sending).await;
        let request = sent
            .map_err(|_| NoAnswer::Timeout(Expired::Idle(idle)))?
            .map_err(NoAnswer::Failed)?;
        let watch = self.progress.watch(request.progress_token.clone());
        let mut request = Unanswered {
            request: Some(request),
            tasks: self.tasks.clone(),
            reason: GIVEN_UP,
        };
        let mut expires = (Instant::now() + idle).min(end);
        let mut expired = Expired::Idle(idle);
        loop {
            tokio::select! {
                biased;
                answer = request.answer() => return answer.map_err(NoAnswer::Failed),
                () = self.ended.cancelled() => return Err(request.ends_with_its_server()),
                () = tokio::time::sleep_until(expires) => break,
                () = watch.reported.notified() => {
                    let idle_end = Instant::now() + idle;
                    expires = idle_end.min(end);
                    expired = if end <= idle_end { Expired::Total(total) } else { Expired::Idle(idle) };
                }
            }
        }
        request.reason = TIMED_OUT;
        Err(NoAnswer::Timeout(expired))
    }
}

/// The requests that wait for progress notifications.
#[derive(Debug, Default)]
struct ProgressReports {
    waiting: Mutex<HashMap<ProgressToken, Arc<Notify>>>,
}

impl ProgressReports {
    fn watch(self: &Arc<Self>, token: ProgressToken) -> Watch {
        let reported = Arc::<Notify>::default();
        let mut waiting = self.waiting.lock();
        waiting.insert(token.clone(), Arc::clone(&reported));
        Watch {
            reports: Arc::clone(self),
            token,
            reported,
        }
    }
}

/// Waits for reports about one request, until it is dropped.
struct Watch {
    reports: Arc<ProgressReports>,
    token: ProgressToken,
    reported: Arc<Notify>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reports.waiting.lock().remove(&self.token);
    }
}

/// A request without an answer. Dropping it sends a cancellation to the server.
struct Unanswered {
    /// `None` once the answer has arrived.
    request: Option<RequestHandle<RoleClient>>,
    tasks: TaskTracker,
    reason: &'static str,
}

impl Unanswered {
    /// The failure of a request whose server has ended. The server gets no cancellation.
    fn ends_with_its_server(mut self) -> NoAnswer {
        self.request = None;
        NoAnswer::Failed(ServiceError::TransportClosed)
    }

    /// Waits for the answer. Cancel safe.
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(request) = &mut self.request else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut request.rx).await;
        self.request = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let (Some(request), Ok(runtime)) = (self.request.take(), Handle::try_current()) else {
            return;
        };
        let cancelling =
            tokio::time::timeout(CANCEL_TIMEOUT, request.cancel(Some(self.reason.to_owned())));
        self.tasks.spawn_on(cancelling, &runtime);
    }
}
