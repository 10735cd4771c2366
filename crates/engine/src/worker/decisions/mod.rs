//! `Recorder`, which records what people decide: form and subject, signature, person, rights, vote, the message of a
//! woken session, acknowledgement.
//!
//! Every worker records. A message stays in its stream until its vote is in the store, and a vote that is recorded
//! again finds its id, so a worker may die at any point. A decision that waits for longer than its approval may be
//! valid is refused: its age is that of its message, by the clock of the stream.

mod answer;
mod message;
mod rights;
mod verdicts;

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::message::{Malformed, ReadDecision};
use self::rights::Identity;
use crate::backoff::Backoff;
use crate::ports::{
    ChannelGroups, Delivery, Freeze, FreezeChange, Groups, IdleAlert, PeopleMessage,
    PeopleMessages, Proof, Queue, RecordVerdict, RequestFacts, StoreError, Vote, VoteRecord, Votes,
    WakeCause,
};
use crate::run::instruments;
use tarsy_config::Approvals;
use tarsy_core::approvals::{Choice, FreezeWord, PeopleSubject, Refusal, Sender, Topic};
use tarsy_mask::Mask;

pub use self::message::{MAX_GROUPS, is_name};
pub use self::rights::{Claimant, Drills, Judged, Rights};

/// Messages that are recorded at the same time.
const MAX_CONCURRENT: usize = 8;
/// The time for which a message is tried again while a key or a group cannot be read.
const UNDECIDED_LIMIT: Duration = Duration::from_secs(600);
/// The delay of a message that cannot be recorded now.
const RETRY: Duration = Duration::from_secs(5);
/// The delays after failures to receive.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(250),
    max: Duration::from_secs(5),
};
/// A message that the store refuses is given up after this time: no approval is valid for longer.
const REFUSED_LIMIT: Duration = Duration::from_secs(3_600);
/// The end of a freeze that is recorded later does not count: what was safe then may not be now.
const MAX_UNFREEZE_AGE: Duration = Duration::from_secs(15 * 60);
/// A message from the future by more than this shows a wrong clock; its age is not known, so it approves nothing.
const MAX_SKEW: TimeDelta = TimeDelta::minutes(1);
/// The clocks of worker, stream and database differ by less. A freeze that began this short a time before its end was
/// sent is ended by it.
const CLOCK_MARGIN: Duration = Duration::from_secs(2);
/// A drain waits for the messages in work.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The priorities that a woken session does not wait in: a person waits, and the approval ages.
const SLOW_PRIORITIES: [&str; 2] = ["normal", "low"];

/// Records the messages of people until the worker ends.
#[derive(Debug)]
pub struct Recorder<S, Q, G> {
    pub store: Arc<S>,
    pub queue: Arc<Q>,
    pub groups: G,
    pub mask: Mask,
    pub approvals: Approvals,
    pub drills: Drills,
}

/// The end of the work on a message.
#[derive(Debug, PartialEq, Eq)]
enum Handled {
    Done,
    /// It stays in the stream, and comes again.
    Again,
}

impl<S: Votes + RecordVerdict, Q: Queue, G: ChannelGroups> Recorder<S, Q, G> {
    /// Records until `end` is cancelled.
    pub async fn run<M: PeopleMessages>(self, mut messages: M, end: CancellationToken) {
        let mut working = FuturesUnordered::new();
        let mut failures = 0;
        loop {
            tokio::select! {
                () = end.cancelled() => break,
                Some(()) = working.next() => {}
                next = messages.next(), if working.len() < MAX_CONCURRENT => match next {
                    Ok(message) => {
                        failures = 0;
                        working.push(self.answer(message));
                    }
                    Err(error) => {
                        if failures == 0 {
                            tracing::warn!("decisions of people not received: {error}");
                        }
                        let wait = sleep(BACKOFF.delay(failures)); // pacing of retries
                        failures += 1;
                        end.run_until_cancelled(wait).await;
                    }
                },
            }
        }
        let rest = async { while working.next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, rest).await.is_err() {
            tracing::warn!("decisions of people not recorded at the end: they are delivered again");
        }
    }

