//! `Probes`, which decides whether this worker claims alerts: not while a service that it needs is unavailable, not
//! before the providers of models were found usable, and not while it shuts down.
//!
//! A claimed alert would only go back to the queue, and redeliveries slow a queue down more than waiting does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::delivery::dispatcher::Dispatcher;
use crate::delivery::outage::StoreCheck;
use crate::ports::{Model, Sessions};
use crate::world::World;

/// The time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// A service that does not answer within this time is unavailable.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The services without which a worker claims nothing.
pub const SERVICES: [&str; 4] = ["nats", "database", "llm-service", PROVIDERS];
/// The providers of models, which are checked at the start only.
pub const PROVIDERS: &str = "providers";

/// The state of a worker with respect to new alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Claiming,
    /// The worker claims nothing: these services are unavailable. The list is empty before the first probe.
    Paused(Vec<&'static str>),
    /// The worker claims nothing any more.
    Draining,
}

impl State {
    /// The word in the worker's status.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Claiming => "claiming",
            Self::Paused(_) => "paused",
            Self::Draining => "draining",
        }
    }

    /// The services for which the worker is paused.
    pub fn unavailable(&self) -> &[&'static str] {
        match self {
            Self::Paused(services) => services,
            Self::Claiming | Self::Draining => &[],
        }
    }
}

/// Probes broker, store and LLM service every two seconds.
#[derive(Debug)]
pub struct Probes<W: World, B, P> {
    pub dispatcher: Arc<Dispatcher<W>>,
    /// Whether the worker is connected to the broker.
    pub broker: B,
    /// Whether the providers of models can be called. Asked while the LLM service serves.
    pub providers: P,
    pub state: watch::Sender<State>,
    pub remedies: Remedies,
}

/// The address of each service and its remedy, for the log.
#[derive(Clone, Debug, Default)]
pub struct Remedies(pub BTreeMap<&'static str, String>);

impl Remedies {
    fn text_for(&self, services: &[&str]) -> String {
        services
            .iter()
            .filter_map(|service| self.0.get(service))
            .cloned()
            .collect::<Vec<_>>()
            .join("; ")
    }
}

impl<W: World, B, P, C> Probes<W, B, P>
where
    B: Fn() -> bool + Send + Sync,
    P: Fn() -> C + Send + Sync,
    C: Future<Output = bool> + Send,
{
    /// Probes until `end` is cancelled. A drain changes the state at once.
    pub async fn run(self, end: CancellationToken) {
        tokio::select! {
            biased;
            () = self.dispatcher.shutdown.drain.cancelled() => {}
            () = end.cancelled() => {}
            () = self.probe_forever() => {}
        }
        self.state.send_replace(State::Draining);
        end.cancelled().await;
    }

    async fn probe_forever(&self) {
        loop {
            let unavailable = self.unavailable().await;
            let now = if unavailable.is_empty() {
                State::Claiming
            } else {
                State::Paused(unavailable)
            };
            if self.state.send_replace(now.clone()) != now {
                match now {
                    State::Claiming | State::Draining => tracing::info!("claiming started"),
                    State::Paused(unavailable) => {
                        let fix = self.remedies.text_for(&unavailable);
                        tracing::warn!(
                            fix,
                            "claiming paused: {} unavailable",
                            unavailable.join(", ")
                        );
                    }
                }
            }
            tokio::time::sleep(PROBE_INTERVAL).await; // pacing of probes
        }
    }

    async fn unavailable(&self) -> Vec<&'static str> {
        let (store, model) = tokio::join!(
            tokio::time::timeout(PROBE_TIMEOUT, self.dispatcher.ports.sessions.reachable()),
            tokio::time::timeout(PROBE_TIMEOUT, self.dispatcher.ports.model.serving()),
        );
        let store = store.unwrap_or(false);
        self.dispatcher.outages.probed(if store {
            StoreCheck::Passed
        } else {
            StoreCheck::Failed
        });
        let model = model.unwrap_or(false);
        let up = [
            (self.broker)(),
            store,
            model,
            !model || (self.providers)().await,
        ];
        SERVICES
            .into_iter()
            .zip(up)
            .filter(|(_, up)| !up)
            .map(|(name, _)| name)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::Instant;

    use super::*;
    use crate::ports::{Claim, Disposition};
    use crate::testing::delivery::{DeliveryHarness, SETTLED};

    #[tokio::test(start_paused = true)]
    async fn claiming_pauses_while_a_service_is_unavailable_and_a_drain_shows_at_once() {
        let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
        let serving = &harness.scene.ports.model.serving;
        let connected = Arc::new(AtomicBool::new(true));
        let link = Arc::clone(&connected);
        let (state, mut states) = watch::channel(State::Paused(vec![]));
        let end = CancellationToken::new();
        let probes = Probes {
            dispatcher: Arc::clone(&harness.dispatcher),
            broker: move || link.load(Ordering::Relaxed),
            providers: async || true,
            state,
            remedies: Remedies::default(),
        };
        let task = tokio::spawn(probes.run(end.clone()));
        let mut is = async |expected: State, within: u64| {
            let began = Instant::now();
            let waited = states.wait_for(|state| *state == expected);
            tokio::time::timeout(Duration::from_mins(1), waited)
                .await
                .expect("the state never changed")
                .unwrap();
            assert!(
                began.elapsed() <= Duration::from_secs(within),
                "{expected:?} after {:?}",
                began.elapsed()
            );
        };
        is(State::Claiming, 0).await;
        *harness.sessions.unavailable.lock() = Some("reachable");
        is(State::Paused(vec!["database"]), 2).await;
        *serving.lock() = None;
        connected.store(false, Ordering::Relaxed);
        is(State::Paused(vec!["nats", "database", "llm-service"]), 7).await;
        *harness.sessions.unavailable.lock() = None;
        *serving.lock() = Some(false);
        connected.store(true, Ordering::Relaxed);
        is(State::Paused(vec!["llm-service"]), 7).await;
        *serving.lock() = None;
        harness.dispatcher.shutdown.drain.cancel();
        is(State::Draining, 0).await;
        assert!(!task.is_finished(), "the probes end with the other tasks");
        end.cancel();
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_after_an_outage_of_the_store_excuses_the_leases_that_expired_in_it() {
        let harness = DeliveryHarness::new(
            vec![Disposition::Opened; 2],
            vec![],
            Claim::Busy(Duration::from_secs(5)),
            SETTLED,
        );
        let (state, mut states) = watch::channel(State::Paused(vec![]));
        let dispatcher = Arc::clone(&harness.dispatcher);
        let end = CancellationToken::new();
        let remedies = Remedies::default();
        let probes = Probes {
            dispatcher,
            broker: || true,
            providers: async || true,
            state,
            remedies,
        };
        let task = tokio::spawn(probes.run(end.clone()));
        states
            .wait_for(|state| *state == State::Claiming)
            .await
            .unwrap();
        harness.deliver(b"x").await;
        *harness.sessions.unavailable.lock() = Some("reachable");
        states
            .wait_for(|state| *state == State::Paused(vec!["database"]))
            .await
            .unwrap();
        *harness.sessions.unavailable.lock() = None;
        states
            .wait_for(|state| *state == State::Claiming)
            .await
            .unwrap();
        harness.deliver(b"x").await;
        let graces = harness.sessions.outage_graces.lock().clone();
        assert!(
            graces.len() == 2 && graces[0].is_zero() && graces[1] >= PROBE_INTERVAL,
            "{graces:?}"
        );
        end.cancel();
        task.await.unwrap();
    }
}
