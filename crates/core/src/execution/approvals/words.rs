//! The texts that the model gets in the place of a result.

use std::time::Duration;

use crate::execution::entry::{ApprovalEnded, ApprovalOutcome, AskFault, ToolCall};
use crate::plan::{AgentPlan, ApprovalRule};
use crate::readable::format;

/// The result of any changing call while operators have frozen all changes.
pub const CHANGES_FROZEN: &str = "not sent: operators have frozen all changes.";

/// The begin of the result of a call that a person denied, without a prefix.
pub const DENIED: &str = "not sent: a person denied this call.";

const INSTEAD: &str =
    "Do not make it in another form. Go on without it, or say in your answer what should be done.";

const SECRET: &str =
    "not sent: the arguments hold a secret. A call that needs a person may not contain one.";

const UNREADABLE: &str = "not sent: a person cannot read these arguments as the tool will.";

/// The text in the place of the result, without a prefix; empty for an approved call, which has a result of its own.
pub(super) fn refusal(plan: &AgentPlan, call: &ToolCall, ended: &ApprovalEnded) -> String {
    let rule = plan
        .tool(&call.tool)
        .and_then(|tool| tool.approval.as_ref());
    match ended.outcome {
        ApprovalOutcome::Approved => String::new(),
        ApprovalOutcome::Denied => format!("{DENIED} {INSTEAD}"),
        ApprovalOutcome::DeniedSession => format!(
            "not sent: a person has denied every call of {} in this investigation.",
            plan.shown(&call.tool)
        ),
        ApprovalOutcome::Expired => format!(
            "not sent: no person decided about this call{}. {INSTEAD}",
            within(rule.map(ApprovalRule::timeout))
        ),
        ApprovalOutcome::Withdrawn => {
            "not sent: the alert was resolved while this call waited for a person.".to_owned()
        }
        ApprovalOutcome::Lapsed => format!(
            "not sent: the approval was older than {} when the call could be sent. Make it again if it is still needed.",
            rule.map_or_else(
                || "it may be".to_owned(),
                |rule: &ApprovalRule| format::span(rule.valid_for())
            )
        ),
        ApprovalOutcome::ToolChanged => {
            "not sent: the tool has changed since it was described to you, or is not offered any more."
                .to_owned()
        }
        ApprovalOutcome::Frozen => format!(
            "not sent: a person approved this call, but operators have frozen all changes. {INSTEAD}"
        ),
        ApprovalOutcome::NotAsked => not_asked(ended.fault.as_ref()),
    }
}

fn not_asked(fault: Option<&AskFault>) -> String {
    match fault {
        Some(AskFault::Secret) => SECRET.to_owned(),
        Some(AskFault::Unreadable) | None => UNREADABLE.to_owned(),
        Some(AskFault::Unfit(faults)) => faults.clone(),
        Some(AskFault::TooMany(limit)) => {
            format!("not sent: too many calls wait for a person: {limit}.")
        }
    }
}

fn within(timeout: Option<Duration>) -> String {
    timeout.map_or_else(String::new, |timeout: Duration| {
        format!(" within {}", format::span(timeout))
    })
}
