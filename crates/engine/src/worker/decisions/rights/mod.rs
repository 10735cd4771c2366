//! The rights of people, as a pure function of the configuration of the worker that records the decision.
//!
//! The order of the checks is part of the contract: a person who meets several gets the word of the first one.

use std::collections::BTreeSet;

use crate::ports::{Groups, Proof, RequestFacts};
use tarsy_config::{ApprovalPolicy, Approvals, Person};
use tarsy_core::approvals::{Channel, Choice, Refusal};

/// The approvers of a policy that any person of `people` may belong to.
const EVERYONE: &str = "*";

/// A person as a message names them, with what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    pub channel: Channel,
    /// The account at the channel: a user, a member id, the token of a subject.
    pub account: String,
    /// The groups that the message names: those of the proxy in front of the web server.
    pub groups: Vec<String>,
    pub proof: Proof,
}

/// A person, as votes name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The name in `people`, else `<channel>:<account>`.
    pub(super) name: String,
    /// All groups that are known of the person.
    pub(super) groups: Vec<String>,
}

/// The verdict about the rights of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    Permitted,
    Refused(Refusal),
    /// A key or a group cannot be read now: the message is tried again, and after a while refused with this word.
    Undecided(Refusal),
}

/// The configuration by which rights are judged.
#[derive(Clone, Debug)]
pub struct Rights<'a> {
    pub approvals: &'a Approvals,
    /// Whether decisions of drills count: only in the worker of a drill.
    pub drills: Drills,
}

/// The treatment of the channel `drill`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drills {
    #[default]
    Refuse,
    Accept,
}