    /// Records a message and answers its delivery. An answer that is lost makes the message come again.
    async fn answer<D: Delivery>(&self, message: PeopleMessage<D>) {
        let answered = match self.handle(&message).await {
            Handled::Done => message.delivery.ack().await,
            Handled::Again => message.delivery.nak(RETRY).await,
        };
        if let Err(error) = answered {
            tracing::debug!(
                subject = message.subject,
                "decision not acknowledged: {error}"
            );
        }
    }

    async fn handle<D: Delivery>(&self, message: &PeopleMessage<D>) -> Handled {
        let Some(PeopleSubject { topic, sender }) = &message.address else {
            return malformed(message, Malformed::Subject);
        };
        match topic {
            Topic::Decision(session) => match message::decision(message, sender, *session) {
                Ok(read) => self.decide(message, read).await,
                Err(fault) => malformed(message, fault),
            },
            Topic::Freeze => self.freeze(message).await,
            Topic::Verdict(session) => self.verdict(message, *session).await,
        }
    }

    /// The groups of the policy to which the person belongs, as their channel knows.
    async fn groups_of(&self, facts: &RequestFacts, claimant: &Claimant) -> Groups {
        let policy = self.approvals.policies.get(&facts.policy);
        let wanted = policy.map_or(&[][..], |policy| policy.approvers.as_slice());
        self.groups.groups_of(&claimant.account, wanted).await
    }

    /// Answers a person in Slack. Another channel has no address, and a wrong signature is no message of the person.
    async fn reply<D: Delivery>(
        &self,
        message: &PeopleMessage<D>,
        address: Option<&str>,
        text: &str,
    ) {
        let sender = message.address.as_ref().map(|subject| &subject.sender);
        let is_answered = sender == Some(&Sender::Slack) && message.proof != Proof::Invalid;
        if is_answered && let Some(address) = address {
            self.groups.answer(address, text).await;
        }
    }

    async fn decide<D: Delivery>(&self, message: &PeopleMessage<D>, read: ReadDecision) -> Handled {
        let Some(id) = message.id else {
            return malformed(message, Malformed::Id);
        };
        let channel = read.claimant.channel;
        let facts = match self.store.request_facts(read.request).await {
            Ok(Some(facts)) => facts,
            Ok(None) => {
                refuse(Refusal::Unknown.as_str());
                tracing::warn!(target: "tarsy::audit", request = %read.request, channel = channel.as_str(),
                    account = read.claimant.account, "decision refused: no such request");
                let text = answer::refused(Refusal::Unknown);
                self.reply(message, read.message.response_url.as_deref(), text)
                    .await;
                return Handled::Done;
            }
            Err(error) => return self.not_recorded(message, &error),
        };
        let rights = self.rights();
        let asked = if rights.needs_groups(&facts, &read.claimant) {
            Some(self.groups_of(&facts, &read.claimant).await)
        } else {
            None
        };
        let choice = read.message.verdict;
        let age = age(message);
        let refused = match rights.judge(&facts, &read.claimant, choice, asked.as_ref()) {
            Judged::Permitted => {
                (choice == Choice::Approve && age.is_none()).then_some(Refusal::Late)
            }
            Judged::Refused(refusal) => Some(refusal),
            Judged::Undecided(refusal) => match age {
                Some(age) if age < UNDECIDED_LIMIT => {
                    undecided(message, refusal);
                    return Handled::Again;
                }
                Some(_) | None => Some(refusal),
            },
        };
        let identity = rights.voter(&read.claimant, asked);
        let vote = Vote {
            id,
            request: read.request,
            person: identity.name,
            account: read.claimant.account,
            groups: identity.groups,
            channel,
            address: read.message.from,
            choice,
            comment: message::text(&self.mask, read.message.comment.as_deref()),
            seen: read.message.call,
            seen_updates: read.message.seen_updates,
            refused,
            age: age.unwrap_or_default(),
        };
        match self.store.record_vote(vote.clone()).await {
            Ok(record) => {
                let text = answer::words(&vote, &record);
                let is_new = !record.is_repeated;
                let handled = self.recorded(message, &vote, record).await;
                // A message that comes again was answered before, or its answer got lost.
                if is_new {
                    self.reply(message, read.message.response_url.as_deref(), text)
                        .await;
                }
                handled
            }
            Err(error) => self.not_recorded(message, &error),
        }
    }

