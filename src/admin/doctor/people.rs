//! Checks whether the channels through which people decide have keys that can be read.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::process::people::key_faults;
use tarsy_config::Config;
use tarsy_core::approvals::Channel;

pub(super) async fn check(config: Arc<Config>) -> Checked {
    let mut checks = Vec::new();
    for fault in key_faults(&config) {
        let check = Check::new("approvals", Verdict::Fail, fault);
        checks.push(check.fix("approvals.keys in docs/configuration.md"));
    }
    let policies = config.approvals.policies.values();
    let channels: BTreeSet<Channel> = policies
        .flat_map(|policy| policy.channels.iter().copied())
        .collect();
    for channel in channels {
        if config.approvals.key(channel).is_none() {
            let word = channel.as_str();
            let detail = format!(
                "approvals.keys.{word} is not set: a stolen login of the broker decides on this channel"
            );
            checks.push(Check::new("approvals", Verdict::Warn, detail).fix("docs/people.md"));
        }
    }
    if checks.is_empty() {
        let people = config.approvals.people.len();
        let detail = format!("{people} people, and a key for each channel of the policies");
        checks.push(Check::new("approvals", Verdict::Ok, detail));
    }
    Ok(checks)
}
