//! The keys of the channels through which people decide.

use tarsy_bus::ChannelKeys;
use tarsy_config::{Config, Secret, SecretSource, process_env};
use tarsy_core::approvals::Channel;

/// Whether people decide about calls, or judge analyses: then their messages have a stream, and workers record them.
pub fn take_part(config: &Config) -> bool {
    config.approvals.is_used() || !config.web.allow.judge.is_empty()
}

/// The keys of a configuration. Each is read again for every message. A key whose variable is not set stays a key: its
/// channel proves nothing until it is.
pub fn channel_keys(config: &Config) -> ChannelKeys {
    let keys = Channel::ALL.into_iter().filter_map(|channel| {
        let key = format!("approvals.keys.{}", channel.as_str());
        let secret = match config.approvals.key(channel)? {
            SecretSource::File(file) => Secret::in_file(&key, &file),
            SecretSource::Variable(name) => Secret::in_variable(&name, &process_env),
        };
        Some((channel, secret))
    });
    ChannelKeys(keys.collect())
}

/// The keys that cannot be read now, each with its reason.
pub fn key_faults(config: &Config) -> Vec<String> {
    let keys = channel_keys(config).0;
    keys.values()
        .filter_map(|secret| secret.read().err())
        .map(|error| error.to_string())
        .collect()
}
