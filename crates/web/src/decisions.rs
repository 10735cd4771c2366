//! Checks what a person decides before it is sent, from a form or the API.

use std::collections::BTreeMap;

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::fault::Fault;
use crate::ports::{
    Backend, Cast, Decision, Freeze, FreezeChange, HOURS, JUDGEMENTS, Judgement, MAX_COMMENT,
    MAX_JUDGED, MAX_REASON, MayDecide,
};
use crate::rights::Access;
use crate::shell::words::plain;
use crate::state::Shared;
use crate::submissions::request_id;
use tarsy_core::approvals::{CallHash, Choice, Refusal, RequestId, Voter};
use tarsy_core::ids::SessionId;
use tarsy_reports::ApprovalDetail;

/// The fields that a person sends about a request. The names are those of the form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Sent {
    pub decision: String,
    pub comment: String,
    /// The hash of the call that the person saw.
    pub call: String,
    /// The last update of the alert that the person saw.
    pub seen_updates: Option<u32>,
    pub nonce: Option<String>,
}

impl Sent {
    /// The fields of a form. A browser sends its lines with the line breaks of Windows.
    pub(super) fn of_form(body: &Bytes) -> Self {
        let mut sent = Self::default();
        for (name, value) in url::form_urlencoded::parse(body) {
            match name.as_ref() {
                "decision" => sent.decision = value.into_owned(),
                "comment" => sent.comment = value.replace("\r\n", "\n"),
                "call" => sent.call = value.into_owned(),
                "seen_updates" => sent.seen_updates = value.parse().ok(),
                "nonce" => sent.nonce = Some(value.into_owned()),
                _ => {}
            }
        }
        sent
    }

    /// The fields of a JSON object.
    pub(super) fn of_json(body: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(body).map_err(|_| {
            Fault::Invalid(
                "accepted: {\"decision\": \"approve\", \"deny\" or \"deny_session\", \"call\": \"the 64 hexadecimal digits \
                 of the request\", \"seen_updates\": a number, \"comment\": \"a text\", \"nonce\": \"a UUID\"} as JSON"
                    .to_owned(),
            )
        })
    }

    /// The decision about a request.
    ///
    /// # Errors
    /// When a field is missing or wrong.
    pub(super) fn decision(
        &self,
        request: RequestId,
        by: Voter,
        access: &Access,
    ) -> Result<Decision, Fault> {
        let choice = Choice::ALL
            .into_iter()
            .find(|choice| choice.as_str() == self.decision)
            .ok_or_else(|| {
                Fault::Invalid("decision: accepted: approve, deny, deny_session".to_owned())
            })?;
        let call = CallHash::parse(&self.call).ok_or_else(|| {
            Fault::Invalid("call: accepted: the 64 hexadecimal digits of the request".to_owned())
        })?;
        let seen_updates = self.seen_updates.ok_or_else(|| {
            Fault::Invalid("seen_updates: accepted: the number that the request has".to_owned())
        })?;
        Ok(Decision {
            request,
            nonce: request_id(self.nonce.as_deref())?,
            call,
            seen_updates,
            choice,
            comment: text("comment", &self.comment, MAX_COMMENT)?,
            by,
            from: access.address.clone(),
        })
    }
}

