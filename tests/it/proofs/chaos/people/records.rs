//! The facts about people: what the voters have sent, and what the database has of requests and votes.

use std::collections::BTreeMap;
use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::{Bytea, Integer, Jsonb, Nullable, SmallInt, Text, Uuid as SqlUuid};
use serde_json::Value;
use tarsy_bus::{ConnectRetry, Nats, Options};
use tarsy_core::approvals::CallHash;
use tarsy_core::plan::Plan;
use tokio::time::Instant;
use uuid::Uuid;

use super::Cast;
use crate::proofs::chaos::system::System;

/// Longer than the time after which a message is delivered again.
const RECORDED_WITHIN: Duration = Duration::from_secs(75);

/// A row of `approvals`.
#[derive(Clone, Debug, PartialEq, QueryableByName)]
pub(in crate::proofs::chaos) struct Request {
    #[diesel(sql_type = SqlUuid)]
    pub(in crate::proofs::chaos) session_id: Uuid,
    #[diesel(sql_type = Integer)]
    pub(in crate::proofs::chaos) event_seq: i32,
    #[diesel(sql_type = SqlUuid)]
    pub(in crate::proofs::chaos) execution_id: Uuid,
    #[diesel(sql_type = Text)]
    pub(in crate::proofs::chaos) call_id: String,
    #[diesel(sql_type = Text)]
    pub(in crate::proofs::chaos) tool: String,
    #[diesel(sql_type = Text)]
    pub(in crate::proofs::chaos) arguments: String,
    #[diesel(sql_type = Bytea)]
    pub(in crate::proofs::chaos) call_sha256: Vec<u8>,
    #[diesel(sql_type = SmallInt)]
    pub(in crate::proofs::chaos) quorum: i16,
    #[diesel(sql_type = Nullable<Text>)]
    pub(in crate::proofs::chaos) outcome: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(in crate::proofs::chaos) channel: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(in crate::proofs::chaos) closed_as: Option<String>,
}

/// A row of `approval_votes`.
#[derive(Clone, Debug, PartialEq, QueryableByName)]
pub(in crate::proofs::chaos) struct Vote {
    #[diesel(sql_type = SqlUuid)]
    pub(in crate::proofs::chaos) vote_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    pub(in crate::proofs::chaos) session_id: Uuid,
    #[diesel(sql_type = Integer)]
    pub(in crate::proofs::chaos) event_seq: i32,
    #[diesel(sql_type = Text)]
    pub(in crate::proofs::chaos) person: String,
    #[diesel(sql_type = Text)]
    pub(in crate::proofs::chaos) verdict: String,
    #[diesel(sql_type = Bytea)]
    pub(in crate::proofs::chaos) seen_sha256: Vec<u8>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(in crate::proofs::chaos) refused: Option<String>,
}

/// A plan, from which the hash of a call is computed again.
#[derive(QueryableByName)]
struct Planned {
    #[diesel(sql_type = SqlUuid)]
    session_id: Uuid,
    #[diesel(sql_type = Jsonb)]
    plan: Value,
}

/// Everything that people did, and what became of it.
#[derive(Clone, Debug, Default)]
pub(in crate::proofs::chaos) struct People {
    /// The messages that voters sent.
    pub(in crate::proofs::chaos) casts: Vec<Cast>,
    pub(in crate::proofs::chaos) requests: Vec<Request>,
    pub(in crate::proofs::chaos) votes: BTreeMap<Uuid, Vote>,
    /// Requests whose hash is not that of their tool, schema and arguments.
    pub(in crate::proofs::chaos) misnamed: Vec<Request>,
    /// Messages of people that are still in the stream.
    pub(in crate::proofs::chaos) pending: u64,
}

/// Reads the tables, and what is left in the stream.
pub(in crate::proofs::chaos) fn read(system: &System, casts: Vec<Cast>, pending: u64) -> People {
    let mut connection = system.database.connection();
    let requests: Vec<Request> =
        diesel::sql_query("SELECT * FROM approvals ORDER BY session_id, event_seq")
            .load(&mut connection)
            .unwrap();
    let votes: Vec<Vote> = diesel::sql_query("SELECT * FROM approval_votes")
        .load(&mut connection)
        .unwrap();
    let plans: Vec<Planned> = diesel::sql_query(
        "SELECT session_id, plan FROM session_plans WHERE session_id IN (SELECT session_id FROM approvals)",
    )
    .load(&mut connection)
    .unwrap();
    let plans: BTreeMap<Uuid, Plan> = plans
        .into_iter()
        .map(|row| (row.session_id, serde_json::from_value(row.plan).unwrap()))
        .collect();
    let is_misnamed =
        |request: &&Request| hash(&plans, request) != Some(request.call_sha256.clone());
    People {
        casts,
        misnamed: requests.iter().filter(is_misnamed).cloned().collect(),
        requests,
        votes: votes.into_iter().map(|vote| (vote.vote_id, vote)).collect(),
        pending,
    }
}

/// Waits until no message of a person is left in the stream; returns the number of those that stay.
pub(in crate::proofs::chaos) async fn unrecorded(system: &System) -> u64 {
    let options = Options {
        url: system.nats_url.clone(),
        role: "chaos".to_owned(),
        credentials: Default::default(),
        retry: ConnectRetry::UpTo(RECORDED_WITHIN),
    };
    let nats = Nats::connect(&options).await.unwrap();
    let limit = Instant::now() + RECORDED_WITHIN;
    loop {
        let left = nats.pending_of_people().await.unwrap_or(u64::MAX);
        if left == 0 || Instant::now() > limit {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(200)).await; // pacing of looks
    }
}

/// The hash of a request's call, computed from the plan of its session.
fn hash(plans: &BTreeMap<Uuid, Plan>, request: &Request) -> Option<Vec<u8>> {
    let plan = plans.get(&request.session_id)?;
    let agents = plan.stages.iter().flat_map(|stage| &stage.agents);
    let mut tools = agents.flat_map(|agent| &agent.tools);
    let tool = tools.find(|tool| *tool.name == *request.tool)?;
    Some(CallHash::new(tool, &request.arguments).0.to_vec())
}
