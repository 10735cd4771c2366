//! Tests of `approvals` and of `approve` of a server.

use std::collections::BTreeMap;
use std::time::Duration;

use tarsy_core::approvals::Channel;
use tarsy_core::plan::{OnTimeout, WhenResolved};

use crate::{ApprovalPolicy, Config, SecretSource, hints, show};

fn parsed(text: &str) -> Result<Config, String> {
    Config::parse("f", text, &|_| None).map_err(|faults| faults.to_string())
}

/// The tools of each policy of a server.
fn approve(server: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let text = format!(
        "approvals:\n  policies:\n    default: {{approvers: [sre]}}\n    drain: {{approvers: [lead]}}\n\
         mcp_servers:\n  k8s: {{command: k, {server}}}\n"
    );
    let config = parsed(&text)?;
    let shown = show(&config);
    assert_eq!(parsed(&shown), Ok(config.clone()), "{shown}");
    Ok(config.mcp_servers["k8s"].approve.clone())
}

#[test]
fn tools_have_the_policy_default_or_the_one_that_a_mapping_names() {
    let tools = |policy: &str, tools: &[&str]| {
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        BTreeMap::from([(policy.to_owned(), tools)])
    };
    assert_eq!(
        approve("approve: [restart, 'pods$${x}']"),
        Ok(tools("default", &["restart", "pods${x}"]))
    );
    assert_eq!(
        approve("approve: {default: [restart]}"),
        Ok(tools("default", &["restart"]))
    );
    assert_eq!(
        approve("approve: {drain: [node_drain]}"),
        Ok(tools("drain", &["node_drain"]))
    );
    let mut both = tools("default", &["restart"]);
    both.extend(tools("drain", &["node_drain"]));
    assert_eq!(
        approve("approve: {drain: [node_drain], default: [restart]}, allow: [annotate]"),
        Ok(both)
    );
    assert_eq!(approve("approve: []"), Ok(BTreeMap::new()));
    assert_eq!(approve("approve:"), Ok(BTreeMap::new()));
}

/// Compares the faults with these keys and parts of their problems, and their number.
fn assert_faults(faults: &str, expected: &[(&str, &str)]) {
    for (key, problem) in expected {
        let is_found = faults
            .lines()
            .any(|line| line.starts_with(&format!("  {key} ")) && line.contains(problem));
        assert!(is_found, "{key}: {problem}: {faults}");
    }
    assert_eq!(faults.lines().count(), expected.len() + 1, "{faults}");
}

