//! `Timeline`, whether the timeline stream takes events: the probe finds it out, and the settler waits for it.

use tokio::sync::watch;

/// The state of the timeline stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Timeline {
    /// The stream takes events, as far as is known.
    #[default]
    Accepting,
    /// The stream takes no events, for this reason.
    Unavailable(String),
}

/// Waits until the stream takes events again after it did not. Cancel safe.
pub(crate) async fn accepts_again(state: &mut watch::Receiver<Timeline>) {
    loop {
        if state.changed().await.is_err() {
            // The probe has ended: no change will follow.
            std::future::pending::<()>().await;
        }
        if *state.borrow_and_update() == Timeline::Accepting {
            return;
        }
    }
}
