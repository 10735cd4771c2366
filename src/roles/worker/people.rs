//! Starts the task that records what people decide. Without `approvals` in the file no task is started, and the worker
//! needs neither the stream nor the rights for it.

use std::sync::Arc;

use crate::process::people::{channel_keys, take_part};
use tarsy_bus::{JetStreamPeople, Nats};
use tarsy_config::Config;
use tarsy_engine::worker::background::Background;
use tarsy_engine::worker::decisions::{Drills, Recorder};
use tarsy_mask::Mask;
use tarsy_notifications::SlackPeople;
use tarsy_store::Store;

/// The part of a worker that concerns people.
pub(super) struct People<'p> {
    pub(super) mask: &'p Mask,
    pub(super) drills: Drills,
}

/// Starts the recorder if people take part.
pub(super) fn start(
    background: &Background,
    config: &Config,
    nats: &Nats,
    store: &Arc<Store>,
    people: People<'_>,
) {
    let People { mask, drills } = people;
    if !take_part(config) {
        return;
    }
    let recorder = Recorder {
        store: Arc::clone(store),
        queue: Arc::new(nats.clone()),
        groups: SlackPeople::new(config, mask.clone()),
        mask: mask.clone(),
        approvals: config.approvals.clone(),
        drills,
    };
    let messages = JetStreamPeople::new(nats, channel_keys(config));
    background.spawn("decisions", |end| recorder.run(messages, end));
}
