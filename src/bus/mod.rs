//! NATS and `JetStream`: implements the broker's ports.
//!
//! `JetStream` dispatches and fans out; it never decides who owns a session, and nothing here asks it to. In the flow: `alerts` puts
//! an alert into the queue, `claims` takes it out, `feed` publishes what the store committed, `follow` shows it.
//! This module may know the ports and the domain types; it knows no database, no model and no tool.

mod alerts;
mod claims;
mod connection;
mod control;
mod cursor;
mod dead_letters;
mod delivery;
mod deltas;
mod error;
mod feed;
mod follow;
mod headers;
mod names;
mod publisher;
mod pull;
mod tail;
mod topology;
mod wire;

pub use alerts::{NewAlert, Published};
pub use claims::{ClaimSettings, Claims, Fault, Flow, Job};
pub use connection::{Link, Nats, Options, Patience};
pub use control::Control;
pub use delivery::JobDelivery;
pub use error::Error;
pub use feed::{FeedSettings, JetStreamFeed};
pub use follow::{Followed, Follower, NoHistory};
pub use headers::{
    ALERT_TYPE, ALLOWED, CHAIN, DEAD_DELIVERIES, DEAD_DETAIL, DEAD_REASON, DEAD_SEQUENCE, DEAD_SUBJECT, FINGERPRINT,
    FORCE, RETRY_OF, RUNBOOK_URL, SESSION_ID, TITLE, TRACEPARENT,
};
pub use names::{
    ALERTS, CONTROL, DEAD_LETTERS, Priority, TIMELINE, control_subject, dead_letter_subject, live_subject,
    timeline_subject, worker_subject,
};
pub use topology::{Difference, Ensured, TopologySettings};
pub use wire::MAX_EVENT_BYTES;
