//! `Numbers`, the last event of a session and the last update of its alert, as far as this worker knows them.

use tokio::sync::watch;

/// The numbers of a session. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The last event that a renewal has reported.
    pub(super) event: u32,
    /// The last update of the alert.
    pub(super) update: u32,
}

/// The known numbers, for those who wait until they grow.
#[derive(Debug, Default)]
pub(super) struct KnownNumbers(watch::Sender<Numbers>);

impl KnownNumbers {
    pub(super) fn has_events(&self, last: u32) {
        self.0.send_if_modified(|known| {
            let grows = last > known.event;
            known.event = known.event.max(last);
            grows
        });
    }

    pub(super) fn has_updates(&self, last: u32) {
        self.0.send_if_modified(|known| {
            let grows = last > known.update;
            known.update = known.update.max(last);
            grows
        });
    }

    pub(super) fn updates(&self) -> u32 {
        self.0.borrow().update
    }

    /// Waits until one of the numbers is larger than that of `seen`. Cancel safe.
    pub(super) async fn grown_beyond(&self, seen: Numbers) {
        let mut known = self.0.subscribe();
        // The sender lives as long as this borrow.
        drop(
            known
                .wait_for(|known| known.event > seen.event || known.update > seen.update)
                .await,
        );
    }
}
