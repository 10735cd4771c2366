//! Requests for approvals, and decisions of programs that act for a person.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Answer, OK, find, query};
use crate::decisions::{Found, Sent, answer, found, refusal};
use crate::fault::Fault;
use crate::json;
use crate::ports::Backend;
use crate::rights::Access;
use crate::state::Shared;
use tarsy_config::read::moment::{ACCEPTED, Edge, parse_moment};
use tarsy_core::approvals::RequestId;
use tarsy_reports::{ApprovalDetail, ApprovalFilter, ApprovalRow, FreezeReport, Requests};

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 500;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListParameters {
    requests: Option<String>,
    session: Option<String>,
    since: Option<String>,
    limit: Option<u32>,
}

#[derive(Serialize)]
struct List {
    approvals: Vec<ApprovalRow>,
    freeze: Option<FreezeReport>,
}

pub(super) async fn list<B: Backend>(State(web): State<Shared<B>>, uri: Uri) -> Answer {
    let filter = filter(&web, query(&uri)?).await?;
    let (approvals, freeze) = tokio::join!(web.backend.approvals(filter), web.backend.freeze_now());
    Ok(json::response(
        OK,
        &List {
            approvals: approvals?,
            freeze: freeze?,
        },
    ))
}

async fn filter<B: Backend>(
    web: &Shared<B>,
    parameters: ListParameters,
) -> Result<ApprovalFilter, Fault> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let requests = match given(parameters.requests) {
        None => Requests::default(),
        Some(word) => Requests::ALL
            .into_iter()
            .find(|requests| requests.as_str() == word)
            .ok_or_else(|| Fault::Invalid("requests: accepted: open, all".to_owned()))?,
    };
    let since = match given(parameters.since) {
        None => None,
        Some(text) => Some(
            parse_moment(&text, Edge::Begin, chrono::Utc::now())
                .ok_or_else(|| Fault::Invalid(format!("since: accepted: {ACCEPTED}")))?,
        ),
    };
    let limit = parameters.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Fault::Invalid(format!("limit: accepted: 1 to {MAX_LIMIT}")));
    }
    let session = match given(parameters.session) {
        None => None,
        Some(part) => Some(find(web, &part).await?),
    };
    Ok(ApprovalFilter {
        limit,
        requests,
        session,
        since,
    })
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path((part, number)): Path<(String, u32)>,
    Extension(access): Extension<Access>,
) -> Answer {
    let found = found_at(&web, &part, number, &access).await?;
    Ok(json::response(OK, &readable(&found.detail)))
}

/// The request without the accounts, groups and addresses of its voters, which `tarsy approvals export` has.
fn readable(detail: &ApprovalDetail) -> Value {
    let mut request = json!(detail);
    let votes = request.get_mut("votes_cast").and_then(Value::as_array_mut);
    for vote in votes.into_iter().flatten().filter_map(Value::as_object_mut) {
        for name in ["account", "groups", "address"] {
            vote.remove(name);
        }
    }
    request
}

async fn found_at<B: Backend>(
    web: &Shared<B>,
    part: &str,
    number: u32,
    access: &Access,
) -> Result<Found, Fault> {
    let id = RequestId {
        session: find(web, part).await?,
        event: number,
    };
    found(web, id, access).await
}

/// Sends a decision: 200 when it is recorded and counts, 409 when it is recorded and does not, 202 before.
pub(super) async fn decide<B: Backend>(
    State(web): State<Shared<B>>,
    Path((part, number)): Path<(String, u32)>,
    Extension(access): Extension<Access>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let found = found_at(&web, &part, number, &access).await?;
    let by = found.decider()?;
    let body = body.map_err(|rejection| Fault::Invalid(rejection.body_text()))?;
    let decision = Sent::of_json(&body)?.decision(found.id, by, &access)?;
    let cast = web.backend.decide(decision).await?;
    let refused = cast
        .recorded
        .as_ref()
        .ok()
        .and_then(|vote| vote.refused.as_deref());
    if let Some(word) = refused {
        let body = json!({
            "error": format!("not counted: {}", refusal(word)),
            "refused": word,
            "vote_id": cast.vote,
        });
        return Ok(json::response(StatusCode::CONFLICT, &body));
    }
    let status = match cast.recorded {
        Ok(_) => OK,
        Err(_) => StatusCode::ACCEPTED,
    };
    Ok(json::response(status, &answer(&cast)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::approvals::detail;

    #[test]
    fn a_reader_of_the_api_sees_the_person_of_a_vote_without_account_and_address() {
        let request = readable(&detail());
        let vote = &request["votes_cast"][0];
        assert_eq!(vote["person"], "ana");
        for name in ["account", "groups", "address"] {
            assert!(vote.get(name).is_none(), "{name}: {vote}");
        }
        assert_eq!(request["tool"], "k8s.rollout_restart");
    }
}
