//! Decisions of people on pages: messages to the workers, each signed with the key of the channel `web`. A worker
//! records it; the page waits a moment, and then shows what the database has.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use super::backend::Backend;
use tarsy_bus::{ChannelKeys, NewPeopleMessage};
use tarsy_config::Approvals;
use tarsy_core::approvals::{
    Channel, Choice, DecisionMessage, FreezeMessage, FreezeWord, MESSAGE_FORM, PeopleSubject,
    RequestId, Sender, Topic, Voter,
};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Proof, RequestFacts};
use tarsy_engine::worker::decisions::{Claimant, Drills, Judged, MAX_GROUPS, Rights, is_name};
use tarsy_reports::{
    ApprovalDetail, ApprovalFilter, ApprovalRow, FreezeReport, Requests, VoteReport,
};
use tarsy_web::ports::{
    Cast, Decision, Freeze, FreezeChange, Judgement, MAX_COUNTED, MayDecide, NoRecord, Notice,
    People, Recorded, Refusal, Unavailable,
};

/// The time for which a page waits for a worker.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);
/// The delays between reads while a page waits.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// Pages that are open at the same time share one read.
const NOTICE_AGE: Duration = Duration::from_secs(3);
/// A page does not wait for its line about people.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// The configuration of the people who decide on pages.
#[derive(Debug, Default)]
pub(super) struct Deciders {
    pub(super) approvals: Approvals,
    pub(super) keys: ChannelKeys,
    notice: RecentNotice,
}

type Running = Shared<BoxFuture<'static, Notice>>;

/// The last line about people, or the read that runs now.
#[derive(Debug, Default)]
struct RecentNotice(Mutex<Option<(Instant, Running)>>);

impl Deciders {
    pub(super) fn new(approvals: Approvals, keys: ChannelKeys) -> Self {
        Self {
            approvals,
            keys,
            notice: RecentNotice::default(),
        }
    }

    /// Whether the configuration names people or policies.
    fn is_used(&self) -> bool {
        self.approvals != Approvals::default()
    }

    /// The person as a message names them: with those groups alone that a policy names, because a worker refuses a
    /// message with too many, or with a name that cannot be recorded.
    fn named(&self, person: &Voter) -> Result<Voter, Refusal> {
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

    fn rights(&self) -> Rights<'_> {
        Rights {
            approvals: &self.approvals,
            drills: Drills::Refuse,
        }
    }
}

impl People for Backend {
    async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<ApprovalRow>, Unavailable> {
        self.read(self.store.approvals(filter)).await
    }

    async fn approval(&self, request: RequestId) -> Result<Option<ApprovalDetail>, Unavailable> {
        self.read(self.store.approval(request)).await
    }

    async fn freeze_now(&self) -> Result<Option<FreezeReport>, Unavailable> {
        self.read(self.store.approval_freeze()).await
    }

    async fn notice(&self) -> Notice {
        let running = {
            let mut recent = self.deciders.notice.0.lock();
            match &*recent {
                Some((at, running)) if at.elapsed() < NOTICE_AGE => running.clone(),
                Some(_) | None => {
                    let running = self.read_notice();
                    *recent = Some((Instant::now(), running.clone()));
                    running
                }
            }
        };
        running.await
    }

    fn may_decide(&self, person: &Voter, request: &ApprovalDetail) -> MayDecide {
        let facts = facts(request);
        let claimant = claimant(person);
        let may = |choice| {
            let judged = self
                .deciders
                .rights()
                .judge(&facts, &claimant, choice, None);
            judged == Judged::Permitted
        };
        match (may(Choice::Approve), may(Choice::Deny)) {
            (true, _) => MayDecide::Everything,
            (false, true) => MayDecide::Deny,
            (false, false) => MayDecide::Nothing,
        }
    }

    fn may_freeze(&self, person: &Voter) -> bool {
        self.deciders.rights().judge_freeze(&claimant(person)) == Judged::Permitted
    }

    async fn decide(&self, decision: Decision) -> Result<Cast, Refusal> {
        let by = self.deciders.named(&decision.by)?;
        let request = decision.request;
        let vote = vote_id(&decision);
        let message = DecisionMessage {
            v: MESSAGE_FORM,
            request: request.to_string(),
            call: decision.call,
            seen_updates: decision.seen_updates,
            verdict: decision.choice,
            comment: decision.comment,
            by: Some(by),
            from: decision.from,
        };
        let topic = Topic::Decision(request.session);
        let sent = self.publish_of_person(topic, vote, &message).await?;
        tracing::info!(request = %request, %vote, decision = message.verdict.as_str(), "decision published");
        let recorded = self.recorded_vote(vote, sent).await;
        Ok(Cast { vote, recorded })
    }