    async fn recorded<D: Delivery>(
        &self,
        message: &PeopleMessage<D>,
        vote: &Vote,
        record: VoteRecord,
    ) -> Handled {
        if !record.is_repeated {
            let channel = vote.channel.as_str();
            match record.refused {
                Some(refusal) => refuse(refusal.as_str()),
                None => {
                    metrics::counter!("tarsy_decisions_recorded_total", "channel" => channel)
                        .increment(1);
                }
            }
            tracing::info!(
                target: "tarsy::audit",
                vote = %vote.id,
                request = %vote.request,
                person = vote.person,
                account = vote.account,
                channel,
                address = vote.address,
                verdict = vote.choice.as_str(),
                call = %vote.seen,
                seen_updates = vote.seen_updates,
                refused = record.refused.map(Refusal::as_str),
                outcome = record.outcome,
                "decision of a person recorded"
            );
        }
        match record.wakes {
            Some(alert) => self.requeue(message, alert).await,
            None => Handled::Done,
        }
    }

    /// Queues the alert of a woken session again. If this worker dies before, the vote comes again, or the sweeper
    /// finds the session, whose lease has ended.
    async fn requeue<D: Delivery>(
        &self,
        message: &PeopleMessage<D>,
        mut alert: IdleAlert,
    ) -> Handled {
        let id = alert.alert_id;
        if alert.body.is_none() {
            tracing::warn!(session_id = %id, "woken session not queued again: its body is not stored");
            return Handled::Done;
        }
        alert.subject = woken_subject(&alert.subject);
        let sequence = match self.queue.requeue(&alert).await {
            Ok(sequence) => sequence,
            Err(error) => {
                tracing::warn!(session_id = %id, subject = message.subject, "woken session not queued yet: {error}");
                return Handled::Again;
            }
        };
        instruments::session_woken(WakeCause::Decision);
        tracing::info!(session_id = %id, sequence, "session woken by a decision");
        match self.store.record_requeue(id, sequence).await {
            Ok(()) => Handled::Done,
            Err(error) => self.not_recorded(message, &error),
        }
    }

    async fn freeze<D: Delivery>(&self, message: &PeopleMessage<D>) -> Handled {
        let Some(PeopleSubject { sender, .. }) = &message.address else {
            return malformed(message, Malformed::Subject);
        };
        let read = match message::freeze(message, sender) {
            Ok(read) => read,
            Err(fault) => return malformed(message, fault),
        };
        let Some(id) = message.id else {
            return malformed(message, Malformed::Id);
        };
        let rights = self.rights();
        let refusal = match rights.judge_freeze(&read.claimant) {
            Judged::Permitted => None,
            Judged::Refused(refusal) => Some(refusal),
            Judged::Undecided(refusal) => match age(message) {
                Some(age) if age < UNDECIDED_LIMIT => {
                    undecided(message, refusal);
                    return Handled::Again;
                }
                Some(_) | None => Some(refusal),
            },
        };
        let is_late = age(message).is_none_or(|age| age > MAX_UNFREEZE_AGE);
        let is_late_end = read.message.freeze == FreezeWord::End && is_late;
        let refusal = refusal.or_else(|| is_late_end.then_some(Refusal::Late));
        let identity = rights.voter(&read.claimant, None);
        let reason = message::text(&self.mask, read.message.reason.as_deref());
        tracing::info!(
            target: "tarsy::audit",
            freeze = ?read.message.freeze,
            until = ?read.message.until,
            person = identity.name,
            account = read.claimant.account,
            channel = read.claimant.channel.as_str(),
            address = read.message.from,
            reason,
            refused = refusal.map(Refusal::as_str),
            "freeze of changes"
        );
        if let Some(refusal) = refusal {
            refuse(refusal.as_str());
            return Handled::Done;
        }
        let change = FreezeChange {
            id,
            age: age(message)
                .unwrap_or_default()
                .saturating_sub(CLOCK_MARGIN),
            person: identity.name,
            change: match read.message.freeze {
                FreezeWord::Begin => Freeze::Begin(read.message.until),
                FreezeWord::End => Freeze::End,
            },
            reason,
        };
        match self.store.record_freeze(change).await {
            Ok(()) => Handled::Done,
            Err(error) => self.not_recorded(message, &error),
        }
    }

