//! The moods of the tool server.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::support::tool_server::{Fault, Form, Oddity, ToolServer};

/// The time between two moods.
const MOOD: Duration = Duration::from_millis(250);

const ODDITIES: [Oddity; 8] = [
    Oddity::Type(""),
    Oddity::Type("text/plain; charset=utf-8"),
    Oddity::Type("text/html"),
    Oddity::ByteOrderMark,
    Oddity::Events(": hello\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 10\n\n"),
    Oddity::Events("data: not json\n\n"),
    Oddity::Notification(400),
    Oddity::Member(r#"{"name": 7, "inputSchema": "none"}"#),
];

const FAULTS: [Fault; 8] = [
    Fault::Status(404),
    Fault::Status(408),
    Fault::Status(429),
    Fault::Status(500),
    Fault::Status(503),
    Fault::Refusal(400, r#"{"error": "the quota of the backend is used up"}"#),
    Fault::Garbage,
    Fault::Close,
];

/// Changes the form of the answers, and lets some calls fail, until the task is dropped.
pub(super) async fn misbehave(server: Arc<ToolServer>, seed: u64) {
    let mut rng = Rng::with_seed(seed ^ 0x700c);
    loop {
        server.answer_as(if rng.bool() { Form::Json } else { Form::Events });
        server.be_odd(ODDITIES[rng.usize(0..ODDITIES.len())]);
        if rng.u8(0..4) == 0 && !server.is_about_to_fail() {
            server.fail_next(&[FAULTS[rng.usize(0..FAULTS.len())]]);
        }
        if rng.u8(0..40) == 0 {
            server.forget_sessions();
        }
        tokio::time::sleep(MOOD).await; // how long a mood lasts
    }
}
