//! `StateApplier`, which applies the worker's state to its claims and to its readiness probe.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use tarsy_bus::Flow;
use tarsy_engine::delivery::timeline::Timeline;
use tarsy_engine::worker::probes::{PROVIDERS, SERVICES, State};
use tarsy_telemetry::http::Readiness;

/// Starts and pauses the claims, and sets what `/readyz` answers.
pub(super) struct StateApplier {
    pub(super) state: watch::Receiver<State>,
    pub(super) timeline: watch::Receiver<Timeline>,
    /// The reason why providers of models cannot be used.
    pub(super) providers: watch::Receiver<Option<String>>,
    pub(super) flow: watch::Sender<Flow>,
    pub(super) ready: watch::Sender<Readiness>,
}

impl StateApplier {
    /// Applies every change until `end` is cancelled.
    pub(super) async fn run(mut self, end: CancellationToken) {
        loop {
            self.apply();
            tokio::select! {
                () = end.cancelled() => return,
                Ok(()) = self.timeline.changed() => {}
                changed = self.state.changed() => if changed.is_err() {
                    // The probes have ended: without them the worker must not claim.
                    self.flow.send_replace(Flow::Pause);
                    end.cancelled().await;
                    return;
                },
            }
        }
    }

    fn apply(&mut self) {
        show_pauses(&self.state.borrow());
        let not_ready = |why: String| (Flow::Pause, Readiness::NotReady(why));
        let state = self.state.borrow_and_update().clone();
        let (flow, readiness) = match &state {
            State::Claiming => (Flow::Claim, readiness(&self.timeline.borrow_and_update())),
            State::Paused(unavailable) if unavailable.is_empty() => {
                not_ready("starting".to_owned())
            }
            State::Paused(unavailable) => not_ready(self.paused(unavailable)),
            State::Draining => not_ready("draining".to_owned()),
        };
        self.flow
            .send_if_modified(|present| std::mem::replace(present, flow) != flow);
        self.ready.send_replace(readiness);
    }

    /// The reason why the worker is paused. The providers are checked after all services, and their check gives the
    /// reason.
    fn paused(&self, unavailable: &[&str]) -> String {
        let mut services = unavailable.to_vec();
        services.retain(|service| *service != PROVIDERS);
        if services.is_empty() {
            let providers = self.providers.borrow().clone();
            return providers.unwrap_or_else(|| "starting".to_owned());
        }
        format!("{} unavailable", services.join(", "))
    }
}

/// Sets for each service whether the worker waits for it.
fn show_pauses(state: &State) {
    let unavailable: &[&str] = match state {
        State::Paused(unavailable) => unavailable,
        State::Claiming | State::Draining => &[],
    };
    for service in SERVICES {
        let waits = u8::from(unavailable.contains(&service));
        metrics::gauge!("tarsy_worker_paused", "service" => service).set(f64::from(waits));
    }
}

/// Investigations continue without the timeline stream, so a worker stays ready.
fn readiness(timeline: &Timeline) -> Readiness {
    match timeline {
        Timeline::Accepting => Readiness::Ready,
        Timeline::Unavailable(_) => {
            Readiness::Impaired("the timeline stream is unavailable".to_owned())
        }
    }
}
