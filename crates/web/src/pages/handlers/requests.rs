//! Handlers of the forms that ask a question or cancel a session. For users without the right, these routes do not
//! exist.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::Asked;
use crate::api::{find, unseen};
use crate::fault::Fault;
use crate::pages::small;
use crate::ports::{Backend, Cancel, Question};
use crate::shell::{Frame, Place};
use crate::state::Shared;

#[derive(Deserialize)]
pub(super) struct Sent {
    question: String,
}

pub(super) async fn ask<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
    sent: Result<Form<Sent>, FormRejection>,
) -> Response {
    let answer = async {
        let by = asked
            .access
            .user
            .clone()
            .filter(|_| asked.access.may_ask)
            .ok_or_else(nothing)?;
        let Form(sent) = sent.map_err(|_| Fault::Invalid("the form has no question".to_owned()))?;
        let about = find(&web, &part).await?;
        let published = web
            .backend
            .ask(Question {
                about,
                text: sent.question,
                by,
            })
            .await?;
        Ok(Redirect::to(&format!("/sessions/{}", published.session_id)).into_response())
    };
    asked.answer(answer.await)
}

/// Asks once more.
pub(super) async fn confirm<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Response {
    let page = async {
        if !asked.access.may_cancel {
            return Err(nothing());
        }
        let id = find(&web, &part).await?;
        let report = web.backend.report(id).await?.ok_or_else(|| unseen(id))?;
        Ok(asked.page(
            &Frame::plain("Cancel", Place::Session),
            &small::cancel(&report),
        ))
    };
    asked.answer(page.await)
}

pub(super) async fn cancel<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Response {
    let answer = async {
        let by = asked
            .access
            .user
            .clone()
            .filter(|_| asked.access.may_cancel)
            .ok_or_else(nothing)?;
        let session = find(&web, &part).await?;
        web.backend.cancel(Cancel { session, by }).await?;
        Ok(Redirect::to(&format!("/sessions/{session}")).into_response())
    };
    asked.answer(answer.await)
}

fn nothing() -> Fault {
    Fault::NotFound("there is nothing at this address".to_owned())
}
