//! NATS and `JetStream`: implements the broker's ports.
//!
//! `JetStream` dispatches and fans out; it never decides who owns a session, and nothing here asks it to. In the flow: `alerts` puts
//! an alert into the queue, `claims` takes it out, `feed` publishes what the store committed, `follow` shows it. Beside them:
//! `queue` and `control` for the sweeper and for requests to sessions, `stored_letters`, `position`, `presence` and
//! `server` for people.
//! This module may know the ports and the domain types; it knows no database, no model and no tool.

mod address;
mod alerts;
mod claims;
mod connection;
mod control;
mod cursor;
mod dead_letters;
mod delivery;
mod deltas;
mod divergence;
mod error;
mod feed;
mod follow;
mod follow_all;
mod headers;
mod leader;
mod names;
mod position;
mod presence;
mod publisher;
mod pull;
mod queue;
mod reader;
mod refusals;
mod seal;
mod server;
mod stored_letters;
mod tail;
mod topology;
mod wire;

pub use alerts::{NewAlert, Published};
pub use claims::{ClaimSettings, Claims, Fault, Flow, Job};
pub use connection::{Link, Nats, Options, Patience};
pub use control::ControlRequests;
pub use delivery::JobDelivery;
pub use error::Error;
pub use feed::{FeedSettings, JetStreamFeed};
pub use follow::{Followed, Follower, NoHistory};
pub use follow_all::AllFollower;
pub use headers::{
    ALERT_TYPE, ALLOWED, CHAIN, DEAD_DELIVERIES, DEAD_DETAIL, DEAD_REASON, DEAD_SEQUENCE, DEAD_SUBJECT, FINGERPRINT,
    FORCE, PARENT_ID, RETRY_OF, RUNBOOK_URL, SESSION_ID, TITLE, TRACEPARENT,
};
pub use names::{
    ALERTS, CONTROL, DEAD_LETTERS, MessageKind, Priority, Subject, TIMELINE, control_subject, dead_letter_subject,
    live_subject, timeline_subject, worker_subject,
};
pub use position::{Backlog, Position};
pub use presence::WorkerPresence;
pub use queue::JetStreamQueue;
pub use server::ServerInfo;
pub use stored_letters::{MOST_DEAD_LETTERS, StoredDeadLetter};
pub use topology::{Bound, Difference, Ensured, Examined, TopologySettings, Verdict, Weakness};
pub use wire::MAX_EVENT_BYTES;
