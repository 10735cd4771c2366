//! `Written`, the log of a test.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

/// The lines of the log of one thread.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Written {
    /// Captures the log of this thread while the guard lives.
    pub(crate) fn begin() -> (Self, DefaultGuard) {
        let written = Self::default();
        let target = written.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || target.clone());
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        (written, guard)
    }

    /// The lines with this message.
    pub(crate) fn lines(&self, message: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines()
            .filter(|line| line.contains(message))
            .map(ToOwned::to_owned)
            .collect()
    }
}
