//! NATS and `JetStream`: implements the broker's ports.
//!
//! `JetStream` dispatches and fans out; it never decides which worker owns a session. The way of the data:
//!
//! 1. `connection` connects to the servers; `topology` creates and verifies streams and consumers.
//! 2. `queue` publishes an alert, and a worker claims it there.
//! 3. `timeline` publishes the events that the store has committed, and watchers follow them.
//! 4. `dead_letters` keeps the alerts that were given up.
//!
//! Further modules: `cancel_requests` for running sessions; `people` for what people decide; `presence`, `server` and
//! `permissions` for people; `stream` reads streams for all. This module may know the ports and the domain types; it
//! knows no database, no model and no tool.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod names;
mod headers;
mod difference;
mod cause;
mod error;
mod address;
mod credentials;
mod connection;
mod topology;
mod stream;
pub mod queue;
pub mod timeline;
pub mod dead_letters;
mod cancel_requests;
mod people;
mod presence;
mod system_reports;
mod server;
pub mod permissions;

pub use cancel_requests::JetStreamCancelRequests;
pub use connection::{ConnectRetry, ConnectionState, Nats, Options};
pub use credentials::{
    ClientCertificate as NatsCertificate, Credentials as NatsCredentials, LoginSource,
};
pub use dead_letters::stored::{MAX_DEAD_LETTERS, StoredDeadLetter};
pub use error::{Error, JetStreamOff};
pub use headers::{
    ALERT_TYPE, ALLOWED, ASKED_BY, CHAIN, CONTENT_ENCODING, CONTENT_TYPE, DEAD_DELIVERIES,
    DEAD_DETAIL, DEAD_REASON, DEAD_SEQUENCE, DEAD_SUBJECT, FINGERPRINT, FORCE, LEFT_OUT, PARENT_ID,
    PART, RETRY_OF, RUNBOOK_URL, SESSION_ID, SOURCE, TENANT, THREAD, TITLE, TOOLS, TRACEPARENT,
};
pub use names::{
    ALERTS, CONTROL, DEAD_LETTERS, InvalidSuffix, MessageKind, PEOPLE, Priority, SLACK, Subject,
    SubjectSuffix, TIMELINE, control_subject, dead_letter_subject, live_subject, system_subject,
    timeline_subject, worker_subject,
};
pub use people::{ChannelKeys, JetStreamPeople, NewPeopleMessage, PeoplePublished, SIGNATURE};
pub use queue::claims::{ClaimSettings, ClaimedJob, Claims, Flow};
pub use queue::delivery::JetStreamDelivery;
pub use queue::monitor::QueueMonitor;
pub use queue::position::{Backlog, QueuePosition};
pub use queue::publish::{NewAlert, Published};
pub use queue::queued::{QueuedMessage, Search};
pub use server::ServerInfo;
pub use system_reports::MAX_SYSTEM_REPORT_BYTES;
pub use timeline::feed::{FeedSettings, JetStreamFeed};
pub use timeline::follow::{Follower, TimelineUpdate};
pub use timeline::follow_all::AllFollower;
pub use timeline::wire::MAX_EVENT_BYTES;
pub use topology::{
    CopyBehind, Difference, PeopleStream, StreamCopies, TopologyChanges, TopologyReport,
    TopologySettings, TopologyStatus, Weakness,
};
