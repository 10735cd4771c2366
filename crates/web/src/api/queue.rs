//! The queue in the API: waiting alerts, workers and dead letters.

use axum::extract::State;
use axum::http::Uri;
use serde::{Deserialize, Serialize};

use super::{Answer, OK, query};
use crate::fault::Fault;
use crate::json;
use crate::ports::{Backend, Lane};
use crate::state::Shared;
use tarsy_engine::ports::WorkerStatus;
use tarsy_reports::{Check, DeadAlert};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;

#[derive(Serialize)]
struct QueueResponse {
    lanes: Vec<Lane>,
    workers: Vec<WorkerStatus>,
    /// The checks in the form of `doctor --json`.
    checks: Vec<Check>,
    /// Whether the broker is connected.
    live: bool,
}

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>) -> Answer {
    let (lanes, checks) = tokio::join!(web.backend.lanes(), web.backend.checks());
    let queue = QueueResponse {
        lanes: lanes?,
        workers: web.backend.workers(),
        checks,
        live: web.backend.is_live(),
    };
    Ok(json::response(OK, &queue))
}

#[derive(Deserialize)]
struct LettersQuery {
    limit: Option<u32>,
}

#[derive(Serialize)]
struct Letters {
    dead_letters: Vec<DeadAlert>,
}

pub(super) async fn dead_letters<B: Backend>(State(web): State<Shared<B>>, uri: Uri) -> Answer {
    let LettersQuery { limit } = query(&uri)?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Fault::Invalid(format!("limit: accepted: 1 to {MAX_LIMIT}")));
    }
    let dead_letters = web.backend.dead_letters(limit).await?;
    Ok(json::response(OK, &Letters { dead_letters }))
}
