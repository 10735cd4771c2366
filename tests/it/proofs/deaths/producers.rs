//! The receiver: killed, and started again on its port.

use chrono::Utc;

use super::bed::Bed;
use super::{Measured, Pace};
use crate::support::figures::between;
use crate::support::http;
use crate::support::system::Setup;
use crate::support::wait::eventually;

pub(super) async fn receiver_killed(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::idle(pace, Setup::default()).await;
    bed.add_worker("w1").await;
    let mut receiver = bed
        .system
        .tarsy("receive", &["receive", "--listen", "127.0.0.1:0"]);
    let address = receiver.ready().await;
    let accepted =
        async |body: &[u8]| http::post(&address, "/alert", &[], body).await.status == 202;
    eventually("the receiver accepts an alert", async || {
        accepted(b"before").await
    })
    .await;
    receiver.kill().await;
    assert!(
        http::try_get(&address, "/alert").await.is_none(),
        "a client gets no answer, and tries again"
    );
    let at = Utc::now();
    let mut receiver = bed
        .system
        .tarsy("receive", &["receive", "--listen", &address]);
    receiver.ready().await;
    eventually("the receiver accepts an alert", async || {
        accepted(b"after").await
    })
    .await;
    let again = between(at, Utc::now());
    bed.end(1).await;
    assert_eq!(bed.system.database.number("SELECT count(*) FROM alerts"), 2);
    vec![Measured::one("it accepts alerts, after its start", again)]
}