    async fn judge(&self, judgement: Judgement) -> Result<Recorded, Refusal> {
        let by = self.deciders.named(&judgement.by)?;
        let session = judgement.session;
        let id = verdict_id(&judgement);
        let message = json!({
            "v": MESSAGE_FORM,
            "verdict": judgement.verdict,
            "cause": judgement.cause,
            "action": judgement.action,
            "by": by,
            "from": judgement.from,
        });
        let sent = self
            .publish_of_person(Topic::Verdict(session), id, &message)
            .await?;
        tracing::info!(session_id = %session, by = judgement.by.name, verdict = judgement.verdict, "verdict published");
        Ok(self.recorded_verdict(id, sent).await)
    }

    async fn freeze(&self, freeze: Freeze) -> Result<Recorded, Refusal> {
        let named = self.deciders.named(&freeze.by)?;
        let id = freeze_id(&freeze);
        let by = freeze.by.name.clone();
        let (word, until, reason) = match freeze.change {
            FreezeChange::Begin { hours, reason } => {
                let until = hours.map(|hours| Utc::now() + TimeDelta::hours(i64::from(hours)));
                (FreezeWord::Begin, until, reason)
            }
            FreezeChange::End => (FreezeWord::End, None, None),
        };
        let message = FreezeMessage {
            v: MESSAGE_FORM,
            freeze: word,
            until,
            reason,
            by: Some(named),
            from: freeze.from,
        };
        let sent = self.publish_of_person(Topic::Freeze, id, &message).await?;
        tracing::info!(by, freeze = ?word, "freeze published");
        let recorded = match word {
            FreezeWord::Begin => self.recorded_begin(id, sent).await,
            FreezeWord::End => self.recorded_end(sent).await,
        };
        *self.deciders.notice.0.lock() = None;
        Ok(recorded)
    }
}

impl Backend {
    /// The line about people, from two small statements for all pages of some seconds.
    fn read_notice(&self) -> Running {
        let store = std::sync::Arc::clone(&self.store);
        let is_used = self.deciders.is_used();
        let read = async move {
            let open = ApprovalFilter {
                limit: MAX_COUNTED,
                requests: Requests::Open,
                ..ApprovalFilter::default()
            };
            let both = async { tokio::join!(store.approvals(open), store.approval_freeze()) };
            match tokio::time::timeout(NOTICE_TIMEOUT, both).await {
                Ok((Ok(open), Ok(freeze))) => Notice {
                    open: Some(open.len()).filter(|open| is_used || *open > 0 || freeze.is_some()),
                    freeze,
                },
                Ok((Err(_), _) | (_, Err(_))) | Err(_) => Notice::default(),
            }
        };
        read.boxed().shared()
    }

    /// Publishes a message. Only one that the stream cannot have is refused; the answer has the reason for which a
    /// record of another one may be missing.
    async fn publish_of_person<T: serde::Serialize>(
        &self,
        topic: Topic,
        id: Uuid,
        message: &T,
    ) -> Result<NoRecord, Refusal> {
        let subject = PeopleSubject {
            topic,
            sender: Sender::Web,
        };
        let nats = self.connected().await?;
        let name = subject.to_string();
        // A server answers nothing to a message that it does not permit.
        if let Ok(granted) = nats.granted().await
            && !granted.may_publish(&name)
        {
            return Err(Refusal::Unavailable(Unavailable(format!(
                "nats does not permit this server to publish on {name}: deploy/nats/web.conf has its permissions"
            ))));
        }
        let body = serde_json::to_vec(message)
            .map_err(|error| Refusal::Invalid(format!("the message cannot be written: {error}")))?;
        let message = NewPeopleMessage { subject, id, body };
        match nats.publish_of_person(&message, &self.deciders.keys).await {
            Ok(_) => Ok(NoRecord::NotYet),
            // Its acknowledgement is late or lost: the stream may have it.
            Err(tarsy_bus::Error::Unavailable(reason)) => {
                tracing::warn!(subject = name, %id, "message of a person not confirmed: {reason}");
                Ok(NoRecord::Unconfirmed)
            }
            Err(error) => Err(self.unavailable("nats", &error).into()),
        }
    }

