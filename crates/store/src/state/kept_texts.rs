//! `KeptTexts`, the texts of skills that this process has stored lately.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use tarsy_core::skills::{SkillText, TextHash};

/// The time for which a stored text is not sent again. It is short enough for a text that a failover loses.
const MAX_AGE: Duration = Duration::from_secs(3_600);

/// The hashes with the times at which they were stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptTexts(Arc<Mutex<HashMap<TextHash, Instant>>>);

impl KeptTexts {
    /// Removes the texts that are stored surely.
    pub(crate) fn missing(&self, mut texts: Vec<SkillText>) -> Vec<SkillText> {
        let mut kept = self.0.lock();
        kept.retain(|_, at| at.elapsed() < MAX_AGE);
        texts.retain(|text| !kept.contains_key(&text.hash));
        texts
    }

    pub(crate) fn add(&self, hashes: impl IntoIterator<Item = TextHash>) {
        let now = Instant::now();
        let new = hashes.into_iter().map(|hash| (hash, now));
        self.0.lock().extend(new);
    }
}
