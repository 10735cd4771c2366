//! Tests of a lease whose row is never free when all leases are renewed.

use std::time::Duration;

use crate::ports::Claim;
use crate::run::control::Control;
use crate::testing::delivery::{DeliveryHarness, LEASE, SETTLED};
use crate::worker::renewal::*;

/// Whether the lease is still good after so many seconds of renewals, and how many heartbeats were sent.
async fn locked_for(secs: u64, one: Renewal) -> (bool, usize) {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.renewal.lock() = Some(Renewal::Locked);
    *harness.sessions.renewal_of_one.lock() = one;
    let control = Control::new(
        Instant::now(),
        LEASE.mul_f64(2.0 / 3.0),
        CancellationToken::new(),
    );
    let delivery = Some(Arc::new(harness.delivery.clone()));
    let handle = RunHandle {
        lease: harness.scene.lease(),
        control: control.clone(),
        delivery,
    };
    let _registered = harness.dispatcher.runs.insert(handle);
    let renewing = LeaseRenewal(Arc::clone(&harness.dispatcher)).run(CancellationToken::new());
    tokio::select! {
        () = renewing => {}
        () = tokio::time::sleep(Duration::from_secs(secs)) => {} // paused time
    }
    (
        control.owned().is_ok(),
        harness.delivery.acknowledgements().len(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_row_is_never_free_is_renewed_by_a_statement_that_waits_for_it() {
    let renewed = Renewal::Renewed {
        last_seq: 1,
        updates: 0,
        cancel_requested: false,
    };
    assert_eq!(locked_for(95, renewed).await, (true, 10), "every 10 s");
}

#[tokio::test(start_paused = true)]
async fn without_a_renewal_for_two_thirds_of_the_lease_no_heartbeat_is_sent() {
    assert_eq!(
        locked_for(95, Renewal::Locked).await,
        (false, 2),
        "at 0 s and at 10 s"
    );
}
