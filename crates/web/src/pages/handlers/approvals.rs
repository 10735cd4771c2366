//! Handlers of `/approvals`: the list, one request, the form that decides, and the freeze of all changes.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::Utc;
use serde::Deserialize;
use uuid::Uuid;

use super::{Asked, Page, still};
use crate::api::find;
use crate::decisions::{Found, Sent, found, freeze, freezer, nonce};
use crate::fault::Fault;
use crate::pages::approvals::{Approvals, Form, Offer, Outcome, Request, approvals, path, request};
use crate::ports::{Backend, MayDecide, Recorded};
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;
use tarsy_core::approvals::RequestId;
use tarsy_core::ids::SessionId;
use tarsy_reports::{ApprovalFilter, RequestState, Requests, VoteReport};

/// Requests of each part of the list.
const MAX_LISTED: u32 = 100;

/// The vote of a form, in the address that it leads to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct After {
    vote: Option<Uuid>,
}

pub(super) async fn list<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Page {
    list_page(&web, &asked, Shown::default()).await
}

/// The parts of the list that the last form decides.
#[derive(Clone, Copy, Debug, Default)]
struct Shown<'a> {
    outcome: Outcome<'a>,
    /// The nonce of the form again, if it may have been sent.
    nonce: Option<SessionId>,
}

async fn list_page<B: Backend>(web: &Shared<B>, asked: &Asked, shown: Shown<'_>) -> Page {
    let of = |requests| ApprovalFilter {
        limit: MAX_LISTED,
        requests,
        ..ApprovalFilter::default()
    };
    let (open, all, freeze) = tokio::join!(
        web.backend.approvals(of(Requests::Open)),
        web.backend.approvals(of(Requests::All)),
        web.backend.freeze_now()
    );
    let mut decided = all?;
    decided.retain(|row| row.state != RequestState::Open);
    let freeze = freeze?;
    let may_freeze = freezer(web, &asked.viewer.access).is_ok();
    let main = approvals(&Approvals {
        open: &open?,
        decided: &decided,
        freeze: freeze.as_ref(),
        freeze_form: may_freeze.then(|| shown.nonce.unwrap_or_else(nonce)),
        outcome: shown.outcome,
        now: Utc::now(),
    });
    let frame = Frame {
        net: still(web),
        ..Frame::plain("Approvals", NavEntry::Approvals)
    };
    Ok(asked.page(&frame, &main))
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path((part, number)): Path<(String, u32)>,
    asked: Asked,
) -> Page {
    let After { vote } = asked.query()?;
    let found = found_at(&web, &part, number, &asked).await?;
    let cast = vote.and_then(|vote| cast(&found, vote));
    let outcome = cast.as_ref().map_or(Outcome::None, Outcome::Vote);
    Ok(request_page(&web, &asked, &found, Draft::new(outcome)))
}

/// The recorded vote with this id.
fn cast(found: &Found, vote: Uuid) -> Option<VoteReport> {
    let mut votes = found.detail.votes_cast.iter();
    votes.find(|cast| cast.vote_id == vote).cloned()
}

async fn found_at<B: Backend>(
    web: &Shared<B>,
    part: &str,
    number: u32,
    asked: &Asked,
) -> Result<Found, Fault> {
    let id = RequestId {
        session: find(web, part).await?,
        event: number,
    };
    found(web, id, &asked.viewer.access).await
}

/// The form as its page shows it.
#[derive(Clone, Copy, Debug)]
struct Draft<'a> {
    outcome: Outcome<'a>,
    nonce: Option<SessionId>,
    comment: &'a str,
}

impl<'a> Draft<'a> {
    fn new(outcome: Outcome<'a>) -> Self {
        Self {
            outcome,
            nonce: None,
            comment: "",
        }
    }
}

