//! The record of a verdict of a person about an analysis.

use super::message::{self, Malformed};
use super::rights::Judged;
use super::{Handled, Recorder, UNDECIDED_LIMIT, age, answer, malformed, refuse, undecided};
use crate::ports::{
    ChannelGroups, Delivery, NewVerdict, PeopleMessage, Queue, RecordVerdict, VerdictRecord,
    VerdictRefusal, Votes,
};
use tarsy_core::approvals::{PeopleSubject, Refusal};
use tarsy_core::ids::SessionId;

impl<S: Votes + RecordVerdict, Q: Queue, G: ChannelGroups> Recorder<S, Q, G> {
    pub(super) async fn verdict<D: Delivery>(
        &self,
        message: &PeopleMessage<D>,
        session: SessionId,
    ) -> Handled {
        let Some(PeopleSubject { sender, .. }) = &message.address else {
            return malformed(message, Malformed::Subject);
        };
        let (read, claimant) = match message::verdict(message, sender) {
            Ok(read) => read,
            Err(fault) => return malformed(message, fault),
        };
        let Some(id) = message.id else {
            return malformed(message, Malformed::Id);
        };
        let rights = self.rights();
        match rights.judge_verdict(&claimant) {
            Judged::Permitted => {}
            Judged::Undecided(refusal) if age(message).is_some_and(|age| age < UNDECIDED_LIMIT) => {
                undecided(message, refusal);
                return Handled::Again;
            }
            Judged::Refused(refusal) | Judged::Undecided(refusal) => {
                refuse(refusal.as_str());
                tracing::warn!(target: "tarsy::audit", session_id = %session, account = claimant.account,
                    channel = claimant.channel.as_str(), refused = refusal.as_str(), "verdict refused");
                self.reply(
                    message,
                    read.response_url.as_deref(),
                    answer::refused(refusal),
                )
                .await;
                return Handled::Done;
            }
        }
        let identity = rights.voter(&claimant, None);
        let verdict = NewVerdict {
            id,
            session,
            person: identity.name,
            account: claimant.account,
            channel: claimant.channel,
            rating: read.verdict,
            cause: message::text(&self.mask, read.cause.as_deref()),
            action: message::text(&self.mask, read.action.as_deref()),
        };
        match self.store.record_verdict(verdict.clone()).await {
            Ok(record) => {
                judged(&verdict, &record);
                self.reply(
                    message,
                    read.response_url.as_deref(),
                    answer::to_verdict(&record),
                )
                .await;
                Handled::Done
            }
            Err(error) => self.not_recorded(message, &error),
        }
    }
}

/// Counts and logs the outcome. A message that comes again changes nothing.
fn judged(verdict: &NewVerdict, record: &VerdictRecord) {
    let refused = match record {
        VerdictRecord::Repeated => return,
        VerdictRecord::Recorded(_) => {
            metrics::counter!("tarsy_verdicts_total", "verdict" => verdict.rating.as_str())
                .increment(1);
            None
        }
        VerdictRecord::Refused(refusal) => {
            let word = match refusal {
                VerdictRefusal::UnknownSession => Refusal::Unknown.as_str(),
                VerdictRefusal::NotEnded => refusal.as_str(),
                VerdictRefusal::TooManyVerdicts => Refusal::TooMany.as_str(),
            };
            refuse(word);
            Some(word)
        }
    };
    tracing::info!(
        target: "tarsy::audit",
        verdict_id = %verdict.id,
        session_id = %verdict.session,
        person = verdict.person,
        account = verdict.account,
        channel = verdict.channel.as_str(),
        verdict = verdict.rating.as_str(),
        refused,
        "verdict of a person"
    );
}