impl Rights<'_> {
    /// The person of `people` with this account, or the account itself.
    pub(super) fn identify(&self, claimant: &Claimant) -> Identity {
        let mut groups: BTreeSet<&String> = claimant.groups.iter().collect();
        let known = self.person(claimant);
        let name = match known {
            Some(Known { name, person }) => {
                groups.extend(&person.groups);
                name.to_owned()
            }
            None => format!("{}:{}", claimant.channel.as_str(), claimant.account),
        };
        Identity {
            name,
            groups: groups.into_iter().cloned().collect(),
        }
    }

    /// Whether the groups of the channel have to be asked for, because the policy names one that the channel knows and
    /// the person is in none of its groups as far as is known.
    pub(super) fn needs_groups(&self, facts: &RequestFacts, claimant: &Claimant) -> bool {
        let Some(policy) = self.approvals.policies.get(&facts.policy) else {
            return false;
        };
        let slack_groups = &self.approvals.slack_groups;
        let mut approvers = policy.approvers.iter();
        claimant.channel == Channel::Slack
            && !self.is_approver(policy, claimant, &self.identify(claimant))
            && approvers.any(|group| slack_groups.contains_key(group))
    }

    /// The verdict about a choice. `asked` has the answer of the channel about groups, where it was asked.
    pub fn judge(
        &self,
        facts: &RequestFacts,
        claimant: &Claimant,
        choice: Choice,
        asked: Option<&Groups>,
    ) -> Judged {
        let policy = self.approvals.policies.get(&facts.policy);
        if !self.accepts(facts, policy, claimant.channel) {
            return Judged::Refused(Refusal::WrongChannel);
        }
        if let Some(judged) = proof_fault(&claimant.proof) {
            return judged;
        }
        if claimant.channel == Channel::Drill {
            return Judged::Permitted;
        }
        let quorum = policy.map_or(facts.quorum, |policy| policy.quorum.max(facts.quorum));
        let is_known = self.person(claimant).is_some();
        if !is_known && (quorum > 1 || claimant.channel == Channel::Link) {
            return Judged::Refused(Refusal::UnknownPerson);
        }
        let Some(policy) = policy else {
            return Judged::Refused(Refusal::NoRight);
        };
        let mut identity = self.identify(claimant);
        if let Some(Groups::Known(groups)) = asked {
            identity.groups.extend(groups.iter().cloned());
        }
        if !self.is_approver(policy, claimant, &identity) {
            return match asked {
                Some(Groups::Unavailable) => Judged::Undecided(Refusal::NoGroups),
                Some(Groups::NotAsked) => Judged::Refused(Refusal::NoGroups),
                Some(Groups::Known(_)) | None => Judged::Refused(Refusal::NoRight),
            };
        }
        let wants_other = facts.other_person || policy.other_person;
        if choice == Choice::Approve && wants_other && self.is_asker(facts, claimant, &identity) {
            return Judged::Refused(Refusal::OwnQuestion);
        }
        Judged::Permitted
    }

    /// The verdict about what a person says of an analysis: its channel has to prove the account, and no drill judges.
    pub(super) fn judge_verdict(&self, claimant: &Claimant) -> Judged {
        let is_known = self.person(claimant).is_some();
        match claimant.channel {
            Channel::Web | Channel::Slack | Channel::Cli => {}
            Channel::Link if is_known => {}
            Channel::Link => return Judged::Refused(Refusal::UnknownPerson),
            Channel::Drill => return Judged::Refused(Refusal::WrongChannel),
        }
        proof_fault(&claimant.proof).unwrap_or(Judged::Permitted)
    }

    /// The verdict about a freeze: every person of `people` may begin and end one, on the channels that prove a person.
    pub fn judge_freeze(&self, claimant: &Claimant) -> Judged {
        match claimant.channel {
            Channel::Web | Channel::Cli => {}
            Channel::Slack | Channel::Link | Channel::Drill => {
                return Judged::Refused(Refusal::WrongChannel);
            }
        }
        if let Some(judged) = proof_fault(&claimant.proof) {
            return judged;
        }
        match self.person(claimant) {
            Some(_) => Judged::Permitted,
            None => Judged::Refused(Refusal::UnknownPerson),
        }
    }

    /// Whether a decision may come through this channel: the plan and the present policy have to agree. Two people are
    /// needed where a link would prove one of them only by what it holds, so a quorum of two refuses links.
    fn accepts(
        &self,
        facts: &RequestFacts,
        policy: Option<&ApprovalPolicy>,
        channel: Channel,
    ) -> bool {
        if channel == Channel::Drill {
            return self.drills == Drills::Accept;
        }
        let quorum = policy.map_or(facts.quorum, |policy| policy.quorum.max(facts.quorum));
        if channel == Channel::Link && quorum > 1 {
            return false;
        }
        let is_planned = facts.channels.iter().any(|word| word == channel.as_str());
        is_planned && policy.is_none_or(|policy| policy.channels.contains(&channel))
    }

    fn is_approver(
        &self,
        policy: &ApprovalPolicy,
        claimant: &Claimant,
        identity: &Identity,
    ) -> bool {
        policy.approvers.iter().any(|approver| {
            if approver == EVERYONE {
                self.person(claimant).is_some()
            } else {
                identity.groups.contains(approver)
            }
        })
    }

    /// Whether the person has asked the question. Its header has the name that a login had, so every account of the
    /// person counts.
    fn is_asker(&self, facts: &RequestFacts, claimant: &Claimant, identity: &Identity) -> bool {
        let Some(asked_by) = facts.asked_by.as_deref() else {
            return false;
        };
        let mut names = vec![
            identity.name.clone(),
            claimant.account.clone(),
            format!("{}:{}", claimant.channel.as_str(), claimant.account),
        ];
        if let Some(Known { person, .. }) = self.person(claimant) {
            for (channel, account) in accounts(person) {
                names.push(account.to_owned());
                names.push(format!("{}:{account}", channel.as_str()));
            }
        }
        names.iter().any(|name| name.eq_ignore_ascii_case(asked_by))
    }

    fn person(&self, claimant: &Claimant) -> Option<Known<'_>> {
        let mut people = self.approvals.people.iter();
        let found = people.find(
            |(name, person): &(&String, &Person)| match claimant.channel {
                // A link is made for a person by the name in the configuration.
                Channel::Link => **name == claimant.account,
                Channel::Web | Channel::Slack | Channel::Cli | Channel::Drill => accounts(person)
                    .any(|(channel, account)| {
                        channel == claimant.channel && account == claimant.account
                    }),
            },
        );
        found.map(|(name, person): (&String, &Person)| Known { name, person })
    }
}

/// A person of the configuration.
struct Known<'a> {
    name: &'a str,
    person: &'a Person,
}

fn accounts(person: &Person) -> impl Iterator<Item = (Channel, &str)> {
    let accounts = [
        (Channel::Web, person.web.as_deref()),
        (Channel::Slack, person.slack.as_deref()),
        (Channel::Cli, person.cli.as_deref()),
    ];
    accounts
        .into_iter()
        .filter_map(|(channel, account): (Channel, Option<&str>)| Some((channel, account?)))
}

fn proof_fault(proof: &Proof) -> Option<Judged> {
    match proof {
        Proof::NotNeeded | Proof::Valid => None,
        Proof::Invalid => Some(Judged::Refused(Refusal::BadSignature)),
        Proof::Unreadable(_) => Some(Judged::Undecided(Refusal::BadSignature)),
    }
}

#[cfg(test)]
mod tests;
