//! Says every few seconds that this worker is there, and what it does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::probes::State;
use crate::engine::ports::{Presence, WorkerStatus};
use crate::engine::run::registry::Running;
use crate::investigation::ids::WorkerId;

/// Between two announcements while nothing changes.
const EVERY: Duration = Duration::from_secs(5);

/// What stays the same of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pub worker: WorkerId,
    /// Its name for people.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Investigations that it can own at once.
    pub slots: u32,
}

/// Announces the worker every five seconds and whenever its state changes, until `end` is cancelled.
pub async fn announce<P: Presence, D>(
    presence: Arc<P>,
    identity: Identity,
    running: Arc<Running<D>>,
    (mut state, end): (watch::Receiver<State>, CancellationToken),
) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        let changed = async {
            if state.changed().await.is_err() {
                // Whoever knew the state is gone: it stays as it is.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = end.cancelled() => return,
            () = changed => ticks.reset(),
            _ = ticks.tick() => {}
        }
        let word = state.borrow_and_update().as_str();
        presence.announce(&news(&identity, &running, word));
    }
}

fn news<D>(identity: &Identity, running: &Running<D>, state: &str) -> WorkerStatus {
    WorkerStatus {
        worker_id: identity.worker,
        name: identity.name.clone(),
        version: identity.version.clone(),
        slots: identity.slots,
        sessions: running.all().iter().map(|run| run.lease.session_id).collect(),
        state: state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::Instant;
    use uuid::Uuid;

    use super::*;
    use crate::engine::ports::Claim;
    use crate::engine::run::control::Control;
    use crate::engine::run::registry::Run;
    use crate::engine::testing::delivery::{Desk, LEASE, SETTLED, Told, until};
    use crate::engine::testing::lock;

    #[derive(Debug, Default)]
    struct Board(Mutex<Vec<(Instant, WorkerStatus)>>);

    impl Presence for Board {
        fn announce(&self, worker: &WorkerStatus) {
            lock(&self.0).push((Instant::now(), worker.clone()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_says_every_five_seconds_and_at_every_change_what_it_does() {
        let desk = Desk::new(vec![], vec![], Claim::Unknown, SETTLED);
        let running = Arc::clone(&desk.dispatcher.running);
        let control = Control::new(Instant::now(), LEASE, CancellationToken::new());
        let delivery = Arc::new(Told::default());
        let _entered = running.insert(Run { lease: desk.scene.lease(), control, delivery });
        let board = Arc::new(Board::default());
        let worker = WorkerId(Uuid::from_u128(1));
        let (name, version) = ("w1".to_owned(), "0.1.0".to_owned());
        let identity = Identity { worker, name, version, slots: 4 };
        let (state, states) = watch::channel(State::Claiming);
        let (began, end) = (Instant::now(), CancellationToken::new());
        let task = tokio::spawn(announce(
            Arc::clone(&board),
            identity,
            Arc::clone(&desk.dispatcher.running),
            (states, end.clone()),
        ));
        until(|| lock(&board.0).len() == 2).await;
        tokio::time::advance(Duration::from_millis(1500)).await;
        state.send_replace(State::Paused(vec!["database"]));
        until(|| lock(&board.0).len() == 3).await;
        state.send_replace(State::Draining);
        drop(state);
        until(|| lock(&board.0).len() == 5).await;
        end.cancel();
        task.await.unwrap();

        let told = lock(&board.0).clone();
        let when: Vec<(u64, &str)> =
            told.iter().map(|(at, news)| ((*at - began).as_secs(), news.state.as_str())).collect();
        assert_eq!(when, [(0, "claiming"), (5, "claiming"), (6, "paused"), (6, "draining"), (11, "draining")]);
        let news = WorkerStatus {
            worker_id: WorkerId(Uuid::from_u128(1)),
            name: "w1".to_owned(),
            version: "0.1.0".to_owned(),
            slots: 4,
            sessions: vec![desk.scene.session],
            state: "claiming".to_owned(),
        };
        assert_eq!(told[0].1, news);
    }
}
