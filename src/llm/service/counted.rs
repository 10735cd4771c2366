//! Counts one request, however it ends.

use tokio::time::Instant;

use super::reply::Reply;

/// A request that is being answered; counted as ended when it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    reply: Reply,
    backend: &'static str,
    began: Instant,
}

impl Counted {
    /// `backend` is the name of one that exists; `None` stands for any other word that a client sent.
    pub(super) fn begin(reply: Reply, backend: Option<&'static str>) -> Self {
        metrics::gauge!("tarsy_llm_requests_in_flight").increment(1);
        Self { reply, backend: backend.unwrap_or("unknown"), began: Instant::now() }
    }

    /// Where the answer goes.
    pub(super) fn reply(&self) -> &Reply {
        &self.reply
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let (backend, outcome) = (self.backend, self.reply.outcome().unwrap_or("abandoned"));
        let took = self.began.elapsed().as_secs_f64();
        metrics::gauge!("tarsy_llm_requests_in_flight").decrement(1);
        metrics::counter!("tarsy_llm_requests_total", "backend" => backend, "outcome" => outcome).increment(1);
        metrics::histogram!("tarsy_llm_request_duration_seconds", "backend" => backend).record(took);
    }
}
