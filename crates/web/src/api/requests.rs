//! Questions and cancel requests, for users who may send them. For others these routes do not exist.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, find};
use crate::fault::Fault;
use crate::json;
use crate::ports::{Backend, Cancel, Question};
use crate::rights::Access;
use crate::state::Shared;
use crate::submissions::{asker, canceller};

#[derive(Deserialize)]
struct Asked {
    question: String,
}

pub(super) async fn ask<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(part): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let by = asker(&access)?;
    let body = body.map_err(|rejection| Fault::Invalid(rejection.body_text()))?;
    let asked: Asked = serde_json::from_slice(&body)
        .map_err(|_| Fault::Invalid("accepted: {\"question\": \"the text\"} as JSON".to_owned()))?;
    let about = find(&web, &part).await?;
    let published = web
        .backend
        .ask(Question {
            about,
            text: asked.question,
            by,
        })
        .await?;
    Ok(json::response(StatusCode::ACCEPTED, &published))
}

pub(super) async fn cancel<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(part): Path<String>,
) -> Answer {
    let by = canceller(&access)?;
    let session = find(&web, &part).await?;
    web.backend.cancel(Cancel { session, by }).await?;
    Ok(json::response(
        StatusCode::ACCEPTED,
        &json!({"session_id": session}),
    ))
}
