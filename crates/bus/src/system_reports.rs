//! Reports of workers about themselves, on core NATS: published by workers, collected by web servers. They are never
//! stored.

use futures_util::future::ready;
use futures_util::{FutureExt as _, Stream, StreamExt as _};

use super::connection::Nats;
use super::error::Error;
use super::names::{ALL_SYSTEMS, system_subject};
use tarsy_reports::system::SystemReport;

/// Bytes of a report. The text of a larger configuration is left out.
pub const MAX_SYSTEM_REPORT_BYTES: usize = 256 * 1024;

/// Servers and providers of a report; one with more is dropped.
const MAX_ENTRIES: usize = 256;

impl Nats {
    /// Publishes a report, unless the broker is not connected or busy: then the next one says the same.
    pub fn publish_system(&self, report: &SystemReport) {
        if !self.connection_state().connected {
            return;
        }
        let Some(payload) = payload(report) else {
            return;
        };
        let publish = self
            .client
            .publish(system_subject(report.worker_id), payload.into());
        match publish.now_or_never() {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!(%error, "system report dropped"),
            None => tracing::debug!("system report dropped: connection busy"),
        }
    }

    /// The report of every worker, as it is published.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn system_reports(
        &self,
    ) -> Result<impl Stream<Item = SystemReport> + Send + Unpin + use<>, Error> {
        let reports = self.client.subscribe(ALL_SYSTEMS).await?;
        Ok(reports.filter_map(|message| {
            let is_small = message.payload.len() <= MAX_SYSTEM_REPORT_BYTES;
            let report = is_small.then(|| serde_json::from_slice(&message.payload).ok());
            let report = report.flatten().filter(|report: &SystemReport| {
                // Small entries need more memory than bytes on the wire.
                system_subject(report.worker_id) == message.subject.as_str()
                    && report.servers.len() <= MAX_ENTRIES
                    && report.providers.len() <= MAX_ENTRIES
            });
            ready(report)
        }))
    }
}

/// The report as JSON; without the text of its configuration if it is too large with it.
fn payload(report: &SystemReport) -> Option<Vec<u8>> {
    let whole = serde_json::to_vec(report).ok()?;
    if whole.len() <= MAX_SYSTEM_REPORT_BYTES {
        return Some(whole);
    }
    let mut smaller = report.clone();
    smaller.config.text = None;
    let smaller = serde_json::to_vec(&smaller).ok()?;
    (smaller.len() <= MAX_SYSTEM_REPORT_BYTES).then_some(smaller)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use tarsy_core::ids::WorkerId;
    use tarsy_reports::system::ShownConfig;

    /// A report whose configuration has a text of this size.
    fn of_size(bytes: usize) -> SystemReport {
        SystemReport {
            worker_id: WorkerId(Uuid::from_u128(1)),
            name: "w1".to_owned(),
            version: "0.1.0".to_owned(),
            uptime_ms: 1,
            config: ShownConfig {
                text: Some("x".repeat(bytes)),
                bytes: 7,
                hash: "a".to_owned(),
            },
            servers: Vec::new(),
            providers: Vec::new(),
        }
    }

    #[test]
    fn a_report_that_is_too_large_has_no_text_of_its_configuration() {
        for (bytes, has_text) in [(1_000, true), (MAX_SYSTEM_REPORT_BYTES, false)] {
            let sent = payload(&of_size(bytes)).unwrap();
            assert!(sent.len() <= MAX_SYSTEM_REPORT_BYTES);
            let read: SystemReport = serde_json::from_slice(&sent).unwrap();
            assert_eq!(
                (read.config.text.is_some(), read.config.bytes),
                (has_text, 7)
            );
        }
    }
}
