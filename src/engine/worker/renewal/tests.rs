//! A lease whose row is never free when it is renewed with the others.

use crate::engine::ports::Claim;
use crate::engine::run::control::Control;
use crate::engine::testing::delivery::{Desk, LEASE, SETTLED};
use crate::engine::testing::lock;
use crate::engine::worker::renewal::*;

/// Whether the run may still begin something after so many seconds of renewals, and how often the broker heard of it.
async fn locked_for(secs: u64, one: Renewal) -> (bool, usize) {
    let desk = Desk::new(vec![], vec![], Claim::Unknown, SETTLED);
    *lock(&desk.sessions.renewal) = Some(Renewal::Locked);
    *lock(&desk.sessions.renewal_of_one) = one;
    let control = Control::new(Instant::now(), LEASE.mul_f64(2.0 / 3.0), CancellationToken::new());
    let running = Arc::new(Running::default());
    let delivery = Arc::new(desk.told.clone());
    let _entered = running.insert(Run { lease: desk.scene.lease(), control: control.clone(), delivery });
    let parts = (Arc::clone(&desk.sessions), Arc::default());
    let feed = Arc::clone(&desk.scene.ports.feed);
    let renewing = renew_leases(parts, Arc::clone(&running), feed, (LEASE, CancellationToken::new()));
    tokio::select! {
        () = renewing => {}
        () = tokio::time::sleep(Duration::from_secs(secs)) => {} // paused time
    }
    (control.owned().is_ok(), lock(&desk.told.0).len())
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_row_is_never_free_is_renewed_by_a_statement_that_waits_for_it() {
    let renewed = Renewal::Renewed { last_seq: 1, cancel_requested: false };
    assert_eq!(locked_for(95, renewed).await, (true, 10), "every 10 s");
}

#[tokio::test(start_paused = true)]
async fn without_a_renewal_for_two_thirds_of_the_lease_the_broker_hears_of_no_progress() {
    assert_eq!(locked_for(95, Renewal::Locked).await, (false, 2), "at 0 s and at 10 s");
}