fn request_page<B: Backend>(
    web: &Shared<B>,
    asked: &Asked,
    found: &Found,
    draft: Draft<'_>,
) -> Response {
    let offer = match found.may {
        MayDecide::Nothing => None,
        MayDecide::Deny => Some(Offer::OnlyDenial),
        MayDecide::Everything => Some(Offer::Approval),
    };
    let form = offer.map(|approval| Form {
        nonce: draft.nonce.unwrap_or_else(nonce),
        comment: draft.comment,
        approval,
    });
    let main = request(&Request {
        detail: &found.detail,
        form,
        outcome: draft.outcome,
        now: Utc::now(),
    });
    let title = format!("Call of {}", found.detail.row.tool);
    let frame = Frame {
        net: still(web),
        ..Frame::plain(&title, NavEntry::Approvals)
    };
    asked.page(&frame, &main)
}

/// Sends the decision. Its vote is shown by the address that the answer leads to, so that a page that is loaded again
/// sends nothing.
pub(super) async fn decide<B: Backend>(
    State(web): State<Shared<B>>,
    Path((part, number)): Path<(String, u32)>,
    asked: Asked,
    body: Result<Bytes, BytesRejection>,
) -> Page {
    let found = found_at(&web, &part, number, &asked).await?;
    let by = found.decider()?;
    let body = body.map_err(|rejection| Fault::Invalid(rejection.body_text()))?;
    let sent = Sent::of_form(&body);
    let decision = match sent.decision(found.id, by, &asked.viewer.access) {
        Ok(decision) => decision,
        Err(fault) => {
            let problem = fault.to_string();
            let draft = Draft {
                comment: &sent.comment,
                ..Draft::new(Outcome::Problem(&problem))
            };
            return Ok(fault.with_page(request_page(&web, &asked, &found, draft)));
        }
    };
    // What may have been sent is sent again with the same nonce: it is the same vote.
    let kept = Draft {
        nonce: Some(decision.nonce),
        comment: &sent.comment,
        ..Draft::new(Outcome::None)
    };
    match web.backend.decide(decision).await {
        Ok(cast) => {
            let again = format!("{}?vote={}", path(found.id), cast.vote);
            let missing = match cast.recorded {
                Ok(_) => return Ok(Redirect::to(&again).into_response()),
                Err(missing) => missing,
            };
            let draft = Draft {
                outcome: Outcome::Sent {
                    again: &again,
                    missing,
                },
                ..kept
            };
            let page = request_page(&web, &asked, &found, draft);
            Ok((StatusCode::ACCEPTED, page).into_response())
        }
        Err(refusal) => {
            let problem = format!("Not sent: {refusal}");
            let draft = Draft {
                outcome: Outcome::Problem(&problem),
                ..kept
            };
            let page = request_page(&web, &asked, &found, draft);
            Ok(Fault::from(refusal).with_page(page))
        }
    }
}

/// Begins or ends a freeze of all changes.
pub(super) async fn change_freeze<B: Backend>(
    State(web): State<Shared<B>>,
    asked: Asked,
    body: Result<Bytes, BytesRejection>,
) -> Page {
    let by = freezer(&web, &asked.viewer.access)?;
    let body = body.map_err(|rejection| Fault::Invalid(rejection.body_text()))?;
    let change = freeze(&body, by, &asked.viewer.access)?;
    let nonce = Some(change.nonce);
    match web.backend.freeze(change).await {
        Ok(Recorded::Yes) => Ok(Redirect::to("/approvals").into_response()),
        Ok(Recorded::No(missing)) => {
            let shown = Shown {
                outcome: Outcome::Sent {
                    again: "/approvals",
                    missing,
                },
                nonce,
            };
            let page = list_page(&web, &asked, shown).await?;
            Ok((StatusCode::ACCEPTED, page).into_response())
        }
        Err(refusal) => {
            let problem = format!("Not sent: {refusal}");
            let shown = Shown {
                outcome: Outcome::Problem(&problem),
                nonce,
            };
            let page = list_page(&web, &asked, shown).await?;
            Ok(Fault::from(refusal).with_page(page))
        }
    }
}
