//! `Announcer`, which announces this worker and what it does to watchers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::probes::State;
use crate::delivery::dispatcher::Dispatcher;
use crate::ports::{MAX_LISTED_SESSIONS, Presence, WorkerStatus};
use crate::world::World;

/// The time between two announcements while the state does not change.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(5);

/// Announces the worker every five seconds and whenever its state changes.
#[derive(Debug)]
pub struct Announcer<W: World> {
    pub dispatcher: Arc<Dispatcher<W>>,
    /// The program's version.
    pub version: String,
    pub state: watch::Receiver<State>,
}

impl<W: World> Announcer<W> {
    /// Announces until `end` is cancelled.
    pub async fn run(mut self, end: CancellationToken) {
        let mut ticks = tokio::time::interval(ANNOUNCE_INTERVAL);
        let mut shown = self.state.borrow().as_str();
        let mut shown_since = Instant::now();
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                // An error means that the probes have ended: the state does not change any more.
                Ok(()) = self.state.changed() => ticks.reset(),
                _ = ticks.tick() => {}
            }
            let state = self.state.borrow().as_str();
            if state != shown {
                shown = state;
                shown_since = Instant::now();
            }
            let status = self.status(shown_since.elapsed());
            self.dispatcher.ports.presence.announce(&status);
        }
    }

    fn status(&mut self, in_state: Duration) -> WorkerStatus {
        let Dispatcher { settings, runs, .. } = &*self.dispatcher;
        let state = self.state.borrow_and_update().clone();
        let sessions = runs.sessions();
        WorkerStatus {
            worker_id: settings.worker,
            name: settings.worker_name.clone(),
            version: self.version.clone(),
            slots: settings.limits.slots,
            busy: u32::try_from(sessions.len()).unwrap_or(u32::MAX),
            sessions: sessions.into_iter().take(MAX_LISTED_SESSIONS).collect(),
            state: state.as_str().to_owned(),
            unavailable: state
                .unavailable()
                .iter()
                .map(|service| (*service).to_owned())
                .collect(),
            state_ms: u64::try_from(in_state.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ports::Claim;
    use crate::testing::FakeDelivery;
    use crate::testing::delivery::{DeliveryHarness, SETTLED, until};
    use tarsy_core::ids::WorkerId;

    #[tokio::test(start_paused = true)]
    async fn a_worker_announces_its_status_every_five_seconds_and_at_every_change() {
        let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
        let _run = harness.insert_run(FakeDelivery::default());
        let announced = Arc::clone(&harness.scene.ports.presence);
        let (state, states) = watch::channel(State::Claiming);
        let began = Instant::now();
        let end = CancellationToken::new();
        let dispatcher = Arc::clone(&harness.dispatcher);
        let version = "0.1.0".to_owned();
        let task = tokio::spawn(
            Announcer {
                dispatcher,
                version,
                state: states,
            }
            .run(end.clone()),
        );
        until(|| announced.0.lock().len() == 2).await;
        tokio::time::advance(Duration::from_millis(1500)).await;
        state.send_replace(State::Paused(vec!["database"]));
        until(|| announced.0.lock().len() == 3).await;
        state.send_replace(State::Draining);
        drop(state);
        until(|| announced.0.lock().len() == 5).await;
        end.cancel();
        task.await.unwrap();

        let announced = announced.0.lock().clone();
        let each = announced.iter();
        let states: Vec<(u64, &str, u64)> = each
            .map(|(at, status)| {
                (
                    (*at - began).as_secs(),
                    status.state.as_str(),
                    status.state_ms,
                )
            })
            .collect();
        let expected = [
            (0, "claiming", 0),
            (5, "claiming", 5000),
            (6, "paused", 0),
            (6, "draining", 0),
            (11, "draining", 5000),
        ];
        assert_eq!(states, expected);
        assert_eq!(announced[2].1.unavailable, ["database"]);
        let status = WorkerStatus {
            worker_id: WorkerId(Uuid::from_u128(1)),
            name: "w1".to_owned(),
            version: "0.1.0".to_owned(),
            slots: 4,
            sessions: vec![harness.scene.session],
            busy: 1,
            state: "claiming".to_owned(),
            unavailable: vec![],
            state_ms: 0,
        };
        assert_eq!(announced[0].1, status);
    }
}
