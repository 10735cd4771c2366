//! Starts the task that records what people decide. Without `approvals` in the file no task is started, and the worker
//! needs neither the stream nor the rights for it.

use std::sync::Arc;

use crate::process::people::{channel_keys, take_part};
use tarsy_bus::{JetStreamPeople, Nats};
use tarsy_config::Config;
use tarsy_engine::ports::NoChannelGroups;
use tarsy_engine::worker::background::Background;
use tarsy_engine::worker::decisions::{Drills, Recorder};
use tarsy_mask::Mask;
use tarsy_store::Store;

/// Starts the recorder if people take part.
pub(super) fn start(
    background: &Background,
    config: &Config,
    nats: &Nats,
    store: &Arc<Store>,
    mask: &Mask,
) {
    if !take_part(config) {
        return;
    }
    let recorder = Recorder {
        store: Arc::clone(store),
        queue: Arc::new(nats.clone()),
        groups: NoChannelGroups,
        mask: mask.clone(),
        approvals: config.approvals.clone(),
        drills: Drills::Refuse,
    };
    let messages = JetStreamPeople::new(nats, channel_keys(config));
    background.spawn("decisions", |end| recorder.run(messages, end));
}
