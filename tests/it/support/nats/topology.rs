//! Settings of streams that differ from the default ones.

use tarsy_bus::TopologySettings;
use tarsy_config::{StreamLimits, Streams};

pub(crate) fn with_streams(streams: Streams) -> TopologySettings {
    TopologySettings {
        streams,
        ..TopologySettings::default()
    }
}

/// A queue of alerts that is full at `bytes`.
pub(crate) fn full_at(bytes: u64) -> TopologySettings {
    let alerts = StreamLimits {
        max_bytes: Some(bytes),
        ..StreamLimits::default()
    };
    with_streams(Streams {
        alerts,
        ..Streams::default()
    })
}
