//! Counts the concurrent calls of each provider.
//!
//! The limit protects a provider's quota, and this process: a call holds its conversation in memory. A call over the
//! limit is refused at once, because the worker can return its session to the queue, and another replica may have room.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::labels::ProviderLabel;
use tarsy_config::Concurrency;

/// The permits of the calls that run.
#[derive(Debug)]
pub(super) struct Running {
    limits: Concurrency,
    by_provider: Mutex<BTreeMap<&'static str, Arc<Semaphore>>>,
}

impl Running {
    pub(super) fn new(limits: Concurrency) -> Self {
        Self {
            limits,
            by_provider: Mutex::default(),
        }
    }

    /// The permit of a call, which counts as running until the permit is dropped.
    ///
    /// # Errors
    /// When as many calls of its provider run as the limit allows. The error is a text for the client.
    pub(super) fn begin(&self, provider: ProviderLabel) -> Result<OwnedSemaphorePermit, String> {
        let limit = self.limits.for_provider(provider.word);
        let permits = usize::try_from(limit).unwrap_or(Semaphore::MAX_PERMITS);
        let semaphore = {
            let mut all = self.by_provider.lock();
            Arc::clone(
                all.entry(provider.word)
                    .or_insert_with(|| Arc::new(Semaphore::new(permits))),
            )
        };
        semaphore.try_acquire_owned().map_err(|_error| {
            let key = if self.limits.by_provider.contains_key(provider.word) { provider.word } else { "default" };
            format!(
                "provider {}: {limit} calls run in this service, as many as llm_service.concurrency.{key} allows",
                provider.word
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_has_its_own_limit_and_the_refusal_names_it() {
        let limits = Concurrency {
            default: 1,
            by_provider: BTreeMap::from([("google".to_owned(), 2)]),
        };
        let running = Running::new(limits);
        let google = ProviderLabel {
            word: "google",
            gen_ai: "gcp.gemini",
        };
        let openai = ProviderLabel {
            word: "openai",
            gen_ai: "openai",
        };
        let permits = [
            running.begin(google).unwrap(),
            running.begin(google).unwrap(),
            running.begin(openai).unwrap(),
        ];
        let refused = |provider| running.begin(provider).unwrap_err();
        assert_eq!(
            refused(google),
            "provider google: 2 calls run in this service, as many as llm_service.concurrency.google allows"
        );
        assert!(
            refused(openai).ends_with("llm_service.concurrency.default allows"),
            "{}",
            refused(openai)
        );
        drop(permits);
        assert!(running.begin(google).is_ok() && running.begin(openai).is_ok());
    }
}
