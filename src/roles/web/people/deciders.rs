//! `Deciders`, who may decide on pages: the configuration, and the person as workers will judge them.

use super::notice::RecentNotice;
use tarsy_bus::ChannelKeys;
use tarsy_config::Approvals;
use tarsy_core::approvals::{Channel, Voter};
use tarsy_engine::ports::{Proof, RequestFacts};
use tarsy_engine::worker::decisions::{Claimant, Drills, MAX_GROUPS, Rights, is_name};
use tarsy_reports::ApprovalDetail;
use tarsy_web::ports::Refusal;

/// The configuration of the people who decide on pages.
#[derive(Debug, Default)]
pub(in crate::roles::web) struct Deciders {
    pub(super) approvals: Approvals,
    pub(super) keys: ChannelKeys,
    pub(super) notice: RecentNotice,
}

impl Deciders {
    pub(in crate::roles::web) fn new(approvals: Approvals, keys: ChannelKeys) -> Self {
        Self {
            approvals,
            keys,
            notice: RecentNotice::default(),
        }
    }

    /// Whether the configuration names people or policies.
    pub(super) fn is_used(&self) -> bool {
        self.approvals != Approvals::default()
    }

    /// The person as a message names them: with those groups alone that a policy names, because a worker refuses a
    /// message with too many, or with a name that cannot be recorded.
    pub(super) fn named(&self, person: &Voter) -> Result<Voter, Refusal> {
        if !is_name(&person.name) {
            return Err(Refusal::Invalid(
                "the name of this user cannot be recorded: accepted: at most 200 bytes, without line breaks and \
                 characters that are not shown"
                    .to_owned(),
            ));
        }
        let policies = &self.approvals.policies;
        let groups = person.groups.iter().filter(|group| {
            let mut policies = policies.values();
            is_name(group) && policies.any(|policy| policy.approvers.contains(group))
        });
        Ok(Voter {
            name: person.name.clone(),
            groups: groups.take(MAX_GROUPS).cloned().collect(),
        })
    }

    pub(super) fn rights(&self) -> Rights<'_> {
        Rights {
            approvals: &self.approvals,
            drills: Drills::Refuse,
        }
    }
}

/// The person as the workers will judge them: the proxy, or the token, has proved who they are.
pub(super) fn claimant(person: &Voter) -> Claimant {
    Claimant {
        channel: Channel::Web,
        account: person.name.clone(),
        groups: person.groups.clone(),
        proof: Proof::NotNeeded,
    }
}

pub(super) fn facts(request: &ApprovalDetail) -> RequestFacts {
    RequestFacts {
        policy: request.row.policy.clone(),
        quorum: u8::try_from(request.row.quorum).unwrap_or(u8::MAX),
        channels: request.call.channels.clone(),
        other_person: request.call.other_person,
        asked_by: request.alert.asked_by.clone(),
    }
}
