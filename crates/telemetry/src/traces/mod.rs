//! Traces: the spans of an investigation are exported over OTLP if the environment names a collector.
//!
//! `recorder` is the layer of `tracing` that gives each span its span context, `export` sends ended spans to the
//! collector. Without a collector the span contexts only appear in the logs.

mod settings;
mod pairs;
mod sampler;
mod span;
mod layer;
mod export;
mod otlp;
mod authorities;
#[cfg(test)]
mod tests;

use self::export::ExportTask;
use self::layer::Export;
pub use self::layer::TraceLayer;
use self::otlp::Collector;
pub use self::settings::Settings;
use crate::process_mask::ProcessMask;
use tarsy_config::{Faults, environment_fault};

/// The export of a process; without a collector it does nothing.
#[derive(Debug, Default)]
pub struct Traces(Option<ExportTask>);

impl Traces {
    /// Starts the export, and returns the layer that records the spans. Their texts pass `mask`. Needs a runtime.
    ///
    /// # Errors
    /// When the file of certificates cannot be used.
    pub fn start(
        settings: Option<Settings>,
        mask: ProcessMask,
    ) -> Result<(TraceLayer, Self), Faults> {
        let Some(settings) = settings else {
            return Ok((TraceLayer::default(), Self::default()));
        };
        let collector = Collector::new(&settings, mask)
            .map_err(|problem| environment_fault("OTEL_EXPORTER_OTLP_CERTIFICATE", problem))?;
        let (queue, task) = ExportTask::start(collector);
        let recorder = TraceLayer::exporting(Export {
            queue,
            sampler: settings.sampler,
            captures_content: settings.captures_content,
        });
        Ok((recorder, Self(Some(task))))
    }

    /// Sends the last spans, for two seconds at most.
    pub async fn flush(self) {
        if let Some(task) = self.0 {
            task.flush().await;
        }
    }
}
