//! Handlers of the forms that ask a question or cancel a session. For users without the right, these routes do not
//! exist.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;

use super::{Asked, Page};
use crate::api::{find, report};
use crate::fault::Fault;
use crate::pages::dialogs;
use crate::ports::{Backend, Cancel, Question};
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;
use crate::submissions::{asker, canceller};

#[derive(Deserialize)]
pub(super) struct Sent {
    question: String,
}

pub(super) async fn ask<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
    sent: Result<Form<Sent>, FormRejection>,
) -> Page {
    let by = asker(&asked.viewer.access)?;
    let Form(sent) = sent.map_err(|_| Fault::Invalid("the form has no question".to_owned()))?;
    let question = Question {
        about: find(&web, &part).await?,
        text: sent.question,
        by,
    };
    let published = web.backend.ask(question).await?;
    Ok(Redirect::to(&format!("/sessions/{}", published.session_id)).into_response())
}

/// Asks for a confirmation before a session is cancelled.
pub(super) async fn confirm<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    canceller(&asked.viewer.access)?;
    let report = report(&web, &part).await?;
    let frame = Frame::plain("Cancel", NavEntry::Session);
    Ok(asked.page(&frame, &dialogs::cancel(&report)))
}

pub(super) async fn cancel<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    let by = canceller(&asked.viewer.access)?;
    let session = find(&web, &part).await?;
    web.backend.cancel(Cancel { session, by }).await?;
    Ok(Redirect::to(&format!("/sessions/{session}")).into_response())
}
