//! Sends ended spans to the collector in batches, in a background task.
//!
//! A collector that is slow or unavailable delays nothing: the queue is bounded, and a span without room is dropped and
//! counted.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::otlp::{Collector, Fault};
use super::span::EndedSpan;
use tarsy_engine::backoff::Backoff;

/// Spans that wait. An iteration has about six.
const MAX_QUEUED: usize = 4_096;
const MAX_BATCH: usize = 512;
/// The time that a span waits for others of its batch. A worker that dies loses no more than this.
const BATCH_DELAY: Duration = Duration::from_millis(500);
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    max: Duration::from_secs(5),
};
/// Requests for one batch.
const MAX_TRIES: u32 = 4;
/// The time limit for the last batches, at the end of the process.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue of ended spans.
#[derive(Clone, Debug)]
pub(super) struct SpanQueue(mpsc::Sender<EndedSpan>);

impl SpanQueue {
    /// A queue with room for this many spans.
    pub(super) fn bounded(room: usize) -> (Self, mpsc::Receiver<EndedSpan>) {
        let (sender, queued) = mpsc::channel(room);
        (Self(sender), queued)
    }

    /// Never waits: a span without room is dropped.
    pub(super) fn push(&self, span: EndedSpan) {
        if self.0.try_send(span).is_err() {
            count("queue_full", 1);
        }
    }
}

fn count(outcome: &'static str, spans: u64) {
    metrics::counter!("tarsy_trace_spans_total", "outcome" => outcome).increment(spans);
}

/// The task that sends spans.
#[derive(Debug)]
pub(super) struct ExportTask {
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl ExportTask {
    /// Needs a Tokio runtime.
    pub(super) fn start(collector: Collector) -> (SpanQueue, Self) {
        let (queue, queued) = SpanQueue::bounded(MAX_QUEUED);
        let end = CancellationToken::new();
        let exporter = Exporter {
            collector,
            queued,
            end: end.clone(),
            is_failing: false,
        };
        (
            queue,
            Self {
                end,
                task: tokio::spawn(exporter.run()),
            },
        )
    }

    /// Sends what is queued, for at most [`FLUSH_TIMEOUT`].
    pub(super) async fn flush(mut self) {
        self.end.cancel();
        if tokio::time::timeout(FLUSH_TIMEOUT, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
            tracing::warn!(
                "last spans not exported: the collector did not take them within {FLUSH_TIMEOUT:?}"
            );
        }
    }
}

struct Exporter {
    collector: Collector,
    queued: mpsc::Receiver<EndedSpan>,
    end: CancellationToken,
    /// The last request has failed, and this is logged.
    is_failing: bool,
}

impl Exporter {
    /// Exports until the end, then what is left.
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.next(&mut batch).await {
            self.export(std::mem::take(&mut batch)).await;
        }
    }

    /// Fills the batch. `false`: the process ends, and nothing is left.
    async fn next(&mut self, batch: &mut Vec<EndedSpan>) -> bool {
        let end = self.end.clone();
        tokio::select! {
            biased;
            received = self.queued.recv_many(batch, MAX_BATCH) => if received == 0 { return false },
            () = end.cancelled() => return false,
        }
        let full = async {
            while batch.len() < MAX_BATCH {
                if self.queued.recv_many(batch, MAX_BATCH - batch.len()).await == 0 {
                    return;
                }
            }
        };
        tokio::select! {
            () = full => {}
            () = sleep(BATCH_DELAY) => {} // more spans for this batch
            () = end.cancelled() => {}
        }
        true
    }

    async fn export(&mut self, batch: Vec<EndedSpan>) {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let request = self.collector.request(batch);
        let mut tries = 0;
        let sent = loop {
            let sent = self.collector.send(request.clone()).await;
            tries += 1;
            match &sent {
                Err(fault)
                    if fault.is_temporary() && tries < MAX_TRIES && !self.end.is_cancelled() =>
                {
                    self.report(Some(fault));
                    self.end
                        .run_until_cancelled(sleep(BACKOFF.delay(tries - 1)))
                        .await; // pacing of tries
                }
                Ok(_) | Err(_) => break sent,
            }
        };
        self.report(sent.as_ref().err());
        let rejected = sent.unwrap_or(spans).min(spans);
        count("exported", spans - rejected);
        count("failed", rejected);
    }

    /// Logs the first failure after a success, and the first success after a failure.
    fn report(&mut self, fault: Option<&Fault>) {
        match fault {
            Some(fault) if !self.is_failing => tracing::warn!("spans not exported: {fault}"),
            None if self.is_failing => tracing::info!("span export resumed"),
            Some(_) | None => {}
        }
        self.is_failing = fault.is_some();
    }
}