#[test]
fn each_fault_of_tools_with_approval_names_its_tool_and_policy() {
    let faults = parsed(
        "approvals: {policies: {default: {approvers: [sre]}, drain: {approvers: [lead]}}}
mcp_servers:
  both:
    command: k
    allow: [restart]
    approve: [delete, restart]
  session:
    command: k
    scope: session
    approve: [restart]
  unknown:
    command: k
    approve:
      drian: [node_drain]
  twice:
    command: k
    approve:
      drain: [node_drain]
      default: [node_drain]
  text:
    command: k
    approve: restart
",
    )
    .unwrap_err();
    assert_faults(
        &faults,
        &[
            (
                "mcp_servers.both.approve[1]",
                r#""restart" is in allow as well, which sends its calls at once"#,
            ),
            ("mcp_servers.session.approve", "beside `scope: session`"),
            (
                "mcp_servers.unknown.approve.drian",
                r#"there is no policy "drian" in approvals.policies; defined: default, drain"#,
            ),
            (
                "mcp_servers.twice.approve.drain[0]",
                r#""node_drain" has the policy default already"#,
            ),
            ("mcp_servers.text.approve", r#""restart"; expected a list"#),
        ],
    );
    let none = parsed("mcp_servers: {k8s: {command: k, approve: [restart]}}").unwrap_err();
    assert!(
        none.contains(r#"there is no policy "default" in approvals.policies; defined: none"#),
        "{none}"
    );
}

#[test]
fn a_policy_has_defaults_for_all_but_its_approvers() {
    let config = parsed(
        "approvals:
  policies:
    default: {approvers: [sre]}
    drain: {approvers: [lead], quorum: 2, timeout: 30m, on_timeout: conclude, valid_for: 1h, on_resolved: keep, \
     channels: [web], other_person: true}
  people:
    ana: {web: ana@example.com, slack: U0123ABCD, cli: ana, groups: [sre, lead]}
    bob: {cli: bob}
  slack_groups: {sre: S0614TZR7}
  keys: {web: {secret_file: /w}, slack: {secret_env: S}}
  link_key_file: /l
  max_open: 10
",
    )
    .unwrap();
    let approvals = &config.approvals;
    let default = ApprovalPolicy {
        approvers: vec!["sre".to_owned()],
        quorum: 1,
        timeout: Duration::from_secs(4 * 3_600),
        on_timeout: OnTimeout::Deny,
        valid_for: Duration::from_secs(15 * 60),
        on_resolved: WhenResolved::Withdraw,
        channels: vec![Channel::Web, Channel::Slack, Channel::Cli],
        other_person: false,
    };
    assert_eq!(approvals.policies["default"], default);
    let drain = ApprovalPolicy {
        approvers: vec!["lead".to_owned()],
        quorum: 2,
        timeout: Duration::from_secs(1_800),
        on_timeout: OnTimeout::Conclude,
        valid_for: Duration::from_secs(3_600),
        on_resolved: WhenResolved::Keep,
        channels: vec![Channel::Web],
        other_person: true,
    };
    assert_eq!(approvals.policies["drain"], drain);
    let ana = |channel, account| approvals.person_at(channel, account).map(|(name, _)| name);
    assert_eq!(ana(Channel::Slack, "U0123ABCD"), Some("ana"));
    assert_eq!(ana(Channel::Web, "U0123ABCD"), None);
    assert_eq!(ana(Channel::Cli, "bob"), Some("bob"));
    let file = |name: &str| Some(SecretSource::File(name.to_owned()));
    assert_eq!(approvals.key(Channel::Web), file("/w"));
    assert_eq!(
        approvals.key(Channel::Slack),
        Some(SecretSource::Variable("S".to_owned()))
    );
    assert_eq!(approvals.key(Channel::Cli), None);
    assert_eq!(approvals.link_key(), file("/l"));
    assert_eq!(approvals.max_open, 10);
    assert!(approvals.is_used() && !parsed("").unwrap().approvals.is_used());
    assert_eq!(parsed(&show(&config)), Ok(config));
}

#[test]
fn each_fault_of_people_and_policies_says_what_is_accepted() {
    let faults = parsed(
        "approvals:
  policies:
    none: {}
    empty: {approvers: []}
    ranges:
      approvers: [sre]
      quorum: 3
      timeout: 30s
      on_timeout: approve
      valid_for: 2h
      on_resolved: ask
      channels: [drill]
    two:
      approvers: [sre]
      quorum: 2
      channels: [web, link]
    nowhere:
      approvers: [sre]
      channels: []
    'a b': {approvers: [sre]}
  people:
    ana: {web: ana@example.com, slack: ana, cli: a.b}
    'web:ana': {web: ana@example.com}
  slack_groups: {sre: sre-team}
  keys:
    web: {}
    slack: {secret_file: /s, secret_env: S}
    teams: {secret_file: /t}
  link_key_file: /l
  link_key_env: L
  max_open: 0
",
    )
    .unwrap_err();
    assert_faults(
        &faults,
        &[
            (
                "approvals.policies.none.approvers",
                "missing; accepted: a list of groups",
            ),
            (
                "approvals.policies.empty.approvers",
                "an empty list; accepted: a list of groups",
            ),
            ("approvals.policies.ranges.quorum", "(1 to 2)"),
            ("approvals.policies.ranges.timeout", "(1m to 7d)"),
            (
                "approvals.policies.ranges.on_timeout",
                "accepted: deny, conclude",
            ),
            ("approvals.policies.ranges.valid_for", "(1m to 1h)"),
            (
                "approvals.policies.ranges.on_resolved",
                "accepted: withdraw, keep",
            ),
            (
                "approvals.policies.ranges.channels[0]",
                "accepted: web, slack, cli, link",
            ),
            ("approvals.policies.two.channels", "link beside quorum 2"),
            ("approvals.policies.nowhere.channels", "an empty list"),
            ("approvals.policies.a b", "as a name; accepted"),
            ("approvals.people.ana.slack", "such as U0123ABCD"),
            ("approvals.people.ana.cli", "the name of a broker user"),
            ("approvals.people.web:ana", "as a name; accepted"),
            (
                "approvals.people.web:ana.web",
                "is the account of ana already",
            ),
            ("approvals.slack_groups.sre", "such as S0614TZR7"),
            (
                "approvals.keys.web.secret_file",
                "missing; accepted: secret_file, or secret_env",
            ),
            ("approvals.keys.slack.secret_env", "a second source"),
            ("approvals.keys.teams", "unknown key"),
            ("approvals.link_key_env", "a second source"),
            ("approvals.max_open", "(1 to 100000)"),
        ],
    );
}

#[test]
fn two_different_people_need_two_people_of_the_file() {
    let text = |people: &str| {
        format!(
            "approvals: {{policies: {{two: {{approvers: ['*'], quorum: 2}}}}, people: {{{people}}}}}"
        )
    };
    let fault = parsed(&text("ana: {web: a}")).unwrap_err();
    assert!(
        fault.contains("2 different people, but approvals.people has 1; accepted: 1, or people"),
        "{fault}"
    );
    assert!(parsed(&text("ana: {web: a}, bob: {web: b}")).is_ok());
}

#[test]
fn one_account_belongs_to_one_person() {
    for channel in ["web", "slack", "cli"] {
        let fault = parsed(&format!(
            "approvals: {{people: {{ana: {{{channel}: U1}}, bob: {{{channel}: U1}}}}}}"
        ))
        .unwrap_err();
        let expected = format!(
            "approvals.people.bob.{channel}   line 1   \"U1\" is the account of ana already; one account belongs to \
             one person"
        );
        assert!(fault.contains(&expected), "{fault}");
    }
    assert!(parsed("approvals: {people: {ana: {web: U1}, bob: {slack: U1, cli: U1}}}").is_ok());
}

#[test]
fn a_check_warns_of_everyone_missing_keys_and_people_who_cannot_decide() {
    let warnings = |text: &str| {
        let mut hints = hints(&parsed(text).unwrap());
        hints.retain(|hint| hint.starts_with("approvals"));
        hints
    };
    assert_eq!(warnings(""), Vec::<String>::new());
    assert_eq!(
        warnings("approvals: {people: {ana: {web: a}}}"),
        Vec::<String>::new()
    );
    let found = warnings(
        "approvals:
  policies:
    all: {approvers: ['*'], channels: [web, cli]}
    odd: {approvers: [typo], channels: [slack]}
  people: {ana: {web: a, groups: [sre]}, bob: {groups: [sre]}}
  keys: {cli: {secret_file: /c}}
",
    );
    let expected = [
        "approvals.policies.all.approvers: * lets every known person decide",
        "approvals.policies.odd.approvers: no person of approvals.people",
        "approvals.keys.web: no key",
        "approvals.keys.slack: no key",
        "approvals.people.bob: no account",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}