    fn rights(&self) -> Rights<'_> {
        Rights {
            approvals: &self.approvals,
            drills: self.drills,
        }
    }

    /// The message of a write that failed stays, unless the store refuses it whenever it is sent.
    fn not_recorded<D>(&self, message: &PeopleMessage<D>, error: &StoreError) -> Handled {
        let is_refused = match error {
            StoreError::Refused(_) | StoreError::Conflict(_) => true,
            StoreError::LeaseLost { .. }
            | StoreError::Ended
            | StoreError::Behind(_)
            | StoreError::Undecided(_)
            | StoreError::TimedOut(_)
            | StoreError::Unavailable(_) => false,
        };
        if is_refused && age(message).is_none_or(|age| age > REFUSED_LIMIT) {
            tracing::error!(
                subject = message.subject,
                "decision given up: the store refuses it: {error}"
            );
            tracing::warn!(target: "tarsy::audit", subject = message.subject, "message of a person given up: {error}");
            return Handled::Done;
        }
        tracing::warn!(
            subject = message.subject,
            "decision not recorded yet: {error}"
        );
        Handled::Again
    }
}

impl Rights<'_> {
    /// The person for the record of a vote. What no proof confirms is no person, whatever the refusal is.
    fn voter(&self, claimant: &Claimant, asked: Option<Groups>) -> Identity {
        match claimant.proof {
            Proof::NotNeeded | Proof::Valid => {}
            Proof::Invalid | Proof::Unreadable(_) => {
                return Identity {
                    name: format!("{}:{}", claimant.channel.as_str(), claimant.account),
                    groups: Vec::new(),
                };
            }
        }
        let mut identity = self.identify(claimant);
        if let Some(Groups::Known(groups)) = asked {
            identity.groups.extend(groups);
        }
        identity
    }
}

/// The time since the stream stored a message; `None` if a clock is wrong, so that it is not known.
fn age<D>(message: &PeopleMessage<D>) -> Option<Duration> {
    let age = Utc::now() - message.stored_at;
    (age > -MAX_SKEW).then(|| age.to_std().unwrap_or_default())
}

fn refuse(reason: &'static str) {
    metrics::counter!("tarsy_decisions_refused_total", "reason" => reason).increment(1);
}

/// A message that no person sends is acknowledged: it would come again for ever.
fn malformed<D>(message: &PeopleMessage<D>, fault: Malformed) -> Handled {
    metrics::counter!("tarsy_decisions_refused_total", "reason" => "malformed").increment(1);
    tracing::warn!(target: "tarsy::audit", subject = message.subject, "message of a person refused: {fault}");
    Handled::Done
}

fn undecided<D>(message: &PeopleMessage<D>, refusal: Refusal) {
    let why = match &message.proof {
        Proof::Unreadable(reason) => reason.as_str(),
        Proof::NotNeeded | Proof::Valid | Proof::Invalid => refusal.as_str(),
    };
    tracing::warn!(
        subject = message.subject,
        "decision of a person waits: {why}"
    );
}

/// The subject of a woken session: its own, in a priority of at least `high`.
fn woken_subject(subject: &str) -> String {
    let mut tokens: Vec<&str> = subject.split('.').collect();
    if let Some(priority) = tokens.get_mut(2)
        && SLOW_PRIORITIES.contains(priority)
    {
        *priority = "high";
    }
    tokens.join(".")
}

#[cfg(test)]
mod tests;