    /// The vote, once a worker has recorded it; after a moment the reason why it is missing.
    async fn recorded_vote(&self, vote: Uuid, sent: NoRecord) -> Result<VoteReport, NoRecord> {
        let until = Instant::now() + RECORD_TIMEOUT;
        loop {
            let missing = match self.read(self.store.approval_vote(vote)).await {
                Ok(Some(recorded)) => return Ok(recorded),
                Ok(None) => sent,
                Err(_) => NoRecord::Unread,
            };
            if Instant::now() >= until {
                return Err(missing);
            }
            tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        }
    }

    async fn recorded_verdict(&self, verdict: Uuid, sent: NoRecord) -> Recorded {
        let until = Instant::now() + RECORD_TIMEOUT;
        loop {
            let missing = match self.read(self.store.recorded_verdict(verdict)).await {
                Ok(Some(_)) => return Recorded::Yes,
                Ok(None) => sent,
                Err(_) => NoRecord::Unread,
            };
            if Instant::now() >= until {
                return Recorded::No(missing);
            }
            tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        }
    }

    /// The record of this freeze, which is not that of another one that lasts.
    async fn recorded_begin(&self, id: Uuid, sent: NoRecord) -> Recorded {
        let until = Instant::now() + RECORD_TIMEOUT;
        loop {
            let missing = match self.read(self.store.approval_freezes()).await {
                Ok(freezes) if is_frozen_by(&freezes, id) => return Recorded::Yes,
                Ok(_) => sent,
                Err(_) => NoRecord::Unread,
            };
            if Instant::now() >= until {
                return Recorded::No(missing);
            }
            tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        }
    }

    async fn recorded_end(&self, sent: NoRecord) -> Recorded {
        let until = Instant::now() + RECORD_TIMEOUT;
        loop {
            let missing = match self.read(self.store.approval_freeze()).await {
                Ok(None) => return Recorded::Yes,
                Ok(Some(_)) => sent,
                Err(_) => NoRecord::Unread,
            };
            if Instant::now() >= until {
                return Recorded::No(missing);
            }
            tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        }
    }
}

/// Whether the freeze with this id is recorded, and no person has ended it.
fn is_frozen_by(freezes: &[FreezeReport], id: Uuid) -> bool {
    let mut freezes = freezes.iter();
    freezes.any(|freeze| freeze.freeze_id == id && freeze.ended_at.is_none())
}

/// The person as the workers will judge them: the proxy, or the token, has proved who they are.
fn claimant(person: &Voter) -> Claimant {
    Claimant {
        channel: Channel::Web,
        account: person.name.clone(),
        groups: person.groups.clone(),
        proof: Proof::NotNeeded,
    }
}

fn facts(request: &ApprovalDetail) -> RequestFacts {
    RequestFacts {
        policy: request.row.policy.clone(),
        quorum: u8::try_from(request.row.quorum).unwrap_or(u8::MAX),
        channels: request.call.channels.clone(),
        other_person: request.call.other_person,
        asked_by: request.alert.asked_by.clone(),
    }
}

/// The id of a vote. The same form sent again is the same vote; another choice or comment is another one.
fn vote_id(decision: &Decision) -> Uuid {
    let request = decision.request.to_string();
    let call = decision.call.to_string();
    let seen = decision.seen_updates.to_string();
    id_of(
        decision.nonce,
        &[
            "vote",
            &decision.by.name,
            &request,
            &call,
            &seen,
            decision.choice.as_str(),
            decision.comment.as_deref().unwrap_or_default(),
        ],
    )
}

/// The id of a verdict. The same words on the same page are the same verdict; on a page that shows a newer one they are
/// another verdict, which is then the newest.
fn verdict_id(judgement: &Judgement) -> Uuid {
    let seen = judgement.seen.to_string();
    id_of(
        judgement.session,
        &[
            "verdict",
            &judgement.by.name,
            &seen,
            judgement.verdict,
            judgement.cause.as_deref().unwrap_or_default(),
            judgement.action.as_deref().unwrap_or_default(),
        ],
    )
}

fn freeze_id(freeze: &Freeze) -> Uuid {
    let (word, hours, reason) = match &freeze.change {
        FreezeChange::Begin { hours, reason } => (
            "begin",
            hours.map(|hours| hours.to_string()),
            reason.clone(),
        ),
        FreezeChange::End => ("end", None, None),
    };
    id_of(
        freeze.nonce,
        &[
            "freeze",
            &freeze.by.name,
            word,
            &hours.unwrap_or_default(),
            &reason.unwrap_or_default(),
        ],
    )
}

/// A hash of these parts as an id, each with its length before it.
fn id_of(nonce: SessionId, parts: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(nonce.0.as_bytes());
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(digest) {
        *to = from;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests;
