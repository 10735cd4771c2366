//! The handler of the form that judges an analysis. For users without the right, the route does not exist.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};

use super::{Asked, Page};
use crate::api::report;
use crate::decisions::judgement;
use crate::fault::Fault;
use crate::ports::Backend;
use crate::state::Shared;
use crate::submissions;
use tarsy_core::chain::RunStatus;

/// Sends the verdict. The page of the session shows it once a worker has recorded it.
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
    web.backend.judge(judgement).await?;
    Ok(Redirect::to(&format!("/sessions/{}", report.alert_id)).into_response())
}
