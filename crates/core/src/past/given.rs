//! Earlier investigations of the same alert in the first message of an agent, behind the alert.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::Past;
use super::text::{Known, block, list, times};
use crate::clock::ClockPlan;
use crate::code::fence_around;
use crate::plan::{AgentPlan, Plan};
use crate::prompt::render;

const PAST: &str = include_str!("../prompts/past.md");

/// The plan with these records in the first message of each agent that may know them. The text is frozen with the plan,
/// so ages are those at `received_at`, the time of the alert. A synthesis has the findings of other agents instead.
#[must_use]
pub fn given(mut plan: Plan, past: &Past, received_at: DateTime<Utc>) -> Plan {
    plan.change_agents(|agent| give(agent, past, received_at));
    plan
}

fn give(agent: &mut AgentPlan, past: &Past, received_at: DateTime<Utc>) {
    let Some(of_agent) = agent.past else { return };
    let limit = usize::try_from(of_agent.given).unwrap_or_default();
    let records = past.sessions.iter().take(limit).cloned().collect();
    let known = Past {
        sessions: records,
        ..past.clone()
    };
    if known.sessions.is_empty() || agent.strategy.synthesises() {
        return;
    }
    let text = paragraph(&known, agent, received_at);
    agent.user_prompt.push_str(&text);
}

fn paragraph(past: &Past, agent: &AgentPlan, received_at: DateTime<Utc>) -> String {
    let blocks = past.sessions.iter().map(|record| {
        let at = shown(agent.clock, record.finished_at);
        block(record, at, shown(agent.clock, received_at), Known::Alert)
    });
    let text = list(&times(past), blocks);
    let fence = fence_around(&[&text]);
    let values = [("fence", fence.as_str()), ("past", text.as_str())];
    format!("\n\n{}", render(PAST, &values))
}

/// A time by the clock of a plan.
pub(super) fn shown(clock: Option<ClockPlan>, at: DateTime<Utc>) -> DateTime<Utc> {
    clock.map_or(at, |clock| clock.shown(at))
}

/// The records in a first message with their introduction.
pub fn given_in(message: &str) -> Option<&str> {
    let begin = PAST.lines().next()?;
    let at = message.rfind(&format!("\n\n{begin}\n\n"))?;
    message.get(at..).map(str::trim)
}

/// The first message without the records: they are no source of what an analysis states.
pub fn without_given<'a>(plan: &AgentPlan, message: &'a str) -> Cow<'a, str> {
    if plan.past.is_none_or(|past| past.given == 0) {
        return message.into();
    }
    without_records(message).unwrap_or_else(|| message.into())
}

/// `None` if the message has no records. They stand behind the alert, and none of their lines begins as their section.
fn without_records(message: &str) -> Option<Cow<'_, str>> {
    let begin = PAST.lines().next()?;
    let (before, records) = message.rsplit_once(&format!("\n\n{begin}\n\n"))?;
    let (fence, records) = records.split_once("text\n")?;
    let (_, behind) = records.split_once(&format!("\n{fence}"))?;
    Some(format!("{before}{behind}").into())
}
