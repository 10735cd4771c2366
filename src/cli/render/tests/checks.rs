//! Tests of the output of `doctor` and `tools`.

use super::narrow;
use crate::admin::doctor::{Check, Verdict};
use crate::cli::render::tables::checks;
use tarsy_mcp::Listed;

fn check(name: &str, verdict: Verdict, detail: &str, fix: Option<&str>) -> Check {
    Check {
        check: name.to_owned(),
        verdict,
        detail: detail.to_owned(),
        fix: fix.map(ToOwned::to_owned),
    }
}

#[test]
fn a_check_names_its_finding_and_its_fix() {
    let found = [
        check(
            "config",
            Verdict::Ok,
            "tarsy.yaml: 3 chains, 4 agents, 2 providers, 1 MCP server",
            None,
        ),
        check(
            "nats",
            Verdict::Ok,
            "2.15.1 at nats://127.0.0.1:41871, rtt 0.2 ms, max_payload 8192 KiB",
            None,
        ),
        check(
            "stream",
            Verdict::Fail,
            "TARSY_ALERTS: discard is \"old\", must be \"new\" (a full queue would forget alerts)",
            Some("tarsy migrate"),
        ),
        check(
            "workers",
            Verdict::Warn,
            "none sent its status within 6 s\u{1b}[2J",
            Some("tarsy worker"),
        ),
        check(
            "mcp a-very-long-name",
            Verdict::Fail,
            "does not start",
            None,
        ),
    ];
    let mut lines: Vec<String> = found
        .iter()
        .flat_map(|check| checks::check(check, &narrow()))
        .collect();
    lines.push(checks::sum(&found));
    for line in &lines {
        assert!(line.len() <= 80 && !line.contains('\u{1b}'), "{line}");
    }
    insta::assert_snapshot!("doctor_80", lines.join("\n"));
    assert_eq!(checks::sum(&found[..2]), "2 checks, nothing is wrong");
    assert_eq!(checks::sum(&found[3..4]), "1 check, 1 warning");
}

#[test]
fn a_list_of_tools_shows_which_a_model_may_call() {
    let tool = |name: &str, read_only: bool, offered: bool, withheld: Option<&str>| Listed {
        name: name.to_owned(),
        tool: name.split_once('.').unwrap().1.to_owned(),
        description: "Describes one pod with its events.\nNot more.\u{1b}[31m".to_owned(),
        read_only,
        offered,
        because: offered.then(|| {
            if read_only {
                "its server declares it read-only"
            } else {
                "allow names it"
            }
            .to_owned()
        }),
        withheld: withheld.map(ToOwned::to_owned),
        left_out: if offered {
            Vec::new()
        } else {
            vec!["annotations", "icons"]
        },
    };
    let tools = [
        tool("k8s.describe_pod", true, true, None),
        tool("k8s.restart", false, false, Some("it may change something")),
        tool("k8s.scale", false, true, None),
    ];
    insta::assert_snapshot!(
        "tools_80",
        checks::tools("k8s", &tools, &narrow()).join("\n")
    );
    assert_eq!(
        checks::tools("none", &[], &narrow()),
        ["none: 0 tools, 0 offered to models"]
    );
}
