//! The tools that models may call, each with the rule by which people decide about its calls. Pure.

use crate::ports::Listing;
use tarsy_config::{ApprovalPolicy, Config};
use tarsy_core::plan::{ApprovalRule, ToolSpec};

/// The tools whose calls a person approves, those that are read-only, by the server's declaration or by the
/// configuration, and those that the configuration allows; sorted, each name once.
pub(super) fn callable(config: &Config, listing: &Listing) -> Listing {
    let tools = listing.tools.iter();
    let mut tools: Vec<ToolSpec> = tools.filter_map(|tool| as_called(config, tool)).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.dedup_by(|a, b| a.name == b.name);
    Listing {
        tools,
        unavailable: listing.unavailable.clone(),
    }
}

/// The tool as models may call it; `None` for one that they may not call.
fn as_called(config: &Config, tool: &ToolSpec) -> Option<ToolSpec> {
    let server = config.mcp_servers.get(tool.server());
    if let Some(policy) = server.and_then(|server| server.approval_policy(tool.tool())) {
        // No plan has a tool of a policy that does not exist: nothing would say who decides.
        let rule = rule(policy, config.approvals.policies.get(policy)?);
        return Some(ToolSpec {
            read_only: false,
            approval: Some(rule),
            ..tool.clone()
        });
    }
    let is_in = |names: &[String]| names.iter().any(|known| known == tool.tool());
    let read_only = tool.read_only || server.is_some_and(|server| is_in(&server.read_only));
    let allowed = server.is_some_and(|server| is_in(&server.allow));
    (read_only || allowed).then(|| ToolSpec {
        read_only,
        approval: None,
        ..tool.clone()
    })
}

/// The part of a policy that a plan keeps: all but the people.
fn rule(name: &str, policy: &ApprovalPolicy) -> ApprovalRule {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ApprovalRule {
        policy: name.to_owned(),
        quorum: policy.quorum,
        timeout_ms: millis(policy.timeout),
        valid_for_ms: millis(policy.valid_for),
        on_timeout: policy.on_timeout,
        on_resolved: policy.on_resolved,
        channels: policy.channels.clone(),
        other_person: policy.other_person,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::approvals::Channel;
    use tarsy_core::plan::{OnTimeout, WhenResolved};
    use tarsy_core::testing::{changing_tool, read_only_tool};

    #[test]
    fn a_tool_of_approve_counts_as_changing_and_has_the_rule_of_its_policy() {
        let config = Config::parse(
            "f",
            "approvals:
  policies:
    default: {approvers: [sre]}
    drain: {approvers: [lead], quorum: 2, timeout: 30m, valid_for: 1h, on_timeout: conclude, on_resolved: keep, \
     channels: [web], other_person: true}
  people: {a: {web: a}, b: {web: b}}
mcp_servers:
  k8s: {command: k, read_only: [secrets], allow: [annotate], approve: {drain: [node_drain], default: [secrets]}}
",
            &|_| None,
        )
        .unwrap();
        let listing = Listing {
            tools: vec![
                changing_tool("k8s.annotate"),
                changing_tool("k8s.delete"),
                changing_tool("k8s.node_drain"),
                read_only_tool("k8s.pods"),
                read_only_tool("k8s.secrets"),
            ],
            ..Listing::default()
        };
        let drain = ApprovalRule {
            policy: "drain".to_owned(),
            quorum: 2,
            timeout_ms: 1_800_000,
            valid_for_ms: 3_600_000,
            on_timeout: OnTimeout::Conclude,
            on_resolved: WhenResolved::Keep,
            channels: vec![Channel::Web],
            other_person: true,
        };
        let default = ApprovalRule {
            policy: "default".to_owned(),
            quorum: 1,
            timeout_ms: 4 * 3_600_000,
            valid_for_ms: 15 * 60_000,
            on_timeout: OnTimeout::Deny,
            on_resolved: WhenResolved::Withdraw,
            channels: vec![Channel::Web, Channel::Slack, Channel::Cli],
            other_person: false,
        };
        let node_drain = ToolSpec {
            approval: Some(drain),
            ..changing_tool("k8s.node_drain")
        };
        let secrets = ToolSpec {
            approval: Some(default),
            read_only: false,
            ..read_only_tool("k8s.secrets")
        };
        assert_eq!(
            callable(&config, &listing).tools,
            [
                changing_tool("k8s.annotate"),
                node_drain,
                read_only_tool("k8s.pods"),
                secrets
            ]
        );
    }

    #[test]
    fn a_plan_without_the_rule_reads_as_before_and_one_with_it_survives_its_text() {
        let tool = changing_tool("k8s.restart");
        let text = serde_json::to_string(&tool).unwrap();
        assert!(!text.contains("approval"), "{text}");
        let policy = ApprovalPolicy {
            approvers: vec!["sre".to_owned()],
            ..ApprovalPolicy::default()
        };
        let tool = ToolSpec {
            approval: Some(rule("default", &policy)),
            ..tool
        };
        let text = serde_json::to_string(&tool).unwrap();
        assert!(!text.contains("sre"), "a plan keeps no approvers: {text}");
        assert_eq!(serde_json::from_str::<ToolSpec>(&text).unwrap(), tool);
    }
}
