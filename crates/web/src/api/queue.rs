//! The queue in the API: waiting alerts, workers and dead letters.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{Answer, OK, answered, query};
use crate::fault::Fault;
use crate::json;
use crate::ports::{Backend, Lane};
use crate::state::Shared;
use tarsy_engine::ports::WorkerStatus;
use tarsy_reports::{Check, DeadAlert};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;

#[derive(Serialize)]
struct Queue {
    lanes: Vec<Lane>,
    workers: Vec<WorkerStatus>,
    /// As `doctor --json` prints them.
    checks: Vec<Check>,
    /// Whether the broker is connected.
    live: bool,
}

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>) -> Response {
    answered(shown(&web).await)
}

async fn shown<B: Backend>(web: &Shared<B>) -> Answer {
    let (lanes, checks) = tokio::join!(web.backend.lanes(), web.backend.checks());
    let (workers, live) = (web.backend.workers(), web.backend.is_live());
    Ok(json::response(
        OK,
        &Queue {
            lanes: lanes?,
            workers,
            checks,
            live,
        },
    ))
}

#[derive(Deserialize)]
struct LettersQuery {
    limit: Option<u32>,
}

#[derive(Serialize)]
struct Letters {
    dead_letters: Vec<DeadAlert>,
}

pub(super) async fn dead_letters<B: Backend>(State(web): State<Shared<B>>, uri: Uri) -> Response {
    answered(letters(&web, &uri).await)
}

async fn letters<B: Backend>(web: &Shared<B>, uri: &Uri) -> Answer {
    let LettersQuery { limit } = query(uri)?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Fault::Invalid(format!("limit: accepted: 1 to {MAX_LIMIT}")));
    }
    Ok(json::response(
        OK,
        &Letters {
            dead_letters: web.backend.dead_letters(limit).await?,
        },
    ))
}
