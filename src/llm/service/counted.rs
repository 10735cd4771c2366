//! Counts each request, whatever its end.

use tokio::time::Instant;

use super::writer::ResponseWriter;

/// A request in flight. Dropping it counts the request as ended.
#[derive(Debug)]
pub(super) struct CountedRequest {
    pub(super) writer: ResponseWriter,
    backend: &'static str,
    began: Instant,
}

impl CountedRequest {
    /// `backend` is the name of an existing backend; `None` stands for any other name that a client sent.
    pub(super) fn begin(writer: ResponseWriter, backend: Option<&'static str>) -> Self {
        metrics::gauge!("tarsy_llm_requests_in_flight").increment(1);
        Self { writer, backend: backend.unwrap_or("unknown"), began: Instant::now() }
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        let (backend, outcome) = (self.backend, self.writer.outcome().unwrap_or("abandoned"));
        let took = self.began.elapsed().as_secs_f64();
        metrics::gauge!("tarsy_llm_requests_in_flight").decrement(1);
        metrics::counter!("tarsy_llm_requests_total", "backend" => backend, "outcome" => outcome).increment(1);
        metrics::histogram!("tarsy_llm_request_duration_seconds", "backend" => backend).record(took);
    }
}
