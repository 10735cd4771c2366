//! The roles of the broker's clients: the least that each needs.

use strum::VariantArray as _;

use super::ability::Ability;
use super::granted::Granted;
use super::subjects::covers;

/// A role of a client of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum NatsRole {
    /// A monitoring system, or `tarsy submit`.
    Producer,
    /// `tarsy receive`.
    Receiver,
    /// `tarsy worker`.
    Worker,
    /// `tarsy watch`, and `tarsy web` that only shows.
    Watcher,
    /// `tarsy web` with users who may do more than read.
    Web,
    /// `tarsy migrate`, and every command for people.
    Administrator,
    /// The server of Slack's requests.
    Slack,
    /// One person with `tarsy approvals`; the subjects here are those of the person `ana`.
    Decider,
}

tarsy_core::words!(pub NatsRole, pub ALL);

/// The result of comparing credentials with a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    pub role: NatsRole,
    /// The subjects that the role needs and the credentials do not permit.
    pub missing: Vec<String>,
    /// The abilities that the credentials permit and the role does not need.
    pub extra: Vec<Ability>,
}

/// The person for whom `deploy/nats/decider.conf` is written.
const EXAMPLE_PERSON: &str = "ana";
const EXAMPLE_TOKEN: &str = ".cli.ana.";
/// Every client may read its own rights.
const OWN_RIGHTS: &str = "$SYS.REQ.USER.INFO";
/// `tarsy doctor` sends itself a message to measure the round trip.
const DOCTOR_INBOX: &str = "_INBOX_doctor.>";

impl NatsRole {
    pub fn abilities(self) -> &'static [Ability] {
        use Ability as A;
        match self {
            Self::Producer | Self::Receiver => &[A::QueueAlerts],
            // The sweeper queues alerts and questions again whose message is gone. The status of workers decides which
            // one exports the state of the queue.
            Self::Worker => &[
                A::QueueAlerts,
                A::AskQuestions,
                A::ReadCancels,
                A::RecordDecisions,
                A::ClaimAlerts,
                A::ReadQueuedAlerts,
                A::PublishTimelines,
                A::ReadLastEvents,
                A::PublishStatus,
                A::ReadStatus,
                A::PublishSystem,
                A::PublishDeadLetters,
                A::InspectStreams,
            ],
            Self::Watcher => &[
                A::ReadTimelines,
                A::ReadLastEvents,
                A::ReadStatus,
                A::InspectStreams,
            ],
            Self::Web => &[
                A::QueueWebAlerts,
                A::AskQuestions,
                A::RequestCancels,
                A::DecideOnPages,
                A::ReadTimelines,
                A::ReadLastEvents,
                A::ReadStatus,
                A::ReadSystem,
                A::InspectStreams,
            ],
            Self::Administrator => &[
                A::QueueAlerts,
                A::AskQuestions,
                A::RequestCancels,
                A::ReadCancels,
                A::ReadQueuedAlerts,
                A::ReadTimelines,
                A::ReadLastEvents,
                A::ReadStatus,
                A::ReadDeadLetters,
                A::RemoveDeadLetters,
                A::InspectStreams,
                A::ChangeStreams,
            ],
            Self::Slack => &[A::AskInSlack, A::DecideInSlack],
            Self::Decider => &[A::DecideAsPerson],
        }
    }

    /// The patterns of the subjects on which replies to its requests arrive.
    pub(crate) fn inboxes(self) -> &'static [&'static str] {
        match self {
            // Clients in other languages use `_INBOX`.
            Self::Producer => &["_INBOX.>", "_INBOX_submit.>", "_INBOX_doctor.>"],
            Self::Receiver => &["_INBOX_receive.>", "_INBOX_doctor.>"],
            Self::Worker => &["_INBOX_worker.>", "_INBOX_doctor.>"],
            Self::Watcher => &["_INBOX_watch.>", "_INBOX_web.>", "_INBOX_doctor.>"],
            Self::Web => &["_INBOX_web.>", "_INBOX_doctor.>"],
            Self::Administrator => &[
                "_INBOX_ask.>",
                "_INBOX_cancel.>",
                "_INBOX_dead-letters.>",
                "_INBOX_doctor.>",
                "_INBOX_drill.>",
                "_INBOX_migrate.>",
                "_INBOX_rerun.>",
                "_INBOX_submit.>",
                "_INBOX_watch.>",
            ],
            Self::Slack => &["_INBOX_slack.>", "_INBOX_doctor.>"],
            Self::Decider => &["_INBOX_approvals.>", "_INBOX_doctor.>"],
        }
    }

    /// All patterns on which it publishes, sorted.
    pub fn publish(self) -> Vec<&'static str> {
        let abilities = self
            .abilities()
            .iter()
            .flat_map(|ability| ability.publish());
        let own: &[&str] = match self {
            Self::Producer | Self::Receiver | Self::Slack | Self::Decider => &[OWN_RIGHTS],
            // A worker sends itself a message to know that it is subscribed.
            Self::Worker => &[OWN_RIGHTS, DOCTOR_INBOX, "_INBOX_worker.>"],
            Self::Watcher | Self::Web | Self::Administrator => &[OWN_RIGHTS, DOCTOR_INBOX],
        };
        sorted(abilities.chain(own).copied())
    }

    /// All patterns to which it subscribes, sorted.
    pub fn subscribe(self) -> Vec<&'static str> {
        let abilities = self
            .abilities()
            .iter()
            .flat_map(|ability| ability.subscribe());
        sorted(abilities.chain(self.inboxes()).copied())
    }

    /// Compares the granted permissions with this role. A pattern of `_INBOX` that only clients in other languages
    /// need is not missing.
    pub fn fit(self, granted: &Granted) -> Fit {
        let person = granted.person().unwrap_or(EXAMPLE_PERSON);
        let subjects = self.publish().into_iter();
        let publish = subjects
            .map(|subject| subject.replace(EXAMPLE_TOKEN, &format!(".cli.{person}.")))
            .filter(|subject| !granted.may_publish(subject));
        let inboxes = self
            .subscribe()
            .into_iter()
            .filter(|subject| *subject != "_INBOX.>");
        let subscribe = inboxes.filter(|subject| !granted.may_subscribe(subject));
        let missing = publish
            .map(|subject| format!("publish on {subject}"))
            .chain(subscribe.map(|subject| format!("subscribe to {subject}")))
            .collect();
        let needed = self.abilities();
        let mut extra = Vec::new();
        for ability in Ability::VARIANTS {
            let is_needed = needed.contains(ability)
                || all_covered(ability.publish(), &self.publish())
                    && all_covered(ability.subscribe(), &self.subscribe());
            let mut publish = ability.publish().iter();
            let mut subscribe = ability.subscribe().iter();
            if !is_needed
                && publish.all(|subject| granted.may_publish(subject))
                && subscribe.all(|subject| granted.may_subscribe(subject))
            {
                extra.push(*ability);
            }
        }
        Fit {
            role: self,
            missing,
            extra,
        }
    }
}

