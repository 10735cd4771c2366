//! NATS and `JetStream`: implements the broker's ports.
//!
//! `JetStream` dispatches and fans out; it never decides who owns a session, and nothing here asks it to. In the flow: `alerts` puts
//! an alert into the queue, `claims` takes it out, `feed` publishes what the store committed, `follow` shows it. Beside them:
//! `queue` and `control` for the sweeper and for requests to sessions, `stored_letters`, `position`, `presence` and
//! `server` for people.
//! This module may know the ports and the domain types; it knows no database, no model and no tool.

mod address;
mod cancel_requests;
mod connection;
pub mod dead_letters;
mod error;
mod headers;
mod names;
mod presence;
pub mod queue;
mod server;
pub mod timeline;
mod topology;

pub use cancel_requests::JetStreamCancelRequests;
pub use connection::{ConnectRetry, ConnectionState, Nats, Options};
pub use dead_letters::stored::{MAX_DEAD_LETTERS, StoredDeadLetter};
pub use error::Error;
pub use headers::{
    ALERT_TYPE, ALLOWED, CHAIN, DEAD_DELIVERIES, DEAD_DETAIL, DEAD_REASON, DEAD_SEQUENCE, DEAD_SUBJECT, FINGERPRINT,
    FORCE, PARENT_ID, RETRY_OF, RUNBOOK_URL, SESSION_ID, TITLE, TRACEPARENT,
};
pub use names::{
    ALERTS, CONTROL, DEAD_LETTERS, InvalidSuffix, MessageKind, Priority, Subject, SubjectSuffix, TIMELINE,
    control_subject, dead_letter_subject, live_subject, timeline_subject, worker_subject,
};
pub use presence::WorkerPresence;
pub use queue::claims::{ClaimSettings, ClaimedJob, Claims, Flow};
pub use queue::delivery::JetStreamDelivery;
pub use queue::position::{Backlog, QueuePosition};
pub use queue::publish::{NewAlert, Published};
pub use queue::requeue::JetStreamQueue;
pub use server::ServerInfo;
pub use timeline::feed::{FeedSettings, JetStreamFeed};
pub use timeline::follow::{Follower, TimelineUpdate};
pub use timeline::follow_all::AllFollower;
pub use timeline::wire::MAX_EVENT_BYTES;
pub use topology::{Bound, Difference, TopologyChanges, TopologyReport, TopologySettings, TopologyStatus, Weakness};
