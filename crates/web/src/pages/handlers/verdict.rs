//! The handler of the form that judges an analysis. For users without the right, the route does not exist.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};

use super::{Asked, Page, still};
use crate::api::report;
use crate::decisions::judgement;
use crate::fault::Fault;
use crate::pages::session::verdict_sent;
use crate::ports::{Backend, Recorded};
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;
use crate::submissions;
use tarsy_core::chain::RunStatus;

/// Sends the verdict: the page of the session shows it when a worker has recorded it; before, a page says so.
pub(super) async fn judge<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
    body: Result<Bytes, BytesRejection>,
) -> Page {
    let by = submissions::judge(&asked.viewer.access)?;
    let report = report(&web, &part).await?;
    let session = report.session.as_ref();
    let is_over = session.is_some_and(|session| session.status != RunStatus::Running);
    if !is_over {
        return Err(Fault::Conflict(
            "only an investigation that has ended can be judged".to_owned(),
        ));
    }
    let body = body.map_err(|rejection| Fault::Invalid(rejection.body_text()))?;
    let judgement = judgement(&body, report.alert_id, by, &asked.viewer.access)?;
    match web.backend.judge(judgement).await? {
        Recorded::Yes => {
            Ok(Redirect::to(&format!("/sessions/{}", report.alert_id)).into_response())
        }
        Recorded::No(missing) => {
            let frame = Frame {
                net: still(&web),
                ..Frame::plain("Verdict", NavEntry::Sessions)
            };
            let page = asked.page(&frame, &verdict_sent(report.alert_id, missing));
            Ok((StatusCode::ACCEPTED, page).into_response())
        }
    }
}
