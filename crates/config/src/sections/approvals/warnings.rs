//! Warnings about approvals of a valid file, for `config check` and `doctor`.

use super::{ApprovalPolicy, Approvals, EVERYONE, POLICY_CHANNELS};
use tarsy_core::approvals::Channel;

impl Approvals {
    /// One line for each policy that everyone or no person may decide, each channel that signs nothing, and each
    /// person without an account.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, policy) in &self.policies {
            if policy.is_for_everyone() {
                warnings.push(format!(
                    "approvals.policies.{name}.approvers: {EVERYONE} lets every known person decide, without a group"
                ));
            } else if !self.may_have_approvers(policy) {
                warnings.push(format!(
                    "approvals.policies.{name}.approvers: no person of approvals.people and no group of \
                     approvals.slack_groups is among {}, so no person can decide",
                    policy.approvers.join(", ")
                ));
            }
        }
        warnings.extend(self.unsigned_channels().into_iter().map(|channel| {
            let channel = channel.as_str();
            format!(
                "approvals.keys.{channel}: no key, so a program with the broker's login for this channel can approve \
                 as any of its people"
            )
        }));
        for (name, person) in &self.people {
            let has_account = POLICY_CHANNELS
                .iter()
                .any(|channel| person.account(*channel).is_some());
            if !has_account {
                warnings.push(format!(
                    "approvals.people.{name}: no account, so they can decide only by a link"
                ));
            }
        }
        warnings
    }

    /// The channels of policies whose decisions have no signature.
    pub fn unsigned_channels(&self) -> Vec<Channel> {
        let mut channels = POLICY_CHANNELS.to_vec();
        channels.retain(|channel| {
            let mut policies = self.policies.values();
            let is_used = policies.any(|policy| policy.channels.contains(channel));
            is_used && self.key(*channel).is_none()
        });
        channels
    }

    /// Whether a person can be among the approvers, as far as the file shows: the groups of web users come from their
    /// proxy.
    fn may_have_approvers(&self, policy: &ApprovalPolicy) -> bool {
        policy.channels.contains(&Channel::Web)
            || policy.approvers.iter().any(|group| {
                let mut people = self.people.values();
                self.slack_groups.contains_key(group)
                    || people.any(|person| person.groups.contains(group))
            })
    }
}