/// A text of a person; `None` for an empty one.
pub(super) fn text(name: &str, text: &str, most: usize) -> Result<Option<String>, Fault> {
    let text = text.trim();
    if text.chars().count() > most {
        return Err(Fault::Invalid(format!(
            "{name}: accepted: at most {most} characters"
        )));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// A request that exists, with the rights of the user about it.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub id: RequestId,
    pub detail: ApprovalDetail,
    pub person: Option<Voter>,
    pub may: MayDecide,
}

impl Found {
    /// The person, if they may decide. For others the route does not exist.
    pub(super) fn decider(&self) -> Result<Voter, Fault> {
        let person = match self.may {
            MayDecide::Nothing => None,
            MayDecide::Deny | MayDecide::Everything => self.person.clone(),
        };
        person.ok_or_else(Fault::no_such_address)
    }
}

/// The request of an event of a session.
pub(super) async fn found<B: Backend>(
    web: &Shared<B>,
    id: RequestId,
    access: &Access,
) -> Result<Found, Fault> {
    let detail = web.backend.approval(id).await?;
    let detail = detail.ok_or_else(|| {
        Fault::NotFound(format!(
            "no request {id}: the event asks no person, or was deleted"
        ))
    })?;
    let person = access.person();
    let may = person.as_ref().map_or(MayDecide::Nothing, |person| {
        web.backend.may_decide(person, &detail)
    });
    Ok(Found {
        id,
        detail,
        person,
        may,
    })
}

/// The person, if they may freeze all changes. For others the route does not exist.
pub(super) fn freezer<B: Backend>(web: &Shared<B>, access: &Access) -> Result<Voter, Fault> {
    let person = access
        .person()
        .filter(|person| web.backend.may_freeze(person));
    person.ok_or_else(Fault::no_such_address)
}

/// The change of a form that begins or ends a freeze.
pub(super) fn freeze(body: &Bytes, by: Voter, access: &Access) -> Result<Freeze, Fault> {
    let fields: BTreeMap<_, _> = url::form_urlencoded::parse(body).into_owned().collect();
    let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let change = match field("freeze") {
        "begin" => FreezeChange::Begin {
            hours: hours(field("hours"))?,
            reason: text("reason", field("reason"), MAX_REASON)?,
        },
        "end" => FreezeChange::End,
        _ => return Err(Fault::Invalid("freeze: accepted: begin, end".to_owned())),
    };
    Ok(Freeze {
        nonce: request_id(Some(field("nonce")))?,
        change,
        by,
        from: access.address.clone(),
    })
}

fn hours(text: &str) -> Result<Option<u32>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let hours = text.parse().ok().filter(|hours| HOURS.contains(hours));
    match hours {
        Some(hours) => Ok(Some(hours)),
        None => Err(Fault::Invalid("hours: accepted: 1, 4, 24, 72".to_owned())),
    }
}

/// The verdict of a form about the analysis of a session.
pub(super) fn judgement(
    body: &Bytes,
    session: SessionId,
    by: Voter,
    access: &Access,
) -> Result<Judgement, Fault> {
    let fields: BTreeMap<_, _> = url::form_urlencoded::parse(body).into_owned().collect();
    let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let mut words = JUDGEMENTS.into_iter();
    let verdict = words
        .find(|word| *word == field("verdict"))
        .ok_or_else(|| Fault::Invalid("verdict: accepted: right, partly, wrong".to_owned()))?;
    Ok(Judgement {
        session,
        seen: field("seen").parse().unwrap_or_default(),
        verdict,
        cause: text("cause", field("cause"), MAX_JUDGED)?,
        action: text("action", field("action"), MAX_JUDGED)?,
        by,
        from: access.address.clone(),
    })
}

/// The answer about a vote, for programs.
pub(super) fn answer(cast: &Cast) -> Value {
    let vote = cast.recorded.as_ref().ok();
    serde_json::json!({
        "vote_id": cast.vote,
        "recorded": vote.is_some(),
        "refused": vote.and_then(|vote| vote.refused.as_deref()),
    })
}

/// The nonce of a new form.
pub(super) fn nonce() -> SessionId {
    crate::submissions::new_request()
}

/// The reason why a decision does not count, as a sentence for the person.
pub(super) fn refusal(word: &str) -> String {
    let refusal = Refusal::ALL
        .into_iter()
        .find(|refusal| refusal.as_str() == word);
    let words = match refusal {
        Some(Refusal::WrongChannel) => "the policy accepts no decision from a page",
        Some(Refusal::BadSignature) => {
            "the workers do not accept the signature of this server: compare approvals.keys.web"
        }
        Some(Refusal::UnknownPerson) => "no person of approvals.people has this account",
        Some(Refusal::NoRight) => "the policy does not list a group of this person",
        Some(Refusal::NoGroups) => "the groups of this person could not be asked for",
        Some(Refusal::OwnQuestion) => {
            "this person asked the question, and the policy wants another one to approve its calls"
        }
        Some(Refusal::Frozen) => "all changes are frozen",
        Some(Refusal::Ended) => "the investigation has ended, or is being cancelled",
        Some(Refusal::Again) => "this person has approved it before, and another one is needed",
        Some(Refusal::Decided) => "it was decided before",
        Some(Refusal::Expired) => "its time had passed",
        Some(Refusal::OtherCall) => "another call was shown",
        Some(Refusal::Changed) => {
            "the alert has changed since the page was made: look again, then decide"
        }
        Some(Refusal::Late) => "no worker could record it in time: look again, then decide",
        Some(Refusal::TooMany) => "the request has too many votes",
        Some(Refusal::Unknown) => "there is no such request",
        None => return plain(word),
    };
    words.to_owned()
}
