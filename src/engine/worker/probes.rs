//! Whether this worker takes work: not while something that it needs is unavailable, and not while it shuts down.
//!
//! A claimed alert would only go back to the queue, and a queue full of returns is slower than one that waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::outage::Outages;
use crate::engine::ports::{Model, Sessions};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// Who does not answer for so long is unavailable.
const BOUND: Duration = Duration::from_secs(5);

/// What a worker does about new alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It takes them.
    Claiming,
    /// It takes none: these are unavailable.
    Paused(Vec<&'static str>),
    /// It takes none any more.
    Draining,
}

impl State {
    /// The word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Claiming => "claiming",
            Self::Paused(_) => "paused",
            Self::Draining => "draining",
        }
    }
}

/// What a worker needs.
#[derive(Debug)]
pub struct Probes<S, M, B> {
    /// Alerts and leases.
    pub sessions: Arc<S>,
    /// The LLM service.
    pub model: Arc<M>,
    /// Whether the connection to the broker stands.
    pub broker: B,
    /// Hears how the store is.
    pub outages: Arc<Outages>,
}

/// Looks every two seconds; says at once that the worker drains, and ends at `end`.
pub async fn probe<S: Sessions, M: Model, B: Fn() -> bool + Send + Sync>(
    probes: Probes<S, M, B>,
    state: watch::Sender<State>,
    (drain, end): (CancellationToken, CancellationToken),
) {
    let looking = async {
        loop {
            let unavailable = unavailable(&probes).await;
            let now = if unavailable.is_empty() { State::Claiming } else { State::Paused(unavailable) };
            if state.send_replace(now.clone()) != now {
                match now {
                    State::Claiming | State::Draining => tracing::info!("claims alerts"),
                    State::Paused(unavailable) => {
                        tracing::warn!("claims nothing: {} unavailable", unavailable.join(", "))
                    }
                }
            }
            tokio::time::sleep(EVERY).await; // pacing of probes
        }
    };
    tokio::select! {
        biased;
        () = drain.cancelled() => {}
        () = end.cancelled() => {}
        () = looking => {}
    }
    state.send_replace(State::Draining);
    end.cancelled().await;
}

async fn unavailable<S: Sessions, M: Model, B: Fn() -> bool>(probes: &Probes<S, M, B>) -> Vec<&'static str> {
    let (store, model) = tokio::join!(
        tokio::time::timeout(BOUND, probes.sessions.reachable()),
        tokio::time::timeout(BOUND, probes.model.serving()),
    );
    let store = store.unwrap_or(false);
    probes.outages.look(store);
    let found = [("nats", (probes.broker)()), ("database", store), ("llm-service", model.unwrap_or(false))];
    found.into_iter().filter(|(_, up)| !up).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::Instant;

    use super::*;
    use crate::engine::ports::{Claim, Disposition, ModelError, ModelRequest};
    use crate::engine::testing::delivery::{Desk, SETTLED};
    use crate::engine::testing::lock;
    use crate::investigation::execution::entry::Answer;
    use crate::investigation::timeline::DeltaKind;

    /// A service that is asked only how it is: `None` for no answer.
    #[derive(Debug)]
    struct Service(Mutex<Option<bool>>);

    impl Model for Service {
        async fn generate(
            &self,
            _request: ModelRequest,
            _deltas: impl Fn(DeltaKind, &str) + Send + Sync,
        ) -> Result<Answer, ModelError> {
            Err(ModelError::Unavailable("not asked".to_owned()))
        }

        async fn serving(&self) -> bool {
            let answer = *lock(&self.0);
            match answer {
                Some(serving) => serving,
                None => std::future::pending().await,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_claimed_while_something_is_away_and_a_drain_is_told_at_once() {
        let desk = Desk::new(vec![], vec![], Claim::Unknown, SETTLED);
        let model = Arc::new(Service(Mutex::new(Some(true))));
        let connected = Arc::new(AtomicBool::new(true));
        let link = Arc::clone(&connected);
        let broker = move || link.load(Ordering::Relaxed);
        let probes =
            Probes { sessions: Arc::clone(&desk.sessions), model: Arc::clone(&model), broker, outages: Arc::default() };
        let (state, mut states) = watch::channel(State::Paused(vec![]));
        let (drain, end) = (CancellationToken::new(), CancellationToken::new());
        let task = tokio::spawn(probe(probes, state, (drain.clone(), end.clone())));
        let mut is = async |expected: State, within: u64| {
            let began = Instant::now();
            let waited = states.wait_for(|state| *state == expected);
            tokio::time::timeout(Duration::from_mins(1), waited).await.expect("never said").unwrap();
            assert!(began.elapsed() <= Duration::from_secs(within), "{expected:?} after {:?}", began.elapsed());
        };
        is(State::Claiming, 0).await;
        *lock(&desk.sessions.unavailable) = Some("reachable");
        is(State::Paused(vec!["database"]), 2).await;
        *lock(&model.0) = None;
        connected.store(false, Ordering::Relaxed);
        is(State::Paused(vec!["nats", "database", "llm-service"]), 7).await;
        *lock(&desk.sessions.unavailable) = None;
        *lock(&model.0) = Some(false);
        connected.store(true, Ordering::Relaxed);
        is(State::Paused(vec!["llm-service"]), 7).await;
        *lock(&model.0) = None;
        drain.cancel();
        is(State::Draining, 0).await;
        assert!(!task.is_finished(), "it goes with the others");
        end.cancel();
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_after_an_outage_of_the_store_excuses_the_leases_that_ran_out_in_it() {
        let desk = Desk::new(vec![Disposition::Opened; 2], vec![], Claim::Busy(Duration::from_secs(5)), SETTLED);
        let (sessions, outages) = (Arc::clone(&desk.sessions), Arc::clone(&desk.dispatcher.outages));
        let model = Arc::new(Service(Mutex::new(Some(true))));
        let (state, mut states) = watch::channel(State::Paused(vec![]));
        let (drain, end) = (CancellationToken::new(), CancellationToken::new());
        let probes = Probes { sessions, model, broker: || true, outages };
        let task = tokio::spawn(probe(probes, state, (drain, end.clone())));
        states.wait_for(|state| *state == State::Claiming).await.unwrap();
        desk.deliver(b"x").await;
        *lock(&desk.sessions.unavailable) = Some("reachable");
        states.wait_for(|state| *state == State::Paused(vec!["database"])).await.unwrap();
        *lock(&desk.sessions.unavailable) = None;
        states.wait_for(|state| *state == State::Claiming).await.unwrap();
        desk.deliver(b"x").await;
        let excuses = lock(&desk.sessions.excuses).clone();
        assert!(excuses.len() == 2 && excuses[0].is_zero() && excuses[1] >= EVERY, "{excuses:?}");
        end.cancel();
        task.await.unwrap();
    }
}
