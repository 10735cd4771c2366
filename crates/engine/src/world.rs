//! `World`, the choice of an adapter for each port, and `Ports`, the adapters of one process.

use std::fmt::Debug;
use std::sync::Arc;

use super::ports::{
    CancelRequests, Delivery, Feed, Intake, Journal, Model, Presence, Queue, Sessions, Tools,
};

/// A choice of adapters. A composition root makes it; a test makes one of fakes.
pub trait World: Debug + Send + Sync + 'static {
    type Model: Model + Debug;
    type Tools: Tools + Debug;
    type Journal: Journal + Debug;
    type Feed: Feed + Debug;
    type Sessions: Sessions + Debug;
    type Intake: Intake;
    type Delivery: Delivery + Debug;
    type Queue: Queue + Debug;
    type CancelRequests: CancelRequests + Debug;
    type Presence: Presence + Debug;
}

/// The adapters of a [`World`]. There is no delivery among them: each message brings its own.
#[derive(Debug)]
pub struct Ports<W: World> {
    pub model: Arc<W::Model>,
    pub tools: Arc<W::Tools>,
    pub journal: Arc<W::Journal>,
    pub feed: Arc<W::Feed>,
    pub sessions: Arc<W::Sessions>,
    pub intake: Arc<W::Intake>,
    pub queue: Arc<W::Queue>,
    pub cancel_requests: Arc<W::CancelRequests>,
    pub presence: Arc<W::Presence>,
}
