//! Decisions of people on pages: messages to the workers, each signed with the key of the channel `web`. A worker
//! records it; the page waits a moment, and then shows what the database has.
//!
//! `deciders` has who may decide, `ids` the ids of messages, `publish` sends them, `record` waits for what a worker
//! made of them, and `notice` is the line about people on every page.

mod deciders;
mod ids;
mod notice;
mod publish;
mod record;

use chrono::{TimeDelta, Utc};
use serde_json::json;

pub(super) use self::deciders::Deciders;
use self::deciders::{claimant, facts};
use self::ids::{freeze_id, verdict_id, vote_id};
use super::backend::Backend;
use tarsy_core::approvals::{
    Choice, DecisionMessage, FreezeMessage, FreezeWord, MESSAGE_FORM, RequestId, Topic, Voter,
};
use tarsy_engine::worker::decisions::Judged;
use tarsy_reports::{ApprovalDetail, ApprovalFilter, ApprovalRow, FreezeReport};
use tarsy_web::ports::{
    Cast, Decision, Freeze, FreezeChange, Judgement, MayDecide, Notice, People, Recorded, Refusal,
    Unavailable,
};

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
        self.recent_notice().await
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
            response_url: None,
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
        self.deciders.notice.forget();
        Ok(recorded)
    }
}

#[cfg(test)]
mod tests;