fn all_covered(subjects: &[&str], patterns: &[&str]) -> bool {
    subjects
        .iter()
        .all(|subject| patterns.iter().any(|pattern| covers(pattern, subject)))
}

fn sorted(subjects: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut subjects: Vec<_> = subjects.collect();
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permissions_of_each_role_fit_it_and_no_role_that_needs_more() {
        for role in NatsRole::ALL {
            let granted = Granted::of_patterns(&role.publish(), &role.subscribe());
            let fit = role.fit(&granted);
            assert_eq!(
                (fit.missing, fit.extra),
                (Vec::new(), Vec::new()),
                "{role:?}"
            );
        }
        let bob = [
            "$SYS.REQ.USER.INFO",
            "tarsy.decisions.cli.bob.*",
            "tarsy.verdicts.cli.bob.*",
        ];
        let bob = Granted::of_patterns(&bob, &NatsRole::Decider.subscribe());
        let fit = NatsRole::Decider.fit(&bob);
        assert_eq!((fit.missing, fit.extra), (Vec::new(), Vec::new()));
        let anyone = [
            "$SYS.REQ.USER.INFO",
            "tarsy.decisions.cli.>",
            "tarsy.verdicts.cli.>",
        ];
        let anyone = Granted::of_patterns(&anyone, &NatsRole::Decider.subscribe());
        assert_eq!(
            NatsRole::Decider.fit(&anyone).extra,
            [Ability::DecideAsAnyone]
        );
        let worker =
            Granted::of_patterns(&NatsRole::Worker.publish(), &NatsRole::Worker.subscribe());
        assert_eq!(
            NatsRole::Watcher.fit(&worker).missing[0],
            "publish on $JS.API.CONSUMER.CREATE.TARSY_TIMELINE.*.tarsy.timeline.*"
        );
        let extra = NatsRole::Producer.fit(&worker).extra;
        assert!(
            extra.contains(&Ability::PublishTimelines) && !extra.contains(&Ability::RequestCancels),
            "{extra:?}"
        );
    }
}
